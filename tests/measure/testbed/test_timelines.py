"""Chrome timelines that TensorFlow makes of real steps, against the RunMetadata of these."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client.timeline import Timeline

from driple.async_sgd.compiled import compile_job
from driple.async_sgd.jobtrace import JobTrace, Resource
from driple.async_sgd.overhead import Overhead
from driple.async_sgd.scaling import ScaledCluster, simulate_workers
from driple.errors import TraceError
from driple.measure.testbed.profile import read_recorded
from tests.measure.records import RECORDS, traced


def timeline(record: bytes, *, show_memory: bool = True) -> str:
    chart = Timeline(config_pb2.RunMetadata.FromString(record).step_stats)
    return str(chart.generate_chrome_trace_format(show_memory=show_memory))


def read(texts: list[str], folder: Path) -> JobTrace:
    files = [folder / f"timeline-{i}.json" for i in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return read_recorded(files, batch_size=32, bytes_per_s=1e9, step_s=None)


def what(trace: JobTrace) -> Counter[tuple[int, int]]:
    """How many ops of each resource, transfers by their bytes."""
    return Counter(zip(trace.resources.tolist(), trace.sizes.tolist(), strict=True))


@pytest.mark.parametrize(
    ("word", "other", "refusal"),
    [
        ('"ts": 1', '"ts": ' + "9" * 400, "is no Chrome timeline of TensorFlow"),
        ("size: 5", "size: 99999999999999999999", "is no Chrome timeline of TensorFlow"),
        ('"X"', "[]", "holds no ops of TensorFlow"),
    ],
)
def test_numbers_that_no_step_has_are_refused(
    word: str, other: str, refusal: str, tmp_path: Path
) -> None:
    texts = [timeline(record) for record in RECORDS]
    assert word in texts[0]
    with pytest.raises(TraceError, match=refusal):
        read([texts[0].replace(word, other), *texts[1:]], tmp_path)


def test_a_timeline_tells_the_same_ops_and_bytes(tmp_path: Path) -> None:
    known, timelines_trace = (
        traced(RECORDS),
        read([timeline(record) for record in RECORDS], tmp_path),
    )
    assert what(timelines_trace) == what(known)
    kept = ~np.isin(timelines_trace.resources, (Resource.DOWNLINK, Resource.UPLINK))
    place = {name: i for i, name in enumerate(known.names)}
    same = [place[name] for name, is_op in zip(timelines_trace.names, kept, strict=True) if is_op]
    assert timelines_trace.start_s[:, kept] == pytest.approx(known.start_s[:, same], abs=2e-6)
    assert timelines_trace.end_s[:, kept] == pytest.approx(known.end_s[:, same], abs=2e-6)


def test_transfers_are_over_when_they_are_read(tmp_path: Path) -> None:
    """As in the RunMetadata: each after its sender, and before its readers."""
    imported = read([timeline(record) for record in RECORDS], tmp_path)
    sources, targets = imported.edges.T
    assert (imported.end_s[:, targets] >= imported.end_s[:, sources] - 5e-6).all()
    is_op = imported.resources[targets] < Resource.DOWNLINK
    late = imported.start_s[:, targets] - imported.end_s[:, sources]
    assert (late[:, is_op] >= -5e-6).all()


def test_it_predicts_what_the_run_metadata_does(tmp_path: Path) -> None:
    """On links that are the bottleneck, where order and bytes of transfers matter most.

    Not to the last percent: these records are of links without limit, where all parameters came
    within half a millisecond, so that times do not tell which came first.
    """
    traces = traced(RECORDS), read([timeline(record) for record in RECORDS], tmp_path)
    for workers in (1, 4):
        cluster = ScaledCluster(num_workers=workers, bytes_per_s=2e7)
        known, imported_s = (
            simulate_workers(compile_job(trace, Overhead()), cluster, num_steps=200).step_s
            for trace in traces
        )
        assert imported_s == pytest.approx(known, rel=0.05)


def without(text: str, task: str) -> str:
    """A timeline without what a task received."""
    content: dict[str, Any] = json.loads(text)
    pids = {
        event["pid"]
        for event in content["traceEvents"]
        if event["name"] == "process_name" and f"job:{task}/" in event["args"]["name"]
    }
    content["traceEvents"] = [
        event
        for event in content["traceEvents"]
        if not (event["name"] == "RecvTensor" and event["pid"] in pids)
    ]
    return json.dumps(content)


def test_a_step_without_all_transfers_is_left_out(tmp_path: Path) -> None:
    texts = [timeline(record) for record in RECORDS]
    trace = read([*texts[:2], without(texts[2], "ps")], tmp_path)
    assert trace.num_steps == 2
    with pytest.raises(TraceError, match="ps:0 reads 9 tensors of other devices, and received 0"):
        read([without(text, "ps") for text in texts], tmp_path)


def test_what_a_task_received_and_nothing_reads_is_refused(tmp_path: Path) -> None:
    """Such as a worker's tensors, where a damaged file has other names of what it reads."""
    text = timeline(RECORDS[0]).replace("_S", "_X")
    with pytest.raises(TraceError, match=r"reads \d+ tensors of other devices, and received \d+"):
        read([text], tmp_path)


def test_what_is_no_such_timeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="show_memory=True"):
        read([timeline(record, show_memory=False) for record in RECORDS], tmp_path)
    for text in ("{", "[]", '{"traceEvents": 3}', '{"traceEvents": [{"pid": 1}]}', "[" * 10**5):
        with pytest.raises(TraceError, match="no Chrome timeline"):
            read([text], tmp_path)
    with pytest.raises(TraceError, match="holds no ops"):
        read(['{"traceEvents": []}'], tmp_path)
    (tmp_path / "a.pb").write_bytes(RECORDS[0])
    (tmp_path / "b.json").write_text("{}")
    files = [tmp_path / "a.pb", tmp_path / "b.json"]
    with pytest.raises(TraceError, match="give one kind"):
        read_recorded(files, batch_size=1, bytes_per_s=1, step_s=None)
