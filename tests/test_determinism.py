"""The same question gives the same bytes, whatever the hash seed, the process and the threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GRAPH = "datasets/examples/resnet20.pbtxt"
QUESTIONS = {
    "predict by an inspector": f"predict {GRAPH} --json",
    "predict by all methods": f"predict {GRAPH} --setting 4xV100 --method all --json",
    "plan": f"plan {GRAPH} --batch-size 24 --machines 1,2 --instance p3,g5 --json",
    "sweep": f"sweep {GRAPH} --bandwidth 1G,10G --workers 1-4 --json",
}
PROCESSES = (("0", "1"), ("31337", "2"))  # hash seed, threads


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_is_the_same_in_every_process(name: str) -> None:
    answers = {_answer(QUESTIONS[name], *process) for process in PROCESSES}
    assert len(answers) == 1


def _answer(line: str, seed: str, threads: str) -> bytes:
    """What a process with this hash seed and so many threads prints."""
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-m", "driple.cli.main", *line.split()],
        env=os.environ | dict.fromkeys(variables, threads) | {"PYTHONHASHSEED": seed},
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert len(done.stdout) > 500
    return done.stdout


def test_a_hash_seed_changes_what_depends_on_it() -> None:
    """Else the processes above would not differ."""
    code = "print(list({'a', 'b', 'c', 'd', 'e', 'f', 'g'}))"
    orders = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True, check=True,
        ).stdout
        for seed, _ in PROCESSES
    }  # fmt: skip
    assert len(orders) > 1
