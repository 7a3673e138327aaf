"""What would make a job fit, where its memory is a straight line made up for the test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.cluster.setting import Setting, parse_setting
from driple.errors import ConfigError
from driple.memory.memory_estimate import Bytes, MemoryEstimate
from driple.planning.evaluator import Evaluator
from driple.planning.places import Candidate, Machines, place_of_setting
from driple.planning.remedies import remedy_of
from driple.planning.variants import Variant
from driple.remarks import Remark

GB = 1e9


@dataclass
class Needs:
    """An evaluator whose jobs need `fixed + states + per_sample * batch` GB of a device.

    Full checkpointing keeps a quarter of each sample, 8 bits a quarter of the states, and fsdp
    shares fixed bytes and states out. A line that is `off` calls jobs small that are not.
    """

    fixed: float = 10
    states: float = 20
    per_sample: float = 10
    batch: int = 8
    optimizer: str = "adamw"
    can_vary: bool = True
    checkpointing: str = "none"
    off: float = 0.0
    unreadable: tuple[str, ...] = ()
    asked: list[Candidate] = field(default_factory=list)

    @property
    def variants(self) -> SimpleNamespace:
        usual = Variant(batch_size=self.batch, activation_checkpointing=self.checkpointing)
        given = SimpleNamespace(optimizer=self.optimizer)
        return SimpleNamespace(usual=usual, can_vary=self.can_vary, given=given)

    def needed_gb(self, candidate: Candidate) -> float:
        variant, setting = candidate.variant, candidate.setting
        shards = setting.num_workers if setting.scheme.name == "fsdp" else 1
        states = self.states / (4 if variant.optimizer == "adam8bit" else 1)
        each = self.per_sample / (4 if variant.activation_checkpointing == "full" else 1)
        return (self.fixed + states) / shards + each * variant.batch_size

    def memory(self, candidate: Candidate) -> MemoryEstimate:
        self.asked.append(candidate)
        if candidate.variant.activation_checkpointing in self.unreadable:
            raise ConfigError("no blocks to recompute")
        room = candidate.setting.worker.capacity_bytes
        assert room is not None
        needed = GB * self.needed_gb(candidate)
        return MemoryEstimate(allocated=Bytes(value=needed), fits="yes" if needed <= room else "no")

    def may_fit(self, candidate: Candidate) -> bool:
        if candidate.variant.activation_checkpointing in self.unreadable:
            raise ConfigError("no blocks to recompute")
        room = candidate.setting.worker.capacity_bytes
        assert room is not None
        return GB * (self.needed_gb(candidate) - self.off) <= room


def place(name: str) -> Machines:
    return place_of_setting(Setting.parse(name))


def remedied(needs: Needs, *names: str) -> Remark:
    remark = remedy_of(cast("Evaluator", needs), [place(name) for name in names])
    assert remark is not None
    return remark


def room(name: str) -> float:
    known = Setting.parse(name).worker.capacity_bytes
    assert known is not None
    return known / GB


@given(st.floats(0.1, 9), st.floats(0, 30), st.integers(1, 40))
def test_the_largest_batch_is_the_largest_that_fits(
    per_sample: float, fixed: float, batch: int
) -> None:
    """One more would not fit, or is more than the user asked for."""
    needs = Needs(fixed=fixed, states=0, per_sample=per_sample, batch=batch, optimizer="sgd")
    remark = remedied(needs, "1xH100")
    size = cast("int", remark.values["batch_size"])
    assert fixed + per_sample * size <= room("1xH100")
    assert size == batch or fixed + per_sample * (size + 1) > room("1xH100")
    assert remark.code == "would_fit"


def test_each_way_is_named_with_what_it_reaches() -> None:
    """30 GB and 10 a sample on 80 GB: batch 5 in place of 8; all 8 with checkpointing."""
    remark = remedied(Needs(fixed=10, states=20, per_sample=9, batch=8), "8xH100")
    assert remark.values["batch_size"] == int((room("1xH100") - 30) // 9)
    assert remark.values["checkpointed_batch_size"] == 8
    assert remark.values["keeps_batch"] is True
    assert "optimizer" not in remark.values  # 10 + 5 + 72 GB are too much
    assert (remark.values["scheme"], remark.values["num_devices"]) == ("fsdp", 8)
    assert remark.values["shard_place"] == "8xH100/NVLink"
    assert remark.values["device"] == "H100"
    assert remark.values["room_bytes"] == Setting.parse("8xH100").worker.capacity_bytes
    pair = remedied(Needs(fixed=60, states=40, per_sample=1), "2xH100")
    assert (pair.values["scheme"], pair.values["num_devices"]) == ("fsdp", 2)
    eight_bits = remedied(Needs(fixed=10, states=60, per_sample=1, batch=20), "1xH100")
    assert eight_bits.values["optimizer"] == "adam8bit"
    assert "scheme" not in eight_bits.values  # nothing to share with
    partly = remedied(Needs(fixed=10, states=20, per_sample=30, batch=8), "1xH100")
    assert partly.values["batch_size"] == 1
    assert partly.values["checkpointed_batch_size"] == int((room("1xH100") - 30) // 7.5)
    assert partly.values["keeps_batch"] is False


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adafactor", "adam8bit", ""])
def test_states_of_other_optimizers_have_no_8_bits(optimizer: str) -> None:
    needs = Needs(fixed=10, states=60, per_sample=1, batch=20, optimizer=optimizer)
    assert "optimizer" not in remedied(needs, "1xH100").values
    assert not any(each.variant.optimizer for each in needs.asked)


def test_recomputation_is_no_remedy_where_it_is_on_or_brings_nothing() -> None:
    on = remedied(Needs(checkpointing="full", batch=99), "1xH100")
    assert "checkpointed_batch_size" not in on.values
    small = remedied(Needs(fixed=0, states=10, per_sample=1, batch=4), "1xH100")
    assert small.values["batch_size"] == 4
    assert "checkpointed_batch_size" not in small.values


def test_ways_that_cannot_be_worked_out_are_left_out() -> None:
    """Such as recomputation of a model without blocks."""
    remark = remedied(Needs(per_sample=30, unreadable=("full",)), "1xH100")
    assert remark.values["batch_size"] == 1
    assert "checkpointed_batch_size" not in remark.values
    nothing = remedied(Needs(unreadable=("none", "full")), "8xH100")
    assert nothing.code == "nothing_makes_it_fit"
    assert nothing.values["scheme"] == "fsdp"


def test_a_batch_that_a_line_calls_small_is_looked_at_itself() -> None:
    """The line is 20 GB off: of sizes a tenth smaller each, the first that fits is taken."""
    needs = Needs(fixed=10, states=0, per_sample=1, batch=500, off=20, optimizer="sgd")
    size = int(room("1xH100") - 10 + 20)
    while 10 + size > room("1xH100"):
        size = size * 9 // 10
    assert remedied(needs, "1xH100").values["batch_size"] == size


def test_nothing_fits_where_even_shards_are_too_large() -> None:
    remark = remedied(Needs(fixed=1000, states=1000), "8xH100")
    assert remark.code == "nothing_makes_it_fit"
    assert remark.values["place"] == "8xH100/NVLink"
    graph = remedied(Needs(can_vary=False), "8xH100")
    assert graph.code == "graph_is_as_it_is"
    assert "batch_size" not in graph.values


def test_the_roomiest_machines_are_asked_and_of_these_the_fewest() -> None:
    """Batches are of the device with most memory; shards of the machines with most devices."""
    needs = Needs(fixed=50, states=100, per_sample=0.5)
    remark = remedied(needs, "16xV100", "4xH200", "2xH200", "8xH100")
    assert remark.values["place"] == "2xH200/NVLink"
    assert remark.values["device"] == "H200"
    assert remark.values["shard_place"] == remedied(needs, "16xV100").values["shard_place"]
    assert remark.values["num_devices"] == 16


def test_of_unlike_devices_the_one_with_least_memory_counts(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "machines:\n- {devices: 4, device: A100}\n- {devices: 4, device: V100}\nnetwork: 100G\n"
    )
    mixed = place_of_setting(parse_setting(str(file)))
    remark = remedy_of(cast("Evaluator", Needs()), [mixed])
    assert remark is not None
    assert (remark.values["device"], remark.values["has_least"]) == ("V100", True)
    assert remark.values["room_bytes"] == pytest.approx(GB * room("1xV100"))
    assert remedied(Needs(), "8xV100").values["has_least"] is False


def test_without_known_memory_nothing_is_said() -> None:
    """Of no machines, nor of processors, whose memory the catalogue leaves out."""
    processor = place("1xCPU")
    for places in ([], [processor]):
        assert remedy_of(cast("Evaluator", Needs()), places) is None
    assert remedied(Needs(), "1xCPU", "1xV100").values["place"] == "1xV100"


def test_a_candidate_keeps_all_but_what_a_way_changes() -> None:
    needs = Needs(per_sample=30)
    remedied(needs, "8xH100")
    usual = needs.variants.usual
    for each in needs.asked:
        same = replace(
            each.variant,
            batch_size=usual.batch_size,
            activation_checkpointing="none",
            optimizer="",
        )
        assert same == usual
