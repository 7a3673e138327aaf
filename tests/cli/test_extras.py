"""Commands need no more than what they use."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.test_main import ROOT

WITHOUT_TRAINING = """
import sys
for name in ("torch", "category_encoders", "networkx"):
    sys.modules[name] = None
from driple.cli.main import run
run(sys.argv[1:])
"""
DATASET = "datasets/settings/CPU-P1w2_ho-200M"


def without_training(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TRAINING, *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_looking_at_a_data_set_needs_no_torch() -> None:
    assert "iteration time" in without_training(
        "data", "show", DATASET, "resnet20/cifar10/b24/adam/sync"
    )
    assert "workloads" in without_training("data", "list", DATASET)
