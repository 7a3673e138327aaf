"""A stage of a small checkout is run in a clone, and what it brings back is compared."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from scripts.build import Build
from scripts.checks.rebuild import (
    BUT_DATES,
    DIFFERS,
    EQUAL,
    FAILED,
    NOT_RUN,
    RESULT,
    UNPACKED,
    compared,
    rebuilt,
)
from scripts.stages import STAGES, Stage

WRITE = "from pathlib import Path\nPath('table.csv').write_text({text})\n"


def checkout(folder: Path, text: str) -> Build:
    """One file with `1,2`, and a program that writes it with a text."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "scripts").mkdir()
    (folder / "scripts" / "note.txt").write_text("")
    (folder / "table.csv").write_text("1,2\n")
    (folder / "write.py").write_text(WRITE.format(text=text))
    for words in (("add", "-A"), ("-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return Build(root=folder, stages=(stage(),), by_hand=(), shipped=())


def stage(needs: str = "") -> Stage:
    return Stage(name="table", command="write", writes=("table.csv",), takes="no time", needs=needs)


@pytest.mark.parametrize(
    ("text", "result"), [("'1,2\\n'", EQUAL), ("'1,3\\n'", DIFFERS), ("1 / 0", FAILED)]
)
def test_a_deleted_file_is_made_again_and_compared(text: str, result: str, tmp_path: Path) -> None:
    outcome = rebuilt(checkout(tmp_path / "own", text), stage(), tmp_path / "clone")
    assert (outcome.result, outcome.file, outcome.command) == (result, "table.csv", "write")
    assert (tmp_path / "own" / "table.csv").read_text() == "1,2\n"  # the checkout stays


def test_a_stage_that_cannot_run_says_what_it_needs(tmp_path: Path) -> None:
    needy = stage(needs="a GPU")
    outcome = rebuilt(checkout(tmp_path / "own", "''"), needy, tmp_path / "clone")
    assert (outcome.result, outcome.why) == (NOT_RUN, "needs a GPU")


def test_dates_and_packing_are_no_differences() -> None:
    assert compared(b"2026-01-02, 1", b"2026-03-04, 1", "a.json") == BUT_DATES
    assert compared(b"2026-01-02, 1", b"2026-03-04, 2", "a.json") == DIFFERS
    stored, packed = (gzip.compress(b"1,2" * 99, level) for level in (0, 9))
    assert compared(stored, packed, "a.csv.gz") == UNPACKED
    assert compared(gzip.compress(b"1"), gzip.compress(b"2"), "a.csv.gz") == DIFFERS


def test_the_stored_results_are_of_stages() -> None:
    names = {each.name for each in STAGES}
    assert set(json.loads(RESULT.read_text(encoding="utf-8"))) <= names
