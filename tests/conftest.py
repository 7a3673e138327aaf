"""Python code run in a process of its own, since TensorFlow's graph mode cannot be undone in one.

code, arguments  ->  subprocess without GPU  ->  the JSON object in its last line of output
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Examples of a law take as long as the machine is busy: no limit belongs to them.
settings.register_profile("driple", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("driple")

RunTensorFlow = Callable[..., dict[str, Any]]

# Tests that lock the machine, make network namespaces or measure times.
ON_THE_MACHINE = (
    "tests/measure/", "tests/profiler/", "tests/cli/test_measure.py", "tests/cli/test_stalls.py",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them, so that `scripts/test` runs them one after another."""
    for test in items:
        if test.nodeid.startswith(ON_THE_MACHINE):
            test.add_marker(pytest.mark.machine)


@pytest.fixture(scope="session")
def run_tensorflow() -> RunTensorFlow:
    """Runs code with arguments; gives the object that it printed last."""

    def run(code: str, *arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return facts

    return run
