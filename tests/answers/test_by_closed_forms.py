"""Errors of closed forms are stated where the published runs that they were checked on are like."""

from __future__ import annotations

from driple.answers.by_closed_forms import closed_form_error
from driple.answers.stated_error import StatedError, stated_error
from driple.cluster.setting import Setting
from driple.remarks import Remark
from driple.simulate.place import place_of
from tests.simulate.jobs import net


def test_a_closed_form_states_no_error_where_the_simulator_has_none() -> None:
    """Published runs have one server and few workers."""
    form, graph = "zeng-repaired", net(32)
    crowded = place_of(Setting.parse("V100-P5w10/he-1G"))
    stated = stated_error(crowded.setting, graph, topology=crowded.topology)
    assert not stated.is_checked and stated.p90 is not None
    assert closed_form_error(crowded, form, stated) is None
    cpu = place_of(Setting.parse("CPU-P1w2"))
    error = closed_form_error(cpu, form, stated_error(cpu.setting, graph))
    assert error is not None
    assert closed_form_error(cpu, form, StatedError(runs=Remark.of_text("unknown"))) is None
