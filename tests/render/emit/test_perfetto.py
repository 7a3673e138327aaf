"""`--emit perfetto` is Chrome's Trace Event Format, and adds up to the answer's step."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from driple.api.predicting import Answer, predict
from driple.errors import ConfigError
from driple.render.emit.perfetto import perfetto_trace
from driple.trace.targets import RESOURCES
from tests.cli.test_main import driple as command
from tests.cli.test_main import refused

# Trace Event Format: what an event of each phase must have, and of which type.
FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "dur": (int, float)},
    "C": {"name": str, "pid": int, "ts": (int, float), "args": dict},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
}


@pytest.fixture(scope="module")
def answers() -> tuple[Answer, ...]:
    return predict("mobilenet_v2", ["8xH100", "1xT4"]).answers


@pytest.fixture(scope="module")
def events(answers: tuple[Answer, ...]) -> list[dict[str, Any]]:
    events_of_trace: list[dict[str, Any]] = json.loads(perfetto_trace(answers))["traceEvents"]
    return events_of_trace


def slices(events: list[dict[str, Any]], pid: int, tid: int) -> list[tuple[int, int, str]]:
    """Begin and end in nanoseconds, and name."""
    return [
        (round(1e3 * e["ts"]), round(1e3 * (e["ts"] + e["dur"])), e["name"])
        for e in events
        if e["ph"] == "X" and (e["pid"], e["tid"]) == (pid, tid)
    ]


def test_every_event_has_the_fields_of_the_format(events: list[dict[str, Any]]) -> None:
    for event in events:
        for name, kind in FIELDS[event["ph"]].items():
            assert isinstance(event[name], kind), event
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
    names = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} <= names
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {
        "mobilenet_v2 on 8xH100/NVLink (predicted)", "mobilenet_v2 on 1xT4 (predicted)",
    }  # fmt: skip


def test_slices_of_a_thread_nest_and_the_outer_comes_first(events: list[dict[str, Any]]) -> None:
    for pid in (1, 2):
        for tid in range(1, 7):
            around: list[int] = []
            last = (0, -(10**18))
            for begin, end, name in slices(events, pid, tid):
                assert (begin, -end) >= last, name
                last = (begin, -end)
                while around and around[-1] <= begin:
                    around.pop()
                assert not around or end <= around[-1], name
                around.append(end)


def test_bursts_and_idle_fill_the_step(
    events: list[dict[str, Any]], answers: tuple[Answer, ...]
) -> None:
    for pid, answer in enumerate(answers, 1):
        step = answer.step()
        assert step is not None
        for tid, resource in enumerate(RESOURCES, 3):
            rows = slices(events, pid, tid)
            assert rows[0][0] == 0
            assert rows[-1][1] == round(1e9 * step.step_s)
            assert all(left[1] == right[0] for left, right in pairwise(rows))
            usage = step.usage()[resource]
            lasted = sum(end - begin for begin, end, name in rows if name == "burst")
            assert lasted == pytest.approx(1e9 * usage.num_bursts * usage.burst_s, abs=10)


def test_counters_have_the_mean_of_the_step(
    events: list[dict[str, Any]], answers: tuple[Answer, ...]
) -> None:
    step = answers[0].step()
    assert step is not None
    names = {"device_util": "GPU (%)", "net_tx": "network sent (MB/s)"}
    for resource, name in names.items():
        values = [(e["ts"] / 1e6, *e["args"].values()) for e in events
                  if e["ph"] == "C" and e["pid"] == 1 and e["name"] == name]  # fmt: skip
        ends = [*(time for time, _ in values[1:]), step.step_s]
        total = sum(value * (end - begin) for (begin, value), end in zip(values, ends, strict=True))
        assert total / step.step_s == pytest.approx(step.usage()[resource].mean, rel=1e-3)


def test_ops_are_in_their_modules_and_phases(events: list[dict[str, Any]]) -> None:
    ops = [e for e in events if e.get("cat") == "op" and e["pid"] == 2]
    forward = [row for row in slices(events, 2, 1) if row[2] == "forward"]
    backward = [row for row in slices(events, 2, 1) if row[2] == "backward"]
    for op in ops:
        begin = round(1e3 * op["ts"])
        where = backward if "gradient" in op["name"] else forward + backward
        assert any(span[0] <= begin <= span[1] for span in where), op
    modules = {e["name"] for e in events if e.get("cat") == "module"}
    assert {"features", "layers"} <= modules


def test_the_command_prints_it_and_refuses_what_has_no_step() -> None:
    done = command("predict", "mobilenet_v2", "--setting", "1xA100", "--emit", "perfetto")
    trace = json.loads(done.stdout)
    assert trace["otherData"]["predictions"][0]["setting"] == "1xA100"
    assert "--emit must be one of" in refused("plan", "resnet50", "--emit", "perfetto")
    (server,) = predict("datasets/examples/resnet20.pbtxt", "1xCPU").answers
    with pytest.raises(ConfigError, match="needs a GPU setting"):
        perfetto_trace([server])
