"""Records as workloads of a data set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.dataset.store import read_dataset, write_dataset
from driple.errors import DatasetError
from driple.graph import read_graph
from driple.measure.record.dataset import RecordedWorkload, with_recorded
from tests.measure.record.records import WALL_AHEAD_NS
from tests.measure.record.test_use import _host

GRAPH = Path(__file__).parents[3] / "datasets/examples"


@pytest.fixture(scope="module")
def workload() -> RecordedWorkload:
    """A small graph of the examples, on a setting of CPUs."""
    file = min(GRAPH.glob("*.pbtxt*"), key=lambda path: path.stat().st_size)
    return RecordedWorkload(
        name="mine",
        family="mine",
        setting=Setting.parse("CPU-P1w2").name,
        graph=read_graph(file),
        facts={"batch_size": 8},
    )


def test_repeats_count_by_their_median_and_their_spread_is_stored(
    tmp_path: Path, workload: RecordedWorkload
) -> None:
    """Three runs, one after the other, with 100, 80 and 60 MB/s."""
    records = [
        _host(tmp_path / str(i), scale, wall_ahead_ns=[WALL_AHEAD_NS + i * 100_000_000_000])
        for i, scale in enumerate((1.0, 0.8, 0.6))
    ]
    data, uses = with_recorded(records, workload, name="own")
    assert len(uses) == 3
    example = data.examples[0]
    assert example.label_source == data.about.label_source == "measured"
    assert example.targets.values[2, 0] == pytest.approx(80, rel=0.02)
    assert example.details["repeats"] == 3
    assert data.about.repeatability is not None
    assert data.about.repeatability.smape_pct["net_tx.burst_amount"] > 10


def test_a_data_set_grows_by_a_job_and_is_read_again(
    tmp_path: Path, workload: RecordedWorkload
) -> None:
    """Written and read; the same name replaces, and with another graph is refused."""
    records = [_host(tmp_path / "r")]
    data, _ = with_recorded(records, workload, name="own")
    more, _ = with_recorded(records, replace(workload, name="other"), name="own", dataset=data)
    again, _ = with_recorded(records, replace(workload, name="other"), name="own", dataset=more)
    write_dataset(again, tmp_path / "own")
    stored = read_dataset(tmp_path / "own")
    assert stored.workloads == ("mine", "other")
    assert stored.about.num_runs == 2
    np.testing.assert_allclose(stored.targets(), again.targets())
    renamed = replace(workload, graph=replace(workload.graph, layout="ring"))
    with pytest.raises(DatasetError, match="mine with another graph; name this one with"):
        with_recorded(records, renamed, name="own", dataset=data)
    simulated = replace(data, about=replace(data.about, label_source="simulated"))
    with pytest.raises(DatasetError, match="records are measured; write to another folder"):
        with_recorded(records, workload, name="own", dataset=simulated)
