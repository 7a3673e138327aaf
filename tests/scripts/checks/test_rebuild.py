"""A stage of a small checkout is run in a clone, and what it brings back is compared."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.build import Build
from scripts.checks.compared import DIFFERS, EQUAL
from scripts.checks.rebuild import FAILED, IN_PART, NOT_RUN, RESULT, rebuilt
from scripts.stages import STAGES, Stage

WRITE = "from pathlib import Path\nPath('table.csv').write_text({text})\n"


def checkout(folder: Path, text: str, *, ships: str = "1,2\n") -> Build:
    """One file that ships, and a program that writes it with a text."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "scripts").mkdir()
    (folder / "scripts" / "note.txt").write_text("")
    (folder / "table.csv").write_text(ships)
    (folder / ".gitignore").write_text("build/\n")
    (folder / "write.py").write_text(WRITE.format(text=text))
    for words in (("add", "-A"), ("-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return Build(root=folder, stages=(stage(),), by_hand=(), shipped=())


def stage(*, needs: str = "", sample: str = "") -> Stage:
    return Stage(
        name="table",
        command="write",
        writes=("table.csv",),
        takes="no time",
        needs=needs,
        sample=sample,
        sample_writes="table.csv" if sample else "",
    )


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


@pytest.mark.parametrize(
    ("text", "result", "rows"),
    [
        ("'1,2\\n'", EQUAL, ""),
        ("'3,4\\n'", IN_PART, "1 of 1 made, 3 ship"),
        ("'1,2\\n3,5\\n'", DIFFERS, "1 of 2 made, 3 ship"),
        ("''", DIFFERS, "0 of 0 made, 3 ship"),
    ],
)
def test_rows_of_a_sample_are_compared(text: str, result: str, rows: str, tmp_path: Path) -> None:
    """A sample brings back some rows, all of which ship; nothing is no part of a file."""
    source = checkout(
        tmp_path / "own", text, ships="1,2\n" if result == EQUAL else "1,2\n3,4\n5,6\n"
    )
    sampled = stage(sample="write")
    outcome = rebuilt(replace(source, stages=(sampled,)), sampled, tmp_path / "clone")
    assert (outcome.result, outcome.rows) == (result, rows)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("""'{"a": 1, "b": [2, 3], "c": 5}'""", EQUAL),
        ("""'{"a": 1, "b": [2, 4], "c": 4}'""", DIFFERS),
        (None, FAILED),
    ],
)
def test_parts_of_a_file_stay_and_are_compared(
    text: str | None, result: str, tmp_path: Path
) -> None:
    """The program may read them; one that writes nothing has brought nothing back."""
    ships = '{"a": 1, "b": [2, 3], "c": 4}'
    source = checkout(tmp_path / "own", text or "''", ships=ships)
    parts = replace(stage(), writes=("table.csv#a", "table.csv#b"), command="write")
    if text is None:
        parts = replace(parts, command="this")  # prints a poem
    outcome = rebuilt(replace(source, stages=(parts,)), parts, tmp_path / "clone")
    assert (outcome.result, outcome.file) == (result, "table.csv#a, table.csv#b")


def test_a_clone_that_stays_keeps_what_git_ignores(tmp_path: Path) -> None:
    """Fits of one stage serve the next; files of git are those of the last commit."""
    source, clone = checkout(tmp_path / "own", "'1,3\\n'"), tmp_path / "clone"
    assert rebuilt(source, stage(), clone).result == DIFFERS
    (clone / "build").mkdir()
    (clone / "build" / "fit.json").write_text("{}")
    (clone / "new.csv").write_text("")

    outcome = rebuilt(source, stage(), clone)
    assert (outcome.result, outcome.why) == (
        DIFFERS,
        "1 of 2 numbers differ, by 33 % in the median and 33 % at most",
    )
    assert (clone / "build" / "fit.json").exists()
    assert not (clone / "new.csv").exists()


def test_the_stored_results_are_of_stages() -> None:
    names = {each.name for each in STAGES}
    assert set(json.loads(RESULT.read_text(encoding="utf-8"))) <= names
