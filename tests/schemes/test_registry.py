"""Schemes by name: each is found, none is taken, and what is added is gone afterwards."""

from __future__ import annotations

import pytest

from driple.errors import SettingError
from driple.schemes import registry
from driple.schemes.ddp import Ddp
from driple.schemes.registry import (
    added_scheme,
    register_scheme,
    registered_schemes,
    replica_schemes,
    scheme_asked,
    scheme_named,
    scheme_names,
    scheme_that_holds_least,
)
from driple.schemes.split import SplitScheme


class Mine(Ddp):
    """A scheme of a user's own."""

    name = "mine"


def test_every_scheme_is_found_by_its_name() -> None:
    assert len(set(scheme_names())) == len(registered_schemes())
    for scheme in registered_schemes():
        assert scheme_named(scheme.name) is scheme
        assert scheme_asked(scheme.name.upper()) is scheme


def test_degrees_are_the_split_scheme() -> None:
    assert isinstance(scheme_asked("tp2-pp4"), SplitScheme)
    assert isinstance(scheme_asked("ep8-zero1"), SplitScheme)


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SettingError, match="no scheme is called 'ddq'; there are ps, ddp, ") as got:
        scheme_named("ddq")
    assert f" {SplitScheme.name}," not in str(got.value)
    assert "tp2-pp4" in str(got.value)
    with pytest.raises(SettingError):
        scheme_asked("ddq")


def test_replicas_compute_batches_of_their_own() -> None:
    names = set(replica_schemes())
    assert names == {s.name for s in registered_schemes()} - {"ps", SplitScheme.name}


def test_the_scheme_that_holds_least_shards_parameters_over_all_devices() -> None:
    least = scheme_that_holds_least()
    assert least.name == "fsdp"
    assert least.sharding is not None and least.sharding.shards_parameters


def test_an_added_scheme_is_gone_after_its_block() -> None:
    before = scheme_names()
    with added_scheme(Mine()):
        assert scheme_names() == (*before, "mine")
        assert scheme_named("mine").name == "mine"
    assert scheme_names() == before
    with pytest.raises(RuntimeError), added_scheme(Mine()):
        raise RuntimeError
    assert scheme_names() == before


def test_a_name_that_is_taken_is_refused() -> None:
    class Other(Ddp):
        name = "fsdp"

    with pytest.raises(SettingError, match="'fsdp' is registered already"):
        register_scheme(Other())
    kept = scheme_named("ddp")
    with added_scheme(Ddp()):  # the same again, as a module that is read twice
        assert scheme_named("ddp") is not kept
    assert scheme_named("ddp") is kept


class Plain:
    """An object that has what a scheme has, and is of no class of Driple's."""

    def __init__(self, lacks: str = "") -> None:
        for name in dir(Ddp):
            if name[0] != "_" and name != lacks:
                setattr(self, name, getattr(Mine(), name))


def test_what_has_the_members_of_a_scheme_is_one() -> None:
    assert registry._is_scheme(Plain()) and registry._is_scheme(Ddp())
    assert not registry._is_scheme(Plain(lacks="simulate"))
    assert not registry._is_scheme(Ddp) and not registry._is_scheme("ddp")
