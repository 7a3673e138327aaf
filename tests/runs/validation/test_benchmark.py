"""Rows, splits, metrics and baselines of the benchmark, and what a wrong table says."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from driple.api.predicting import predict
from driple.api.validating import validate
from driple.cli.main import app
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.jobs.load import JobOptions
from driple.remarks import Remark
from driple.render.remarks import sentence, sentences
from driple.runs.measured_run import MeasuredRun, family_of_job
from driple.runs.steps import LoadedSteps
from driple.runs.users_table import read_runs
from driple.runs.validation.baselines import BASELINES
from driple.runs.validation.contest import run_contest
from driple.runs.validation.metrics import (
    family_weights,
    kendall_tau,
    score,
    weighted_quantile,
)
from driple.runs.validation.predictions import (
    Predictions,
    RowPrediction,
    read_predictions,
)
from driple.runs.validation.shipped import ROWS, STEPS
from driple.runs.validation.simulated import simulate_rows
from driple.runs.validation.splits import parts_of, read_folds
from driple.runs.validation.work import work_of
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from scripts.fits.writing import write_predictions
from tests.api.test_schema import errors_of
from tests.simulate.jobs import net

DATASETS = Path(__file__).resolve().parents[3] / "datasets"
HEADER = "id,job,setting,seconds,family,batch_size,source\n"
DEPTHS = {"thin": 2, "middle": 4, "thick": 8}


class Nets:
    """Steps of small made-up networks, by name and batch size."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def lacks(self, row: MeasuredRun) -> str:
        return "" if row.job in DEPTHS else "no such net"

    def prepared(self, row: MeasuredRun) -> PreparedJob:
        self.asked.append(row.job)
        return PreparedJob(net(row.batch_size or 1, depth=DEPTHS[row.job]))


def table(path: Path, lines: str) -> Path:
    path.write_text(lines, encoding="utf-8")
    return path


def some_rows(tmp_path: Path) -> list[MeasuredRun]:
    """Each net on two devices at three batch sizes, with the times of the shipped simulator."""
    lines = [
        f"{job}-{device}-{batch},{job},1x{device},1,{job},{batch},here"
        for job in DEPTHS
        for device in ("V100", "A100")
        for batch in (8, 32, 128)
    ]
    rows = read_runs(table(tmp_path / "rows.csv", HEADER + "\n".join(lines) + "\n"))
    seconds = simulate_rows(rows, Nets(), shipped_calibration())
    return [replace(row, step_s=one) for row, one in zip(rows, seconds.tolist(), strict=True)]


def test_a_row_is_read_with_its_setting_and_its_defaults(tmp_path: Path) -> None:
    text = "job,setting,seconds\ntimm:resnet50,8xa100,0.25\ntimm:vit_base_patch16_224,V100,1\n"
    ring, servers = read_runs(table(tmp_path / "rows.csv", text))
    assert (ring.id, ring.family, ring.device, ring.num_devices) == ("2", "resnet", "A100", 8)
    assert (ring.scheme, servers.scheme, servers.family) == ("ddp", "servers", "vit")
    assert family_of_job("hf:bert-base-uncased") == "bert"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "column job is missing"),
        ("job,setting\na,b\n", "line 1: column seconds is missing; there are job, setting"),
        ("job,setting,seconds\n", "no lines below its header"),
        ("job,setting,seconds,job\n", "column job stands there twice"),
        ("job,setting,seconds\na,1xA100\n", "line 2: 2 cells, the header has 3"),
        ("job,setting,seconds\na,1xA100,1\nb,1xA100,fast\n", "line 3, column seconds"),
        ("job,setting,seconds\na,1xA100,0\n", "needs a number above 0, got '0'"),
        ("job,setting,seconds\na,1xA100,nan\n", "got 'nan'"),
        ("job,setting,seconds\na,1xA1000000,1\n", "line 2, column setting"),
        ("job,setting,seconds\n,1xA100,1\n", "line 2, column job: the cell is empty"),
        ("job,setting,seconds,batch_size\na,1xA100,1,2.5\n", "needs a whole number, got '2.5'"),
        ("job,setting,seconds,mode\na,1xA100,1,both\n", "needs one of train, forward"),
        ("job,setting,seconds,device\na,1xA100,1,V100\n", "has a A100"),
        ("job,setting,seconds,compiled\na,1xA100,1,maybe\n", "needs true or false"),
        ("job,setting,seconds,input\na,1xA100,1,3x-2\n", "needs a shape of one sample"),
        ("id,job,setting,seconds\nx,a,1xA100,1\nx,a,1xA100,2\n", "two rows have the id x"),
        ('job,setting,seconds\n"a,1xA100,1\n', "cannot read"),
        *(
            (
                f"job,setting,seconds,{wrong}\na,1xA100,1,x\n",
                f"line 1: column {wrong} is not known; if it is {right}, call it so",
            )
            for wrong, right in {
                "precison": "precision",
                "Precision": "precision",
                "batch": "batch_size",
                "batch-size": "batch_size",
                "seq len": "seq_len",
                "optimiser": "optimizer",
                "activation_ckpt": "activation_checkpointing",
                "grad_acc": "grad_accumulation",
            }.items()
        ),
    ],
)
def test_a_wrong_table_names_line_and_column(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")) as caught:
        read_runs(table(tmp_path / "rows.csv", text))
    assert "rows.csv" in str(caught.value)


def test_columns_that_nothing_reads_are_remarked_on(tmp_path: Path) -> None:
    """Notes are no misspelt names, nor is a name like that of a column that is there."""
    text = "job,setting,seconds,batch_size,batch,notes,devices,gpu,\na,1xA100,1,8,16,x,8,y,0\n"
    said: list[Remark] = []
    (row,) = read_runs(table(tmp_path / "rows.csv", text), said.append)
    assert row.batch_size == 8
    start = f"columns of {tmp_path / 'rows.csv'} that are not read: "
    assert [*sentences(said)] == [start + "batch, notes, devices, gpu, (no name)"]
    read_runs(
        table(tmp_path / "rows.csv", "job,setting,seconds,device\na,1xA100,1,A100\n"), said.append
    )
    assert len(said) == 1
    read_predictions(table(tmp_path / "p.csv", "id,seconds,tool\na,1,t\n"), None, said.append)
    assert sentence(said[1]) == f"columns of {tmp_path / 'p.csv'} that are not read: tool"


def test_predictions_come_back_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    predictions = Predictions(
        {("family", "a"): RowPrediction(0.5), ("device", "a"): RowPrediction(0.25)}
    )
    file = tmp_path / "heldout.csv.gz"
    write_predictions(predictions, file)
    first = file.read_bytes()
    write_predictions(read_predictions(file, {"a"}), file)
    assert file.read_bytes() == first
    read_back = read_predictions(file)
    assert read_back.of("a", "device") == RowPrediction(0.25)
    assert read_back.of("a", "source") is None
    given = table(tmp_path / "given.csv", "id,seconds,low,high\na,2,1,4\n")
    assert read_predictions(given).of("a", "source") == RowPrediction(2.0, 1.0, 4.0)
    for text, words in (
        ("id,seconds\nb,1\n", "no row has the id 'b'"),
        ("id,seconds\na,1\na,2\n", "line 3, column id: row a has a prediction already"),
        ("id,seconds,low\na,1,0.5\n", "needs low and high"),
        ("id,seconds,low,high\na,1,2,1\n", "is below low"),
        ("id,seconds,split\na,1,luck\n", "needs one of family, device, source, nothing, size"),
        ("id,seconds,splt\na,1,family\n", "column splt is not known; if it is split, call it so"),
    ):
        with pytest.raises(ConfigError, match=words):
            read_predictions(table(given, text), {"a"})


def test_weights_and_quantiles_by_hand(tmp_path: Path) -> None:
    """Three rows of one family weigh as much as the only row of another; machine types too."""
    lines = "a,x,1xA100,1,f,1,s\nb,x,1xA100,1,f,2,s\nc,x,1xV100,1,f,1,s\nd,y,1xA100,1,g,1,s\n"
    rows = read_runs(table(tmp_path / "rows.csv", HEADER + lines))
    weights = family_weights(rows)
    assert weights == pytest.approx([0.125, 0.125, 0.25, 0.5])
    assert weighted_quantile(np.array([4.0, 3.0, 2.0, 1.0]), weights, 0.5) == 1.0
    assert weighted_quantile(np.array([4.0, 3.0, 2.0, 1.0]), weights, 0.9) == 4.0
    scored = score(
        rows, [RowPrediction(1.4), RowPrediction(1.3), RowPrediction(0.8), RowPrediction(1.1, 1, 2)]
    )
    assert scored.median_pct == pytest.approx(10)
    assert scored.p90_pct == pytest.approx(40)
    assert scored.signed_pct == pytest.approx(10)
    assert (scored.coverage_pct, scored.width) == (100, 2)


def test_kendall_tau_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(0)
    values, other = random.normal(size=20), random.integers(0, 5, size=20).astype(np.float64)
    assert kendall_tau(values, other) == pytest.approx(stats.kendalltau(values, other).statistic)
    assert kendall_tau(values, np.ones(20)) is None


def test_every_row_is_predicted_once_and_never_by_a_fit_that_saw_it(tmp_path: Path) -> None:
    rows = some_rows(tmp_path)
    for split, name in (("family", "family"), ("device", "device")):
        parts = parts_of(rows, split)
        assert sorted(i for part in parts for i in part.test) == list(range(len(rows)))
        for part in parts:
            seen = {getattr(rows[i], name) for i in part.train}
            assert not seen & {getattr(rows[i], name) for i in part.test}
    assert parts_of(rows, "source") == []  # nothing would remain
    folds = read_folds(table(tmp_path / "folds.csv", "family,fold\nthin,0\nmiddle,1\nthick,1\n"))
    assert [len(part.test) for part in parts_of(rows, "family", folds)] == [6, 12]


def test_the_simulator_is_the_one_that_users_ask(tmp_path: Path) -> None:
    """The same number as `driple predict`, but for the jitter of a different number of steps."""
    row = replace(some_rows(tmp_path)[-1], setting="8xA100/NVLink")
    (step_s,) = simulate_rows([row], Nets(), shipped_calibration())
    job = Nets().prepared(row)
    asked = simulate(job, Setting.parse(row.setting), shipped_calibration(), num_steps=100)
    assert step_s == pytest.approx(asked.iteration_time_s, rel=0.01)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_learns_what_it_can_express(name: str, tmp_path: Path) -> None:
    """Times at a constant share of the peak are found; trees interpolate."""
    rows = some_rows(tmp_path)
    work = work_of(rows, Nets())
    share_s = work.summed(work.compute_s) / 0.4
    timed = [replace(row, step_s=one) for row, one in zip(rows, share_s.tolist(), strict=True)]
    seconds = BASELINES[name](work, timed, work, timed)
    errors = np.abs(seconds / share_s - 1)
    assert np.median(errors) < (0.5 if name == "trees" else 0.1)
    assert (seconds > 0).all()


def test_another_tool_and_held_out_predictions_stand_beside_the_simulator(tmp_path: Path) -> None:
    rows = some_rows(tmp_path)
    held_out = Predictions({
        ("family", row.id): RowPrediction(1.2 * row.step_s) for row in rows
    })  # fmt: skip
    given = Predictions({("", row.id): RowPrediction(0.7 * row.step_s) for row in rows[:9]})
    contest = run_contest(
        rows, Nets(), calibration=shipped_calibration(), held_out=held_out, given=given
    )
    scores = {
        (one.split, one.predictor): one
        for one in contest.scores()
        if one.by == "task" and one.group == "single"
    }
    assert scores["nothing", "simulator"].median_pct == pytest.approx(0, abs=1e-6)
    assert scores["family", "simulator"].signed_pct == pytest.approx(20)
    assert scores["device", "given"].rows == 9
    assert scores["device", "given"].p90_pct == pytest.approx(30)
    assert {name for _, name in scores} == {"simulator", "given", *BASELINES}
    assert "9 of 18 rows" in sentence(contest.remarks[0])
    sizes = Predictions({("size", row.id): RowPrediction(row.step_s) for row in rows})
    other = run_contest(rows, Nets(), calibration=shipped_calibration(), given=sizes)
    assert sentences(other.remarks) == ("predictions given without size are not scored",)


def test_the_command_scores_a_table_of_ones_own(tmp_path: Path) -> None:
    """Two public models, made anew; JSON as the schema describes it."""
    pytest.importorskip("torch")
    text = HEADER + "".join(
        f"{model}-{device},{model},1x{device},0.05,{model[:6]},16,here\n"
        for model in ("resnet18", "mobilenet_v2")
        for device in ("V100", "A100")
    )
    rows = table(tmp_path / "rows.csv", text)
    given = table(tmp_path / "given.csv", "id,seconds,low,high\nresnet18-V100,0.05,0.04,0.06\n")
    line = ["validate", "--rows", str(rows), "--against", str(given), "--datasets", str(tmp_path)]
    done = CliRunner().invoke(app, [*line, "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert errors_of(result) == []
    (given_score,) = [
        one
        for one in result["scores"]
        if (one["by"], one["predictor"], one["split"]) == ("task", "given", "nothing")
    ]
    assert (given_score["rows"], given_score["median_pct"]) == (1, 0)
    assert (given_score["coverage_pct"], given_score["width"]) == (100, pytest.approx(1.5))
    assert [one["run"] for one in result["runs"]] == [
        f"{model}-{device}" for model in ("resnet18", "mobilenet_v2") for device in ("V100", "A100")
    ]
    first = result["runs"][0]
    (answer,) = predict("resnet18", "1xV100", options=JobOptions(batch_size=16)).answers
    stated = answer.to_dict()["iteration_time_s"]
    assert first["predicted_s"] == pytest.approx(stated["value"], rel=0.02)
    assert first["low_s"] == pytest.approx(stated["interval"]["low"], rel=0.02)
    assert first["high_s"] == pytest.approx(stated["interval"]["high"], rel=0.02)
    plain = CliRunner().invoke(app, line)
    assert "single, train" in plain.stdout
    assert plain.stdout.startswith("your runs")


def test_jobs_that_nobody_published_are_scored_beside_the_published_ones(tmp_path: Path) -> None:
    """Baselines learn from stored steps, and the user's own are read as `predict` reads them."""
    pytest.importorskip("torch")
    published = tmp_path / "runs" / "published"
    published.mkdir(parents=True)
    (published / STEPS).symlink_to(DATASETS / "runs" / "published" / STEPS)
    with gzip.open(
        DATASETS / "runs" / "published" / ROWS, "rt", encoding="utf-8", newline=""
    ) as file:
        head, *lines = file.read().splitlines(keepends=True)
    some = [line for line in lines if "mobilenetv2" in line][:40]
    with gzip.open(published / ROWS, "wt", encoding="utf-8", newline="") as file:
        file.write(head + "".join(some))
    rows = table(tmp_path / "mine.csv", "job,setting,seconds\nresnet18,1xA100,0.03\n")
    result = validate(tmp_path, rows=rows)
    (own,) = result.runs
    assert (own.run.id, own.run.job, own.run.step_s) == ("2", "resnet18", 0.03)
    low, high = own.prediction.low, own.prediction.high
    assert low is not None and high is not None
    assert low < own.prediction.seconds < high
    assert {one.predictor for one in result.scores} == {"simulator", *BASELINES}


def test_a_job_that_cannot_be_made_names_its_row(tmp_path: Path) -> None:
    """By file and line, as a wrong cell does, with its id if it has one; so does an option."""
    rows = table(tmp_path / "rows.csv", HEADER + "first,no_such_model,1xA100,1,x,8,s\n")
    with pytest.raises(ConfigError, match=r"rows.csv, line 2 \(first\), column job: "):
        work_of(read_runs(rows), LoadedSteps())
    text = "job,setting,seconds,optimizer\nresnet18,1xA100,1,\nresnet18,1xA100,1,mumentum\n"
    (_, wrong) = read_runs(table(rows, text))
    with pytest.raises(ConfigError, match=r"rows.csv, line 3, column optimizer: --optimizer must"):
        LoadedSteps().prepared(wrong)
