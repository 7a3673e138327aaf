"""Ray gives what local processes give, also where its workers and nodes die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from driple.engine.ray_engine import RayEngine
from driple.errors import ConfigError, EngineError
from tests.engine.tasks import killed_once, process_of, refused, scaled


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    with RayEngine(2) as ray_engine:
        yield ray_engine


def test_results_come_in_order(engine: RayEngine) -> None:
    assert engine.workers == 2
    assert list(engine.stream(scaled, 3, range(40))) == [3 * item for item in range(40)]


def test_an_error_of_a_task_is_raised_where_its_result_would_be(engine: RayEngine) -> None:
    results = engine.stream(refused, 7, range(10))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ConfigError, match="no 3, 7"):
        next(results)


def test_a_killed_worker_loses_nothing(engine: RayEngine, tmp_path: Path) -> None:
    assert list(engine.stream(killed_once, tmp_path, range(4))) == [0, 1, 2, 3]
    assert sorted(mark.name for mark in tmp_path.iterdir()) == ["1", "3"]


def test_a_process_is_replaced_after_its_tasks(engine: RayEngine) -> None:
    """On the same cluster, as Ray is there already."""
    processes = Counter(RayEngine(2, tasks_per_worker=2).stream(process_of, 0, range(8)))
    assert max(processes.values()) <= 2


def test_a_cluster_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def fails(**_: object) -> None:
        raise ConnectionError("nobody\nanswers")

    monkeypatch.setattr(ray, "init", fails)
    monkeypatch.setenv("RAY_ADDRESS", "10.1.2.3:6379")
    with pytest.raises(EngineError, match=r"no cluster of Ray at RAY_ADDRESS=10.1.2.3:6379: nob"):
        RayEngine(2)
