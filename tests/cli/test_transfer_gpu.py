"""`driple transfer --from gpu`: runs of one's own tune what the simulator knows of a GPU."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from driple.catalog.fields import TUNED
from tests.api.test_schema import errors_of
from tests.cli.test_main import ROOT, driple, refused

RESNET20 = ROOT / "datasets/examples/resnet20.pbtxt"
RESNET50 = ROOT / "datasets/examples/resnet50.pbtxt"
SLOWER = 2.0  # times, which published runs of the V100 hold back a little
HEAD = "job,setting,seconds,batch_size\n"


def predicted(*arguments: object) -> float:
    """Seconds of a step, as a user sees them."""
    shown = driple("predict", *arguments, "--json")
    assert shown.returncode == 0, shown.stderr
    return float(json.loads(shown.stdout)["answers"][0]["iteration_time_s"]["value"])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six runs of three jobs, each slower than the simulator says; two of other devices."""
    file = tmp_path_factory.mktemp("runs") / "runs.csv"
    jobs = [(RESNET20, None), (RESNET50, None), ("resnet18", 16), ("resnet18", 64)]
    lines = []
    for job, batch in jobs:
        options = () if batch is None else ("--batch-size", batch)
        seconds = SLOWER * predicted(job, "--setting", "1xV100", *options)
        lines.append(f"{job},1xV100,{seconds},{batch or ''}\n")
    lines += [lines[0], lines[1], f"{RESNET20},1xA100,0.1,\n", f"{RESNET20},8xV100,0.1,\n"]
    file.write_text(HEAD + "".join(lines))
    return file


def test_the_written_row_makes_predictions_right_and_answers_state_it(
    table: Path, tmp_path: Path
) -> None:
    command = (
        *("transfer", "--from", "gpu", "--to", "1xV100", "--dataset", table),
        *("-o", tmp_path / "tuned"),
    )
    shown = driple(*command)
    assert shown.returncode == 0, shown.stderr
    assert "1 of 8 rows are of other devices" in shown.stderr
    assert "1 row of several devices" in shown.stderr
    assert "V100, 6 runs: median error" in shown.stdout
    result = json.loads(driple(*command, "--json").stdout)
    assert errors_of(result) == []
    assert result["helps"]
    assert result["before_median_pct"] == pytest.approx(100 * (1 - 1 / SLOWER), abs=1)
    file = Path(result["written"])
    (row,) = tomllib.loads(file.read_text())["devices"]
    assert {f"tuned_{name}" for name in TUNED} <= set(row)
    for job in (RESNET20, RESNET50):
        usual = predicted(job, "--setting", "1xV100")
        own = predicted(job, "--setting", "1xV100", "--catalog", file)
        assert own == pytest.approx(SLOWER * usual, rel=0.15)
    explained = driple("predict", RESNET50, "--setting", "1xV100", "--catalog", file, "--explain")
    assert f"V100 is tuned by {file}" in explained.stdout + explained.stderr
    assert "6 runs, each predicted by the others" in explained.stdout + explained.stderr


def test_a_second_tuning_starts_from_the_untuned_device(table: Path, tmp_path: Path) -> None:
    command = ("transfer", "--from", "gpu", "--to", "1xV100", "--dataset", table, "--json")
    first = json.loads(driple(*command, "-o", tmp_path).stdout)
    again = driple(*command, "-o", tmp_path, "--set", f"catalog={tmp_path / 'device.toml'}")
    assert json.loads(again.stdout)["factors"] == first["factors"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--to", "1xV100"), "--from gpu needs --dataset FILE.csv"),
        (("--to", "1xV100", "--workloads", 20), "--workloads: of inspectors"),
        (("--to", "1xA100", "--dataset", "TABLE"), "1 of 8 rows are of one A100"),
        (("--to", "CPU-P1w2", "--dataset", "TABLE"), "0 of 8 rows are of one CPU"),
        (("--to", "V100-P2w2/he-40G", "--dataset", "TABLE"), "unlike"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    table: Path, arguments: tuple[object, ...], words: str
) -> None:
    given = [table if one == "TABLE" else one for one in arguments]
    assert words in refused("transfer", "--from", "gpu", *given)


def test_a_tuned_device_is_answered_by_the_simulator(table: Path, tmp_path: Path) -> None:
    """No inspector has learned from the user's runs; and the host's speed has one source."""
    file = tmp_path / "mine.toml"
    factors = "".join(f"tuned_{name} = {2.0 if name == 'host' else 1.0}\n" for name in TUNED)
    file.write_text(
        f'format = 1\n[[devices]]\nname = "V100"\n{factors}tuned_runs = 6\ntuned_median_pct = 3\n'
        'tuned_p90_pct = 9\nsource = "tuned to 6 runs of mine"\ndate = 2026-01-31\n'
    )
    shown = driple("predict", RESNET20, "--setting", "V100-P1w2", "--catalog", file, "--json")
    (answer,) = json.loads(shown.stdout)["answers"]
    assert answer["method"] == "simulator"
    assert "V100 is tuned to measurements of your own" in answer["reason"]["text"]
    words = refused(
        *("predict", RESNET20, "--setting", "1xV100", "--catalog", file, "--method", "simulator"),
        *("--set", "host_us_per_op=20"),
    )
    assert "give one of them" in words


def test_milliseconds_are_no_seconds(table: Path, tmp_path: Path) -> None:
    """Factors that would make up for a wrong unit are never written."""
    head, *lines = table.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    wrong = tmp_path / "wrong.csv"
    for scale, words in ((1000, "times as long as"), (1e-3, "times as short as")):
        rows = [",".join([*row[:2], str(scale * float(row[2])), *row[3:]]) for row in cells]
        wrong.write_text("\n".join([head, *rows]) + "\n")
        output = tmp_path / "tuned"
        ask = ("transfer", "--from", "gpu", "--to", "1xV100", "--dataset", wrong, "-o", output)
        shown = driple(*ask)
        assert shown.returncode == 2
        assert words in shown.stderr
        assert "wrong.csv, line " in shown.stderr
        assert not output.exists()


def test_a_column_of_notes_is_remarked_on_and_a_misspelt_one_refused(
    table: Path, tmp_path: Path
) -> None:
    """What is not read would else change the factors without a word."""
    head, *lines = table.read_text().splitlines()
    file = tmp_path / "named.csv"
    ask = ("transfer", "--from", "gpu", "--to", "1xV100", "--dataset", file, "-o", tmp_path)
    for name in ("notes", "precison"):
        file.write_text("\n".join([f"{head},{name}", *(f"{line},tf32" for line in lines)]) + "\n")
        shown = driple(*ask)
        if name == "notes":
            assert shown.returncode == 0, shown.stderr
            assert f"columns of {file} that are not read: notes" in shown.stderr
        else:
            assert shown.returncode == 2
            assert "column precison is not known; if it is precision, call it so" in shown.stderr
