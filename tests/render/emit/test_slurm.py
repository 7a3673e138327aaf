"""A batch script that bash reads, with options that sbatch documents."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from driple.render.emit.scheduled_job import ScheduledJob
from driple.render.emit.slurm import ANSWER_COLUMNS, answer_line, batch_script
from tests.render.emit.trainings import training

# What sbatch reads before it asks the controller, which is not there: it tries for a second.
_CONFIG = """ClusterName=test
SlurmctldHost=localhost
GresTypes=gpu
SelectType=select/cons_tres
MessageTimeout=1
"""


def _header(text: str) -> dict[str, str]:
    return dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)$", text, re.MULTILINE))


def _said_by_sbatch(script: Path) -> str:
    """Words of sbatch on a script; it has read all options once it looks for a controller."""
    config = script.with_name("slurm.conf")
    config.write_text(_CONFIG)
    done = subprocess.run(
        ["sbatch", "--test-only", str(script)],
        env={**os.environ, "SLURM_CONF": str(config)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


def _minutes(time: str) -> int:
    """days-hours:minutes:seconds, one of the formats of --time."""
    match = re.fullmatch(r"(\d+)-([01]\d|2[0-3]):([0-5]\d):00", time)
    assert match, time
    days, hours, minutes = (int(part) for part in match.groups())
    return (24 * days + hours) * 60 + minutes


def test_a_script_has_both_limits(tmp_path: Path) -> None:
    """The upper end of 11,999 s is 200 minutes; the expected 5,400 s are 90."""
    text = batch_script(training())
    file = tmp_path / "job.sh"
    file.write_text(text)
    subprocess.run(["bash", "-n", str(file)], check=True)
    assert text.startswith("#!/bin/bash\n#SBATCH")
    header = _header(text)
    assert len(header) == text.count("\n#SBATCH ")
    assert (_minutes(header["time"]), _minutes(header["time-min"])) == (200, 90)
    assert [header[name] for name in ("nodes", "ntasks", "gpus-per-node", "cpus-per-task")] == [
        "2", "2", "8", "96",
    ]  # fmt: skip
    assert "--nnodes=2 --nproc-per-node=8" in text
    assert "REPLACE" in text


@pytest.mark.skipif(not shutil.which("sbatch"), reason="of Debian's package slurm-client")
@pytest.mark.parametrize("job", [training(), training(lower_s=None, limit_s=None)])
def test_sbatch_itself_reads_every_option(tmp_path: Path, job: ScheduledJob) -> None:
    file = tmp_path / "job.sh"
    file.write_text(batch_script(job))
    assert "Unable to contact slurm controller" in _said_by_sbatch(file)
    file.write_text(batch_script(job).replace("--time-min=", "--time-least="))
    assert "unrecognized option '--time-least" in _said_by_sbatch(file)
    file.write_text(batch_script(job).replace("--nodes=2", "--nodes=two"))
    assert '"two" is not a valid node count' in _said_by_sbatch(file)


def test_days_are_written_as_slurm_reads_them() -> None:
    header = _header(batch_script(training(training_s=90_000.0, limit_s=200_000.0)))
    assert (header["time-min"], header["time"]) == ("1-01:00:00", "2-07:34:00")


def test_without_a_known_error_the_limit_is_left_to_the_user() -> None:
    text = batch_script(training(lower_s=None, limit_s=None))
    assert "##SBATCH --time=FILL_IN" in text
    assert "time" not in _header(text)
    assert answer_line(training(limit_s=None)).splitlines()[1].split("\t")[3] == "-"


def test_the_lowest_limit_is_never_above_the_limit() -> None:
    """A deadline may be shorter than the expected time; sbatch refuses such a pair."""
    header = _header(batch_script(training(limit_s=600.0)))
    assert header["time"] == header["time-min"] == "0-00:10:00"


def test_an_answer_is_a_line_of_the_filters_columns() -> None:
    comment, line = answer_line(training()).splitlines()
    assert comment.removeprefix("# ").split("\t") == list(ANSWER_COLUMNS)
    assert line.split("\t") == ["driple-gpt2", "2", "8", "200", "90", "1036800"]
