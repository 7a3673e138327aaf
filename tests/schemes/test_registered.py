"""A scheme that this file alone defines answers every question about it, from its one class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import driple
from driple.answers.stated_error import JobKind, stated_error
from driple.cluster.setting import Setting
from driple.errors import SettingError
from driple.jobs.load import JobOptions
from driple.memory.timeline import KINDS
from driple.planning.search import Asked
from driple.render.remarks import sentence
from driple.schemes.records import WorkerRecord
from driple.schemes.registry import added_scheme, scheme_names
from driple.schemes.scheme import RunsLike, SchemeStep, Sharding
from driple.schemes.sharded import Sharded
from tests.planning.gpt import write_gpt

OPTIONS = JobOptions(seq_len=64, batch_size=4, precision="amp-bf16")
ONE, MANY = "1xA100", "8xA100"


class Instant(Sharded):
    """Devices share out everything, and exchange it in no time."""

    name = "instant"
    sharding: Sharding | None = Sharding(
        shards_parameters=True, shards_gradients=True, shards_states=True
    )
    _exchange = "each worker keeps a shard of all variables, and others come in no time"

    def runs_like(self, num_workers: int) -> RunsLike:
        """As of FSDP."""
        return RunsLike(times="sharded", memory="fsdp")

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """As if each worker were alone."""
        topology = replace(
            step.topology,
            workers=step.topology.workers[:1],
            worker_machine=(0,),
            within=None,
            between=None,
        )
        alone = replace(
            step,
            topology=topology,
            plans=step.plans[:1],
            update=replace(step.update, update_s=step.update.update_s[:1]),
        )
        return super().simulate(alone, num_steps, seed) * len(step.plans)


@pytest.fixture
def instant() -> Iterator[str]:
    with added_scheme(Instant()):
        yield f"{MANY}@instant"


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_gpt(tmp_path_factory.mktemp("gpt"))


def test_predict_simulates_it(instant: str, gpt: str) -> None:
    """A step is as long as that of one device, and needs the memory of FSDP without its buffers."""
    result = driple.predict(gpt, [ONE, instant, f"{MANY}@fsdp"], options=OPTIONS)
    alone, many, fsdp = result.answers
    assert many.setting.name.endswith("@instant")
    assert many.iteration_time_s.value == pytest.approx(alone.iteration_time_s.value, rel=1e-9)
    assert many.iteration_time_s.interval is not None
    assert many.iteration_time_s.value < fsdp.iteration_time_s.value
    assert "instant" in str(result.to_dict())
    memory = [answer.memory.estimate for answer in (many, fsdp) if answer.memory is not None]
    assert memory[0] == memory[1]


def test_its_stated_error_is_that_of_the_runs_it_is_like(instant: str) -> None:
    """Of published runs of sharded training, on eight devices of a machine."""
    job = JobKind(framework="pytorch", network="transformer", half=True)
    error, of_fsdp, of_ring = (
        stated_error(Setting.parse(name), job) for name in (instant, f"{MANY}@fsdp", MANY)
    )
    assert error.num_runs > 0
    assert error == of_fsdp
    assert "sharded training" in sentence(error.runs)
    assert error != of_ring


def test_plan_tries_it_of_its_own_accord_and_when_asked(instant: str, gpt: str) -> None:
    """It is the fastest on eight devices, as its exchange takes no time."""
    ask = {"options": OPTIONS, "samples": 1e4, "settings": MANY, "vary": ()}
    of_scheme = {offer.scheme: offer for offer in driple.plan(gpt, **ask).offers}  # type: ignore[arg-type]
    assert set(of_scheme) == {"ddp", "zero2", "fsdp", "instant"}
    fastest = min(of_scheme.values(), key=lambda offer: offer.iteration_s)
    assert fastest.scheme == "instant"
    assert fastest.memory is not None
    assert fastest.error is not None
    assert fastest.error.num_runs > 0
    (asked,) = driple.plan(gpt, schemes="instant", **ask).offers  # type: ignore[arg-type]
    assert asked.iteration_s == fastest.iteration_s


def test_inspect_shows_what_a_device_of_it_holds(instant: str, gpt: str) -> None:
    """An eighth of parameters, gradients and states, each tensor rounded up to 512 bytes."""
    kept = {}
    for name in (MANY, instant):
        memory = driple.inspect(gpt, name, options=OPTIONS, memory=True).memory
        assert memory is not None
        kinds = dict(zip(KINDS, memory.timeline.nbytes[-1].tolist(), strict=False))
        kept[name] = [kinds[kind] for kind in ("parameters", "gradients", "optimizer")]
    for whole, shard in zip(kept[MANY], kept[instant], strict=True):
        assert whole / 8 <= shard <= 1.2 * whole / 8


def test_a_scheme_is_gone_when_its_block_ends(gpt: str, tmp_path: Path) -> None:
    """Its name is then unknown to every question, and the others are as before."""
    before = scheme_names()
    with added_scheme(Instant()):
        Asked(schemes=("instant",))
    assert scheme_names() == before
    with pytest.raises(SettingError, match="no scheme is called 'instant'"):
        Asked(schemes=("instant",))
    with pytest.raises(SettingError, match="no scheme is called 'instant'"):
        driple.predict(gpt, f"{MANY}@instant", options=OPTIONS)
