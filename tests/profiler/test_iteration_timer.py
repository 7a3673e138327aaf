"""The timer, with loaders that are lists and a clock that the test moves."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from driple.profiler import batches
from driple.profiler.iteration_timer import REFUSED, IterationTimer


class Clock:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def timer_of(tmp_path: Path, clock: Any, **options: Any) -> IterationTimer:
    given = {"synthetic": False, "warmup": 3, "iterations": 4, "world_size": 1, **options}
    return IterationTimer(tmp_path / "rank0.json", clock=clock, **given)


def train(timer: IterationTimer, clock: Clock, source: Iterator[Any], waits: list[float]) -> None:
    """A script's loop: every batch takes its seconds, and ends in a step of an optimizer."""
    for wait, _ in zip(waits, source, strict=False):
        clock.now += wait
        timer.stepped(None)  # type: ignore[arg-type]


def written(tmp_path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((tmp_path / "rank0.json").read_text())
    return record


def test_iterations_after_the_warm_up_are_timed_and_end_the_process(tmp_path: Path) -> None:
    """Three iterations are left out, four are written down, nothing comes after."""
    clock = Clock()
    timer = timer_of(tmp_path, clock)
    with pytest.raises(SystemExit) as end:
        train(timer, clock, timer.watch([], lambda: [0] * 99), [9, 9, 9, 1, 2, 3, 4, 5])
    assert end.value.code == 0
    assert written(tmp_path)["iterations_s"] == [1, 2, 3, 4]
    assert clock.now == 37


def test_short_epochs_follow_one_another(tmp_path: Path) -> None:
    """The script does not see that its loader began anew, and no iteration is lost or empty."""
    clock = Clock()
    timer = timer_of(tmp_path, clock)
    with pytest.raises(SystemExit):
        train(timer, clock, timer.watch([], lambda: [0, 0]), [9, 9, 9, 1, 2, 3, 4, 5])
    assert written(tmp_path)["iterations_s"] == [1, 2, 3, 4]


def test_the_time_to_fetch_a_batch_is_the_iterations(tmp_path: Path) -> None:
    """Two seconds of waiting for each batch and one of computing make three."""
    clock = Clock()
    timer = timer_of(tmp_path, clock)

    def slow() -> Iterator[int]:
        for i in range(99):
            clock.now += 2
            yield i

    with pytest.raises(SystemExit):
        train(timer, clock, timer.watch([], slow), [1] * 9)
    assert written(tmp_path)["iterations_s"] == [3, 3, 3, 3]


def test_synthetic_batches_are_read_once(tmp_path: Path) -> None:
    """The first batch is given again and again; what the loader costs after that is not seen."""
    clock, reads = Clock(), []
    timer = timer_of(tmp_path, clock, synthetic=True)

    def slow() -> Iterator[int]:
        for i in range(3):
            reads.append(i)
            clock.now += 100
            yield i

    with pytest.raises(SystemExit):
        train(timer, clock, timer.watch([], slow), [1] * 99)
    assert written(tmp_path)["iterations_s"] == [1, 1, 1, 1]
    assert reads == [0]


def test_a_loader_that_does_not_train_ends_and_is_not_timed(tmp_path: Path) -> None:
    """Validation before training, and in the middle of it, is in no iteration."""
    clock = Clock()
    timer = timer_of(tmp_path, clock)
    assert list(timer.watch([], lambda: [1, 2])) == [1, 2]
    source = timer.watch([], lambda: [0] * 99)
    train(timer, clock, source, [9, 9, 9, 9, 1])
    next(source)
    for _ in timer.watch([], lambda: [1, 2]):
        clock.now += 50
    with pytest.raises(SystemExit):
        train(timer, clock, source, [2, 3, 4])
    assert written(tmp_path)["iterations_s"] == [9, 1, 2, 3]


def test_a_data_set_smaller_than_a_batch_is_refused(tmp_path: Path) -> None:
    """With and without the incomplete batch, the line has both numbers."""
    data = TensorDataset(torch.zeros(3, 2))
    for drop_last in (True, False):
        loader = DataLoader(data, batch_size=8, drop_last=drop_last)
        timer = timer_of(tmp_path, Clock())
        source = timer.watch(loader, lambda loader=loader: iter(loader))
        with pytest.raises(SystemExit) as end:
            train(timer, Clock(), source, [1] * 9)
        assert end.value.code == REFUSED
        assert "has 3 samples" in written(tmp_path)["error"]
        assert "needs 8" in written(tmp_path)["error"]


def test_another_number_of_processes_is_refused(tmp_path: Path) -> None:
    """Two processes were asked for, and this script trains alone."""
    timer = timer_of(tmp_path, Clock(), world_size=2)
    with pytest.raises(SystemExit):
        train(timer, Clock(), timer.watch([], lambda: [0]), [1] * 9)
    assert "trains with 1 process where 2" in written(tmp_path)["error"]


def test_facts_of_the_loader(tmp_path: Path) -> None:
    """Batch size and length of an epoch are those of the loader that trains."""
    clock = Clock()
    loader = DataLoader(TensorDataset(torch.zeros(20, 2)), batch_size=4)
    timer = timer_of(tmp_path, clock)
    with pytest.raises(SystemExit):
        train(timer, clock, timer.watch(loader, lambda: iter(loader)), [1] * 99)
    facts = written(tmp_path)
    assert (facts["batch_size"], facts["batches_per_epoch"]) == (4, 5)
    assert facts["wrapped"] is False


def test_watching_costs_next_to_nothing(tmp_path: Path) -> None:
    """Less than 1 % of an iteration of 20 ms, by the timer's own account."""
    timer = timer_of(tmp_path, time.perf_counter)
    with pytest.raises(SystemExit):
        train(timer, Clock(), timer.watch([], lambda: [0]), [0] * 99)
    assert 0 < written(tmp_path)["meter_s"] < 0.01 * 0.020


def test_without_a_profile_batches_are_the_source_itself() -> None:
    """The mark in a script changes nothing outside of a profile."""
    source = [1, 2, 3]
    assert batches(source) is source
