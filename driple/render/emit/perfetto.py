"""One predicted step as a file for Perfetto (ui.perfetto.dev) and Chrome: Trace Event Format, JSON.

    Answer -> StepProfile, times of ops -> a process for each setting: phases, modules and ops,
    bursts and idle of the four resources, and a counter of each

Ops lie in the spans of their phase in order, in proportion to their own times: no method predicts
when each begins. All times are cut to nanoseconds once, so that slices stay within one another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from driple.errors import ConfigError
from driple.graph.step_facts import Phase
from driple.render.emit.forms import PERFETTO
from driple.step.phases import COMPUTING, PHASE_NAMES, PHASE_WORDS, UPDATE
from driple.trace.targets import RESOURCES, UNITS

if TYPE_CHECKING:
    import numpy.typing as npt

    from driple.api.predicting import Answer
    from driple.graph.opgraph import OpGraph
    from driple.step.profile import StepProfile

    FloatArray = npt.NDArray[np.float64]

__all__ = ["perfetto_trace"]

_TITLES = {
    "device_util": "GPU",
    "device_mem_util": "GPU memory",
    "net_tx": "network sent",
    "net_rx": "network received",
}
_PHASES, _OPS, _FIRST_RESOURCE = 1, 2, 3  # threads
_MOST_OPS = 200_000
_MOST_LEVELS = 8  # of modules
_NS = 1e9

Event = dict[str, Any]


def perfetto_trace(answers: Sequence[Answer]) -> str:
    """The trace of answers, a process each.

    Args:
        answers: of GPU settings without parameter servers, or with.

    Raises:
        ConfigError: a setting of processors, whose step has no timeline, or an undecided time.
    """
    events: list[Event] = []
    notes = []
    for number, answer in enumerate(answers, 1):
        answer.job.require_decided("time", "a timeline")
        step = answer.step()
        if step is None:
            raise ConfigError(
                f"--emit {PERFETTO} needs a GPU setting, and {answer.setting.name} has none; give "
                "--setting, such as --setting 8xH100"
            )
        events += _process(number, answer, step)
        time = answer.iteration_time_s
        ends = time.interval
        notes.append(
            {
                "job": answer.job.source,
                "setting": answer.setting.name,
                "step_s": time.value,
                "interval_s": None if ends is None else [ends.low, ends.high],
                "method": time.method,
                "rests_on": time.source,
            }
        )
    text = json.dumps(
        {
            "traceEvents": events,
            "displayTimeUnit": "ms",
            "otherData": {"made_by": "driple", "predictions": notes},
        },
        allow_nan=False,
    )
    return f"{text}\n"


def _process(number: int, answer: Answer, step: StepProfile) -> Iterator[Event]:
    yield _named("process_name", f"{answer.job.name} on {answer.setting.name} (predicted)", number)
    threads = ["phases", "modules and ops", *(f"{_TITLES[name]}: bursts" for name in RESOURCES)]
    for thread, name in enumerate(threads, _PHASES):
        yield _named("thread_name", name, number, thread)
        yield {
            "name": "thread_sort_index", "ph": "M", "pid": number, "tid": thread,
            "args": {"sort_index": thread},
        }  # fmt: skip
    for span in step.device:
        shares = {
            "kernels_pct": round(100 * span.busy_share, 2),
            "memory_pct": round(100 * span.memory_share, 2),
            "waits_for_devices_pct": round(100 * span.exchange_share, 2),
            "waits_for_host_pct": round(100 * span.host_share, 2),
        }
        ends = (span.start_s, span.end_s)
        yield _slice(PHASE_WORDS[span.phase], "phase", (number, _PHASES), ends, shares)
    yield from _ops(number, answer, step)
    for thread, name in enumerate(RESOURCES, _FIRST_RESOURCE):
        yield from _bursts(number, thread, name, step)
        yield from _counter(number, name, step)


def _bursts(number: int, thread: int, name: str, step: StepProfile) -> Iterator[Event]:
    """Bursts and what lies between, of one step; a burst over the step's end is in two parts."""
    parts: list[tuple[float, float, float]] = []
    for burst in step.usage()[name].bursts:
        parts.append((burst.start_s, min(burst.end_s, step.step_s), burst.amount))
        if burst.end_s > step.step_s:
            parts.append((0.0, burst.end_s - step.step_s, burst.amount))
    now = 0.0
    for start, end, amount in sorted(parts):
        yield from _idle(number, thread, now, start)
        amounts = {"amount": round(amount, 4), "unit": UNITS[name]}
        yield _slice("burst", name, (number, thread), (start, end), amounts)
        now = end
    yield from _idle(number, thread, now, step.step_s)


def _idle(number: int, thread: int, start: float, end: float) -> Iterator[Event]:
    if _ns(end) > _ns(start):
        yield _slice("idle", "idle", (number, thread), (start, end), {})


def _counter(number: int, name: str, step: StepProfile) -> Iterator[Event]:
    """Use of a resource: a value at each time at which it changes."""
    spans: list[tuple[float, float, float]]
    if name == "device_util":
        spans = [(one.start_s, one.end_s, 100 * one.busy_share) for one in step.device]
    elif name == "device_mem_util":
        spans = [(one.start_s, one.end_s, 100 * one.memory_share) for one in step.device]
    else:
        links = step.tx if name == "net_tx" else step.rx
        spans = [(one.start_s, one.end_s, one.bytes_per_s / 1e6) for one in links]
    values: dict[int, float] = {0: 0.0}
    for start, end, amount in spans:
        values[_ns(start)] = amount
        values[_ns(end)] = 0.0
    values.setdefault(_ns(step.step_s), 0.0)
    unit = UNITS[name]
    for time_ns in sorted(values):
        yield {
            "name": f"{_TITLES[name]} ({unit})",
            "ph": "C",
            "pid": number,
            "ts": time_ns / 1e3,
            "args": {unit: round(values[time_ns], 4)},
        }


def _ops(number: int, answer: Answer, step: StepProfile) -> Iterator[Event]:
    """Modules and the ops in them; none where devices compute parts of the graph."""
    from driple.cluster.topology import topology_of
    from driple.schemes.registry import scheme_named
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.prepared_job import PreparedJob

    graph, setting = answer.job.graph, answer.setting
    known = len(graph.phases) == graph.num_nodes
    if not known or graph.num_nodes > _MOST_OPS or setting.num_replicas < setting.num_workers:
        return
    calibration = shipped_calibration(setting)
    device = calibration.device(topology_of(setting).workers[0])
    on_servers = scheme_named(setting.scheme.name).uses_servers
    times = PreparedJob.of_job(answer.job).times(device, updates=not on_servers)
    start, end = _placed(times.duration_s, graph.phases, step)
    paths = [
        graph.modules[i].split(".") if graph.modules and i >= 0 else []
        for i in (graph.module_of.tolist() if graph.modules else [-1] * graph.num_nodes)
    ]
    yield from _slices(number, _nested(graph, paths, start, end))


def _nested(
    graph: OpGraph,
    paths: Sequence[Sequence[str]],
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
) -> Iterator[tuple[int, int, int, str]]:
    """Start, end, level and name of each op and of each call of a module, in nanoseconds."""
    around: list[tuple[str, int]] = []  # name and start of the modules of the last op
    ended = 0
    for op in [*np.argsort(start, kind="stable").tolist(), -1]:
        if op >= 0 and end[op] <= start[op]:
            continue
        path = paths[op][:_MOST_LEVELS] if op >= 0 else ()
        kept = 0
        if op >= 0 and start[op] - ended <= 1:  # the op follows without a break
            while kept < min(len(around), len(path)) and around[kept][0] == path[kept]:
                kept += 1
        for level in range(kept, len(around)):
            yield around[level][1], ended, level, around[level][0]
        if op >= 0:
            around = [*around[:kept], *((name, int(start[op])) for name in path[kept:])]
            kind = graph.signatures[int(graph.signature_of[op])].kind.replace("_", " ")
            yield int(start[op]), int(end[op]), _MOST_LEVELS, kind
            ended = int(end[op])


def _slices(number: int, nested: Iterator[tuple[int, int, int, str]]) -> Iterator[Event]:
    """Outer slices before those in them, as readers take the first of two alike as the outer."""
    for start, end, level, name in sorted(nested, key=lambda row: (row[0], -row[1], row[2])):
        yield {
            "name": name, "cat": "op" if level == _MOST_LEVELS else "module", "ph": "X",
            "pid": number, "tid": _OPS, "ts": start / 1e3, "dur": (end - start) / 1e3,
        }  # fmt: skip


def _placed(
    seconds: FloatArray, phases: npt.NDArray[np.integer], step: StepProfile
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Nanoseconds at which each op begins and ends; both 0 where its phase has no span."""
    begin, end = np.zeros(len(seconds), np.int64), np.zeros(len(seconds), np.int64)
    wanted = [(name, phases == phase) for phase, name in PHASE_NAMES.items()]
    names = {span.phase for span in step.device}
    if COMPUTING in names:  # the passes in turn: all of their ops are in these spans
        wanted = [(UPDATE, phases == Phase.UPDATE), (COMPUTING, phases != Phase.UPDATE)]
    for name, mask in wanted:
        spans = [span for span in step.device if span.phase == name and span.length_s > 0]
        total = float(seconds[mask].sum())
        if not spans or total <= 0:
            continue
        worked = np.concatenate([[0.0], np.cumsum([span.length_s for span in spans])])
        sums = np.concatenate([[0.0], np.cumsum(seconds[mask])]) * (worked[-1] / total)
        # An op that begins where a span ends begins with the next one.
        at = np.minimum(np.searchsorted(worked, sums[:-1], side="right") - 1, len(spans) - 1)
        offsets = np.array([span.start_s for span in spans]) - worked[:-1]
        until = np.maximum(np.searchsorted(worked, sums[1:], side="left") - 1, 0)
        until = np.minimum(until, len(spans) - 1)
        begin[mask] = np.rint((sums[:-1] + offsets[at]) * _NS)
        end[mask] = np.rint((sums[1:] + offsets[until]) * _NS)
    return begin, end


def _ns(seconds: float) -> int:
    return round(seconds * _NS)


def _slice(
    name: str, category: str, place: tuple[int, int], ends_s: tuple[float, float], args: Event
) -> Event:
    begin, end = map(_ns, ends_s)
    return {
        "name": name, "cat": category, "ph": "X", "pid": place[0], "tid": place[1],
        "ts": begin / 1e3, "dur": (end - begin) / 1e3, "args": args,
    }  # fmt: skip


def _named(what: str, name: str, number: int, thread: int = 0) -> Event:
    return {"name": what, "ph": "M", "pid": number, "tid": thread, "args": {"name": name}}
