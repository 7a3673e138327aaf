"""Published runs are read as they stand in the tables."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from driple.catalog import DEVICES
from driple.errors import ConfigError
from driple.runs.tensorflow_runs import read_tensorflow_runs
from scripts.published.rows.cells import read_raw

DATA = Path(__file__).parents[2] / "datasets" / "runs" / "published"


def test_every_source_and_kind_is_there() -> None:
    runs = read_tensorflow_runs(DATA)
    kinds = Counter((run.source, run.kind) for run in runs)
    assert set(kinds) == {
        ("lambda", "single"), ("lambda", "ring"), ("tf-official", "single"),
        ("tf-official", "ring"), ("azure", "single"), ("azure", "ring"),
        ("zeng", "single"), ("zeng", "servers"), ("u39kun", "single"),
    }  # fmt: skip
    for run in runs:
        assert set(run.devices) <= set(DEVICES)
        assert run.step_s > 0
        assert (len(run.devices) == 1) == (run.kind == "single")
        assert (run.num_servers > 0) == (run.kind == "servers")


def test_a_row_says_what_the_table_says() -> None:
    """RTX 4000 with VGG16: one row of Zeng's workbook by hand."""
    rows = read_raw(DATA / "zeng_iteration_time.csv.gz")
    row = next(
        r for r in rows if r["platform"] == "heterogeneous-gpu-10G" and r["model"] == "vgg16"
    )
    (run,) = [
        run
        for run in read_tensorflow_runs(DATA)
        if run.source == "zeng"
        and run.link == "10G"
        and run.job == "vgg16"
        and run.batch_size == int(row["batch_per_worker"])
    ]
    assert run.step_s == float(row["measured_s"])
    assert run.devices == ("RTX4000", "RTX4000", "GTX1060")


def test_damaged_and_missing_tables_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        read_tensorflow_runs(tmp_path)
    file = tmp_path / "lambda_tf_cnn_benchmarks.csv.gz"
    file.write_bytes(b"no gzip")
    with pytest.raises(ConfigError, match="cannot read"):
        read_tensorflow_runs(tmp_path)
    file.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(ConfigError, match="column model is missing"):
        read_tensorflow_runs(tmp_path)
