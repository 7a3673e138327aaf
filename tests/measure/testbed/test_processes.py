"""Processes of a run, without a cluster: what they say, that they die, what the sampler leaves."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from driple.errors import MeasureError
from driple.measure.testbed.messages import RoleAnswer, RoleJob
from driple.measure.testbed.processes import RoleProcess, Sampling


def role_that_runs(program: str, folder: Path) -> RoleProcess:
    """A role whose process is this Python program; it has neither share nor counter."""
    log = folder / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
        )
    none = cast(Any, None)
    return RoleProcess(name="w1", process=process, share=none, counter=none, log=log)


def finish(role: RoleProcess) -> None:
    role.process.kill()
    role.process.communicate()


def test_answers_arrive_whole_however_they_are_cut(tmp_path: Path) -> None:
    """A line in two pieces is one answer; two lines in one piece are two."""
    program = (
        "import sys\n"
        'for piece in (\'{"event": "re\', \'ady"}\\n{"event": "warm"}\\n\'):\n'
        "    sys.stdin.readline(); sys.stdout.write(piece); sys.stdout.flush()\n"
    )
    role = role_that_runs(program, tmp_path)
    role.say("go")
    role.receive()
    assert role.unread == []
    role.give(RoleJob(job="worker", task=0, cluster={"ps": ("a:1",)}))
    role.receive()
    assert [answer.event for answer in role.unread] == ["ready", "warm"]
    assert role.busy
    role.refuse_end()
    finish(role)


def test_a_dead_role_is_told_with_its_last_words(tmp_path: Path) -> None:
    """What it printed last stands in the line; speaking to it is no error."""
    role = role_that_runs("import sys; sys.exit('first line\\nno more memory')", tmp_path)
    role.process.wait()
    role.say("go")
    with pytest.raises(MeasureError, match=r"role w1 died \(no more memory\); run again"):
        role.receive()
    finish(role)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (RoleAnswer(event="failed", error="no such op"), "role w1 failed: no such op"),
        (RoleAnswer(event="ended"), "role w1 died in the middle of a run"),
    ],
)
def test_an_end_is_refused_even_behind_other_answers(
    tmp_path: Path, answer: RoleAnswer, words: str
) -> None:
    """A failure that waits behind an answer is seen at once."""
    role = role_that_runs("", tmp_path)
    role.unread = [RoleAnswer(event="ready"), answer]
    with pytest.raises(MeasureError, match=words):
        role.refuse_end()
    finish(role)


def test_a_line_that_is_no_answer_names_the_role(tmp_path: Path) -> None:
    """Something else on the channel is one line, not a traceback."""
    program = 'import sys; sys.stdin.readline(); print(\'{"event": "lost"}\', flush=True)'
    role = role_that_runs(program, tmp_path)
    role.say("go")
    with pytest.raises(MeasureError, match=r"role w1: event must be one of up, ready, .*run again"):
        while True:  # a line may arrive in pieces
            role.receive()
    finish(role)


def test_sampling_lasts_as_long_as_its_block(tmp_path: Path) -> None:
    """Counters by name, rows in order of time."""
    (tmp_path / "a").write_text("7")
    (tmp_path / "b").write_text("9")
    sources = [f"w0.{name}={tmp_path / name}" for name in ("a", "b")]
    with Sampling(sources, 0.01, tmp_path) as sampling:
        time.sleep(0.5)
    samples = sampling.samples()
    assert samples.names == ("w0.a", "w0.b")
    assert len(samples.values) > 5
    assert (samples.values == [7, 9]).all()
    assert (samples.after_ns >= samples.before_ns).all()


def test_a_sampler_that_cannot_start_is_told(tmp_path: Path) -> None:
    """A counter that is not there ends the run before it begins."""
    with (
        pytest.raises(MeasureError, match="the sampler did not start"),
        Sampling([f"w0.a={tmp_path / 'none'}"], 0.01, tmp_path),
    ):
        raise AssertionError("it must not come to this")
