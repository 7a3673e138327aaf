"""Python code run in a process of its own, since TensorFlow's graph mode cannot be undone in one.

code, arguments  ->  forked process without GPU  ->  the JSON object in its last line of output

`--times FILE` keeps the processor time of each folder of tests, with that of the processes that its
tests started and waited for: `scripts.checks.test_times` sets it beside the budget.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
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


TIMES: dict[str, float] = defaultdict(float)
STARTED: dict[str, float] = {}
SERVED: dict[str, float] = {}  # processor time of processes that are not yet waited for


def spent_s() -> float:
    """Processor time of this process and of those that it started."""
    return sum(os.times()[:4]) + sum(SERVED.values())


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option `--times`."""
    parser.addoption("--times", type=Path, metavar="FILE", help="JSON: processor_s by folder")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note the processor time before a test and its fixtures."""
    STARTED[nodeid] = spent_s()


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Count the processor time of a test and its fixtures."""
    folder = Path(nodeid.partition("::")[0]).parent
    TIMES["/".join(folder.parts[:2])] += spent_s() - STARTED.pop(nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the times."""
    file: Path | None = session.config.getoption("--times")
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        times = {folder: round(seconds, 1) for folder, seconds in sorted(TIMES.items())}
        file.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")


def asked(request: pytest.FixtureRequest, argument: str) -> list[str]:
    """Values of an argument with which tests of this file were selected.

    A fixture that makes something for each of them in one process makes no more than that: the
    usual run asks for those that are not marked `slow`.
    """
    values = (
        test.callspec.params.get(argument)
        for test in request.session.items
        if isinstance(test, pytest.Function)
        and test.path == request.path
        and hasattr(test, "callspec")
    )
    return [value for value in dict.fromkeys(values) if value is not None]


def asks_slow(request: pytest.FixtureRequest) -> bool:
    """Whether a test of this file that is marked `slow` was selected."""
    return any(
        test.path == request.path and test.get_closest_marker("slow") is not None
        for test in request.session.items
    )


def usual(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Values for `parametrize`: those that are not among the quick ones are marked `slow`."""
    return [
        value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values
    ]


# Forks for each line of input, a JSON list of code and arguments; prints its status, the processor
# time of all so far, output and errors.
TENSORFLOW = r"""
import json, os, sys, tempfile, traceback
import tensorflow.compat.v1

for line in sys.stdin:
    code, *arguments = json.loads(line)
    outputs = [tempfile.TemporaryFile() for _ in range(2)]
    child = os.fork()
    if child == 0:
        for stream, number in zip(outputs, (1, 2)):
            os.dup2(stream.fileno(), number)
        sys.argv, status = ["-c", *arguments], 0
        try:
            exec(compile(code, "<tests>", "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)
    _, ended = os.waitpid(child, 0)
    for stream in outputs:
        stream.seek(0)
    answer = [ended, sum(os.times()[:4]), *(stream.read().decode() for stream in outputs)]
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture(scope="session")
def run_tensorflow() -> Iterator[RunTensorFlow]:
    """Runs code with arguments in a process of its own; gives the object that it printed last.

    One process imports TensorFlow, which takes seconds, and forks for each code.
    """
    with subprocess.Popen(
        [sys.executable, "-c", TENSORFLOW],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("no pipes")
        questions, answers = server.stdin, server.stdout

        def run(code: str, *arguments: str) -> dict[str, Any]:
            print(json.dumps([code, *arguments]), file=questions, flush=True)
            status, SERVED["tensorflow"], out, err = json.loads(answers.readline())
            assert status == 0, err[-2000:]
            facts: dict[str, Any] = json.loads(out.splitlines()[-1])
            return facts

        yield run
        questions.close()
    SERVED.pop("tensorflow", None)  # from now on a part of this process's own
