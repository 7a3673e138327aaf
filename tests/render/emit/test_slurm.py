"""A batch script that bash reads, with options that sbatch documents."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from driple.render.emit.slurm import ANSWER_COLUMNS, answer_line, batch_script
from tests.render.emit.trainings import training

# Long options that the manual page of sbatch (Slurm 25.05) lists, as far as any file may have them.
SBATCH_OPTIONS = frozenset({
    "account", "array", "chdir", "comment", "constraint", "cpus-per-gpu", "cpus-per-task",
    "dependency", "error", "exclusive", "gpus", "gpus-per-node", "gpus-per-socket",
    "gpus-per-task", "gres", "job-name", "mem", "mem-per-cpu", "mem-per-gpu", "nodelist", "nodes",
    "ntasks", "ntasks-per-gpu", "ntasks-per-node", "output", "partition", "qos", "requeue",
    "signal", "time", "time-min",
})  # fmt: skip


def _header(text: str) -> dict[str, str]:
    return dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)$", text, re.MULTILINE))


def _minutes(time: str) -> int:
    """days-hours:minutes:seconds, one of the formats of --time."""
    match = re.fullmatch(r"(\d+)-([01]\d|2[0-3]):([0-5]\d):00", time)
    assert match, time
    days, hours, minutes = (int(part) for part in match.groups())
    return (24 * days + hours) * 60 + minutes


def test_a_script_has_both_limits_and_only_options_of_sbatch(tmp_path: Path) -> None:
    """The upper end of 11,999 s is 200 minutes; the expected 5,400 s are 90."""
    text = batch_script(training())
    file = tmp_path / "job.sh"
    file.write_text(text)
    subprocess.run(["bash", "-n", str(file)], check=True)
    assert text.startswith("#!/bin/bash\n#SBATCH")
    header = _header(text)
    assert set(header) <= SBATCH_OPTIONS
    assert len(header) == text.count("\n#SBATCH ")
    assert (_minutes(header["time"]), _minutes(header["time-min"])) == (200, 90)
    assert [header[name] for name in ("nodes", "ntasks", "gpus-per-node", "cpus-per-task")] == [
        "2", "2", "8", "96",
    ]  # fmt: skip
    assert "--nnodes=2 --nproc-per-node=8" in text
    assert "REPLACE" in text


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
