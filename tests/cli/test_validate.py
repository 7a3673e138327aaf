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
    rows = (PUBLISHED / "driple_paper.csv").read_text().splitlines()
    (folder / "runs/published/driple_paper.csv").write_text("\n".join(rows[:6]) + "\n")
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
