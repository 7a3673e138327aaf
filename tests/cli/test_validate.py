"""`driple validate` on a part of the published measurements."""

import csv
import gzip
import io
import json
import shutil
from pathlib import Path

import pytest

from tests.cli.test_main import ROOT, driple, refused

PUBLISHED = ROOT / "datasets/runs/published"


@pytest.fixture
def little(tmp_path: Path) -> Path:
    """Published data of one source only, so that fits take seconds."""
    folder = tmp_path / "data"
    shutil.copytree(ROOT / "datasets/graphs", folder / "graphs")
    (folder / "runs/published").mkdir(parents=True)
    for file in PUBLISHED.glob("*.csv.gz"):
        with gzip.open(file, "rt") as stream:
            rows = list(csv.reader(stream))
        kept = rows if file.name.startswith(("zeng_iteration", "network")) else rows[:1]
        if file.name.startswith("heldout_tensorflow"):
            kept = [row for i, row in enumerate(rows) if not i or row[0].startswith("zeng")]
        text = io.StringIO()
        csv.writer(text).writerows(kept)
        (folder / "runs/published" / file.name).write_bytes(gzip.compress(text.getvalue().encode()))
    facts = (PUBLISHED / "driple_paper.csv").read_text().splitlines()
    (folder / "runs/published/driple_paper.csv").write_text("\n".join(facts[:6]) + "\n")
    return folder


def test_validate_prints_errors_of_what_was_held_out(little: Path) -> None:
    done = driple("validate", "--datasets", little, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    kinds = {(row["kind"], row["held_out"]) for row in result["errors"]}
    assert ("single", "model") in kinds
    assert ("servers", "model") in kinds
    assert all(row["median_pct"] < 60 for row in result["errors"] if row["held_out"] == "nothing")
    assert len(result["facts"]) == 5
    assert "stay empty" in done.stderr


def test_validate_without_the_data_says_what_is_missing(tmp_path: Path) -> None:
    assert "come with a checkout" in refused("validate", "--datasets", tmp_path)


@pytest.fixture
def four_rows(tmp_path: Path) -> dict[str, float]:
    """A folder `data` with four published rows of one model, and their measured seconds by id."""
    published = tmp_path / "data/runs/published"
    published.mkdir(parents=True)
    (published / "steps").symlink_to(PUBLISHED / "steps")
    with gzip.open(PUBLISHED / "pytorch_rows.csv.gz", "rt", newline="") as file:
        rows = csv.DictReader(file)
        known = (row for row in rows if not row["unused_why"])
        some = [row for row in known if row["job"] == "timm:resnet50"][:4]
    text = io.StringIO()
    writer = csv.DictWriter(text, some[0])
    writer.writeheader()
    writer.writerows(some)
    (published / "pytorch_rows.csv.gz").write_bytes(gzip.compress(text.getvalue().encode()))
    return {row["id"]: float(row["step_s"]) for row in some}


def test_an_entry_is_scored_alone(tmp_path: Path, four_rows: dict[str, float]) -> None:
    """Three rows are 10, 20 and 40 % off, the fourth is refused; intervals hold two of three."""
    given = tmp_path / "given.csv"
    ends = {1.1: (0.9, 1.8), 0.8: (0.7, 0.9), 1.4: (0.7, 2.8)}
    lines = [
        f"{row_id},family,{factor * step_s},{low * step_s},{high * step_s}"
        for (row_id, step_s), (factor, (low, high)) in zip(
            four_rows.items(), ends.items(), strict=False
        )
    ]
    given.write_text("\n".join(["id,split,seconds,low,high", *lines]) + "\n")
    done = driple("validate", "--datasets", tmp_path / "data", "--against", given, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    (entry,) = result["entry"]
    assert (entry["split"], entry["predictor"]) == ("family", "given")
    assert (entry["rows"], entry["refused"]) == (4, 1)
    assert entry["median_pct"] == pytest.approx(20, rel=1e-3)
    assert entry["p90_pct"] == pytest.approx(20 + 0.8 * 20, rel=1e-3)
    assert entry["coverage_pct"] == pytest.approx(200 / 3)
    assert entry["width"] == pytest.approx(2, rel=1e-3)
    assert result["errors"] == result["facts"] == []
    assert {score["predictor"] for score in result["scores"]} == {"given"}
    plain = driple("validate", "--datasets", tmp_path / "data", "--against", given)
    assert plain.stdout.startswith("given predictions: |predicted - measured| / measured")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,seconds\nelsewhere,1\n", "line 2, column id: no row has the id 'elsewhere'"),
        ("id,step_s\nx,1\n", "line 1: column seconds is missing; there are id, step_s"),
        ("id,split,seconds\n{row},luck,1\n", "line 2, column split: needs one of family"),
        ("id,seconds\n{row},-1\n", "line 2, column seconds: needs a number above 0"),
        ("id,split,seconds\n{row},size,1\n", "no prediction of a split that is scored"),
    ],
)
def test_a_wrong_entry_is_refused_in_one_line(
    tmp_path: Path, four_rows: dict[str, float], text: str, words: str
) -> None:
    given = tmp_path / "given.csv"
    given.write_text(text.format(row=next(iter(four_rows))))
    said = refused("validate", "--datasets", tmp_path / "data", "--against", given)
    assert words in said


def test_an_entry_needs_rows(little: Path, tmp_path: Path) -> None:
    given = tmp_path / "given.csv"
    given.write_text("id,seconds\na,1\n")
    assert "there are no rows to score it on" in refused(
        "validate", "--datasets", little, "--against", given
    )
