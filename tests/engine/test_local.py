"""Local engine: the results of a loop, in its order, with any number of processes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from driple.engine.local import LocalEngine
from driple.errors import ConfigError, EngineError
from tests.engine.tasks import always_killed, killed_once, process_of, refused, scaled


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_and_few_items_are_taken_ahead(workers: int) -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(40):
            taken.append(number)
            yield number

    with LocalEngine(workers) as engine:
        results = engine.stream(scaled, 3, items())
        assert next(results) == 0
        assert len(taken) <= 3 * workers + 1
        assert [0, *results] == [3 * item for item in range(40)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_task_is_raised_where_its_result_would_be(workers: int) -> None:
    with LocalEngine(workers) as engine:
        results = engine.stream(refused, 7, range(10))
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ConfigError, match="no 3, 7"):
            next(results)


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    """Each odd item ends the process that works on it, once."""
    with LocalEngine(2) as engine:
        assert list(engine.stream(killed_once, tmp_path, range(4))) == [0, 1, 2, 3]
    assert sorted(mark.name for mark in tmp_path.iterdir()) == ["1", "3"]


def test_a_task_that_ends_every_worker_is_an_error() -> None:
    with LocalEngine(2) as engine, pytest.raises(EngineError, match="worker processes ended"):
        list(engine.stream(always_killed, 0, [1]))


def test_a_process_is_replaced_after_its_tasks() -> None:
    """Also a single one, which then is not this process."""
    with LocalEngine(1, tasks_per_worker=2) as engine:
        processes = Counter(engine.stream(process_of, 0, range(6)))
    assert list(processes.values()) == [2, 2, 2]
    assert os.getpid() not in processes
