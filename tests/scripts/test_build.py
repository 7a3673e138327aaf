import json
import re
import subprocess
from pathlib import Path

import pytest

from scripts.build import PART, ROOT, Build, main
from scripts.stages import STAGES, Stage

MAKE_TABLE = """
from pathlib import Path
Path("data/table.csv").write_text(Path("data/rows.txt").read_text().upper())
"""
MAKE_PAGE = """
import json
from pathlib import Path
text = Path("data/table.csv").read_text()
Path("page.md").write_text(text)
Path("fit.json").write_text(json.dumps({"a": {"b": text}, "other": 1}))
"""
FILL = """
from pathlib import Path
page = Path("filled.md")
page.write_text(page.read_text().replace("old", "new"))
"""


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A checkout of two stages, each of which was run once."""
    (tmp_path / "data").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "data/rows.txt").write_text("rows")
    (tmp_path / "make_table.py").write_text(MAKE_TABLE)
    (tmp_path / "make_page.py").write_text(MAKE_PAGE)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    stages = (
        Stage(
            name="table",
            command="make_table",
            reads=("data/*.txt",),
            writes=("data/table.csv",),
            takes="no time",
        ),
        Stage(
            name="page",
            command="make_page",
            reads=("data/table.csv",),
            writes=("page.md", "fit.json#a/b"),
            takes="no time",
            sample="make_table",
        ),
        Stage(
            name="outside",
            command="make_rows FOLDER",
            writes=("data/rows.txt",),
            takes="no time",
            needs="rows of others",
        ),
    )
    build = Build(root=tmp_path, stages=stages, by_hand=("README.md",), shipped=("data/*",))
    for stage in build.stages:
        if not stage.needs:
            build.run(stage)
        build.note(stage)
    return build


def commit_all(build: Build) -> None:
    subprocess.run(["git", "add", "-A"], cwd=build.root, check=True)


def test_nothing_is_stale_after_a_build(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    commit_all(build)

    assert main(["--check"], build) == 0
    assert "nothing is stale: 3 stages" in capsys.readouterr().out


def test_a_changed_input_makes_a_stage_stale(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    (build.root / "data/rows.txt").write_text("others")

    assert main(["--check"], build) == 1
    printed = capsys.readouterr().out
    assert "stale: reads data/rows.txt, which has changed" in printed
    assert "page " not in printed  # its own input has not changed yet


def test_a_deleted_file_comes_back_equal_from_its_stage(build: Build) -> None:
    file = build.root / "data/table.csv"
    before = file.read_bytes()
    file.unlink()
    assert build.stale(build.stages[0]) == ["writes data/table.csv, which is gone"]

    assert main(["--from", "table", "--check"], build) == 0
    assert file.read_bytes() == before


def test_a_later_stage_runs_if_what_it_reads_has_changed(build: Build) -> None:
    (build.root / "data/rows.txt").write_text("others")

    with pytest.raises(SystemExit, match="outside needs rows of others"):
        main(["--from", "table"], build)
    assert (build.root / "page.md").read_text() == "OTHERS"


def test_a_part_of_a_file_is_told_from_the_rest(build: Build) -> None:
    file = build.root / "fit.json"
    values = json.loads(file.read_text())
    file.write_text(json.dumps(values | {"other": 2}))
    assert build.stale(build.stages[1]) == []

    file.write_text(json.dumps(values | {"a": {"b": "x"}}))
    assert build.stale(build.stages[1]) == ["writes fit.json#a/b, which has changed"]


def test_what_is_adopted_is_said_not_to_have_run(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    (build.root / "data/rows.txt").write_text("others")

    main(["--adopt", "table", "--because", "it takes days"], build)
    assert re.search("^table +not run: it takes days$", capsys.readouterr().out, re.MULTILINE)
    main(["--from", "table", "--only"], build)
    assert re.search("^table +made on 20", capsys.readouterr().out, re.MULTILINE)


def test_what_is_adopted_has_a_reason(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--adopt", "table"], build)
    assert "--adopt STAGE and --because WORDS go together" in capsys.readouterr().err


def test_a_page_that_people_write_comes_from_the_last_commit_and_is_filled(build: Build) -> None:
    """A program that fills in a page cannot write the rest of it."""
    page = build.root / "filled.md"
    (build.root / "fill.py").write_text(FILL)
    page.write_text("by hand: old")
    fill = Stage(name="fill", command="fill", writes=("filled.md",), takes="no time", fills=True)
    commit_all(build)
    who = ("-c", "user.name=a", "-c", "user.email=b")
    subprocess.run(["git", *who, "commit", "-qm", "c"], cwd=build.root, check=True)
    page.unlink()

    build.run(fill)
    assert page.read_text() == "by hand: new"


def test_a_sample_is_no_build(build: Build) -> None:
    (build.root / "page.md").unlink()

    assert main(["--from", "page", "--sample", "--check"], build) == 1


def test_a_file_without_a_maker_is_named(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    (build.root / "data/new.csv").write_text("1")
    commit_all(build)

    assert main(["--check"], build) == 1
    assert "data/new.csv ships, and no stage" in capsys.readouterr().out


def test_a_stage_that_needs_what_no_checkout_has_says_what(build: Build) -> None:
    with pytest.raises(SystemExit, match="needs rows of others; run it by hand"):
        main(["--from", "outside"], build)


def test_each_command_is_a_program_that_exists() -> None:
    for stage in STAGES:
        program = stage.command.split()[0]
        place = ROOT / program.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), stage.name


def test_each_stage_reads_what_ships_or_what_a_stage_writes() -> None:
    build = Build(root=ROOT)
    for stage in STAGES:
        for glob in (*stage.reads, *stage.writes):
            assert build.hashes([glob]), f"{stage.name}: {glob} names no file"


def test_no_stage_reads_what_a_later_one_writes() -> None:
    """Else each round of all stages would give other numbers."""
    build = Build(root=ROOT)
    later: set[str] = set()
    for stage in reversed(STAGES):
        for place in build.hashes(stage.reads):
            circles = [name for name in later if _overlap(place, name)]
            assert not circles, f"{stage.name} reads {place}"
        later |= set(build.hashes(stage.writes))


def _overlap(first: str, second: str) -> bool:
    """Whether two files or parts of files have anything in common."""
    whole = {name.partition(PART)[0] for name in (first, second)}
    if len(whole) > 1:
        return False
    parts = [name.partition(PART)[2].split("/") for name in (first, second)]
    return all(not left or not right or left == right for left, right in zip(*parts, strict=False))


def test_every_shipped_file_has_a_maker() -> None:
    assert Build(root=ROOT).without_maker() == []


def test_nothing_that_ships_is_stale(capsys: pytest.CaptureFixture[str]) -> None:
    """If it is: run the stages that it names, by `python -m scripts.build --from STAGE`."""
    status = main(["--check"])
    assert (status, capsys.readouterr().out) == (0, f"nothing is stale: {len(STAGES)} stages\n")


def test_a_stage_that_did_not_run_says_why() -> None:
    for name, ran in Build(root=ROOT).record().items():
        assert bool(ran["date"]) != bool(ran["because"]), name
