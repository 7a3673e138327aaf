"""Killed nodes of a cluster change no result: three of the rounds of scripts.checks.chaos."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.checks.chaos import Chaos, nodes_of_ray, nothing, predicted, simulated, write_jobs


@pytest.fixture(scope="module")
def chaos() -> Iterator[Chaos]:
    with nodes_of_ray() as cluster:
        yield Chaos(cluster, seed=1)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("jobs") / "jobs.jsonl"
    write_jobs(file, 192)
    return file


@pytest.fixture(scope="module")
def whole(jobs: Path) -> str:
    """Answers of the jobs, without a cluster."""
    return predicted(jobs, jobs.with_name("whole.jsonl"), "local", nothing)


@pytest.mark.parametrize("num_nodes", [1, 2])
def test_answers_are_those_without_kills(
    chaos: Chaos, tmp_path: Path, jobs: Path, whole: str, num_nodes: int
) -> None:
    answers, before = [], chaos.landed
    chaos.kill(
        num_nodes,
        lambda progress: answers.append(predicted(jobs, tmp_path / "out.jsonl", "ray", progress)),
    )
    assert answers == [whole]
    assert chaos.landed == before + num_nodes


def test_a_data_set_is_the_one_without_kills(chaos: Chaos, tmp_path: Path) -> None:
    whole = simulated(tmp_path / "whole", "local", nothing)
    datasets: list[str] = []
    chaos.kill(1, lambda progress: datasets.append(simulated(tmp_path / "out", "ray", progress)))
    assert datasets == [whole]


def test_a_kill_that_comes_too_late_is_no_success(chaos: Chaos) -> None:
    with pytest.raises(RuntimeError, match="ended before a node was killed"):
        chaos.kill(1, lambda progress: progress(1, 1))
