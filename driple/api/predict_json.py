"""The JSON of one answer of `predict`: the same keys whichever method answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from driple.api.memory import memory_dict
from driple.api.results import Cell, estimate, job_facts, optional_estimate
from driple.codec import Json, to_dict
from driple.trace.targets import FIGURES, RESOURCES, UNITS

if TYPE_CHECKING:
    from driple.answers.compare import MethodTime
    from driple.answers.methods import MethodAnswers
    from driple.api.predicting import Answer
    from driple.estimate import Estimate, Method, Source
    from driple.trace.targets import Targets

__all__ = ["answer_dict", "answer_row", "estimate_of", "source_of"]

LEVEL = 0.9  # of intervals that come from the 90th percentile of known errors


def estimate_of(one: MethodTime, source: Source = "simulated") -> Estimate:
    """What a method answers, as a number with its interval."""
    from driple.estimate import Estimate, Interval

    # A measured time has no interval of its own.
    ends = None if one.method == "measured" else one.interval_s
    return Estimate(
        value=one.iteration_time_s,
        interval=Interval.of(ends, LEVEL),
        method=cast("Method", one.method),
        source=source,
    )


def source_of(method: str, found: MethodAnswers) -> Source:
    """What the answer of a method rests on."""
    if method == "inspector" and found.prediction is not None:
        return cast("Source", found.prediction.provenance)
    return "measured" if method == "measured" else "simulated"


def answer_dict(answer: Answer) -> dict[str, Json]:
    """All that is known of one job on one setting."""
    made, forms = answer.prediction, answer.forms
    simulation = answer.simulation
    is_inspector = answer.method == "inspector" and made is not None
    return {
        "job": job_facts(answer.job),
        "setting": answer.setting.name,
        "method": answer.method,
        "reason": answer.reason,
        "iteration_time_s": to_dict(answer.iteration_time_s),
        "throughput": _throughput(answer),
        "memory": memory_dict(answer.memory),
        "targets": _targets(answer),
        "units": dict(UNITS),
        "step": _step(answer),
        "methods": _methods(answer),
        "silent": {} if answer.compared is None else dict(answer.compared.silent),
        "disagreements": []
        if answer.compared is None
        else [
            {"methods": [pair.one.method, pair.other.method], "factor": pair.factor}
            for pair in answer.compared.disagreements
        ],
        "trust": "" if answer.compared is None else answer.compared.trust_sentence,
        "assumptions": list(answer.assumptions),
        "warnings": list(made.warnings) if is_inspector and made is not None else [],
        "remarks": list(made.remarks) if is_inspector and made is not None else [],
        "stated_error": None if answer.stated is None else answer.stated.to_dict(),
        "host": None if answer.host is None else to_dict(answer.host),
        "slow_host": None if answer.slow_host is None else to_dict(answer.slow_host),
        "closed_form_s": None if made is None else optional_estimate(made.closed_form_s, "zhang"),
        "bottleneck": forms[0].bottleneck if forms else None,
        "communication_ratio": forms[0].communication_ratio if forms else None,
        "work": _work(answer),
        "workers": []
        if simulation is None
        else [
            {
                "device": device,
                "iteration_time_s": estimate(record.iteration_time_s, "simulator"),
            }
            for device, record in zip(simulation.topology.devices, simulation.records, strict=True)
        ],
        "graph": None
        if made is None
        else {
            "nodes": made.num_nodes,
            "edges": made.num_edges,
            "groups": made.num_groups,
            "unknown_op_types": dict(made.unknown_op_types),
        },
        "checkpoint": _checkpoint(answer),
    }


def _throughput(answer: Answer) -> dict[str, Json] | None:
    from driple.api.throughput import throughput_of

    found = throughput_of(answer)
    if found is None:
        return None
    return {
        "samples_per_s": to_dict(found.samples_per_s),
        "tokens_per_s": None if found.tokens_per_s is None else to_dict(found.tokens_per_s),
    }


def _targets(answer: Answer) -> dict[str, Json] | None:
    """The twelve targets of the method that answered; closed forms have none."""
    made, simulation = answer.prediction, answer.simulation
    if made is not None and answer.method == "inspector":
        ends = made.target_ends
        return {
            resource: {
                figure: estimate(
                    figures[figure],
                    "inspector",
                    cast("Source", made.provenance),
                    ends=None if ends is None else ends[row, column].tolist(),
                    level=made.level,
                )
                for column, figure in enumerate(FIGURES)
            }
            for row, (resource, figures) in enumerate(made.targets.to_dict().items())
        }
    if simulation is None:
        return None
    values: Mapping[str, Mapping[str, float]] = simulation.step_targets.to_dict()
    return {
        resource: {figure: estimate(values[resource][figure], "simulator") for figure in FIGURES}
        for resource in RESOURCES
    }


def _step(answer: Answer) -> dict[str, Json] | None:
    """One step in time, whose targets are the simulator's on a GPU setting."""
    simulation = answer.simulation
    step = None if simulation is None or answer.method == "inspector" else simulation.step
    if step is None or simulation is None:
        return None
    gpu, memory = step.counted_pct()
    return {
        "step_s": step.step_s,
        "phases_s": dict(step.phases_s()),
        "resources": {
            name: {
                "bursts_per_step": usage.num_bursts,
                "mean": usage.mean,
                "bursts": [
                    {"start_s": one.start_s, "end_s": one.end_s, "amount": one.amount}
                    for one in usage.bursts
                ],
            }
            for name, usage in step.usage().items()
        },
        "counters": {
            "window_s": simulation.setting.worker.known_window_s,
            "device_util_pct": gpu,
            "device_mem_util_pct": memory,
        },
    }


def _methods(answer: Answer) -> dict[str, Json]:
    """Iteration time and parts of each method that was asked."""
    parts = {form.method: dict(form.parts_s) for form in answer.forms}
    found = answer.compared
    if found is not None:
        entries: dict[str, Json] = {}
        for one in found.times:
            entry: dict[str, Json] = {
                "iteration_time_s": to_dict(estimate_of(one, source_of(one.method, found))),
                "p90_error_pct": None if one.p90 is None else 100 * one.p90,
                "parts_s": parts.get(one.method),
                "error": None,
                "workload": None,
            }
            if one.method == "measured" and found.measured is not None:
                entry["workload"] = found.measured.workload
            entries[one.method] = entry
        return entries
    if not answer.forms:
        time = answer.iteration_time_s
        p90 = None if answer.stated is None else answer.stated.p90_pct
        return {
            time.method: {
                "iteration_time_s": to_dict(time),
                "p90_error_pct": p90 if time.method == "simulator" else None,
                "parts_s": None,
                "error": None,
                "workload": None,
            }
        }
    return {
        form.method: {
            "iteration_time_s": estimate(
                form.iteration_time_s,
                cast("Method", form.method),
                ends=None if error is None else _ends(form.iteration_time_s, error.p90_pct),
                level=LEVEL,
            ),
            "p90_error_pct": None if error is None else error.p90_pct,
            "parts_s": parts[form.method],
            "error": None if error is None else to_dict(error),
            "workload": None,
        }
        for form, error in zip(answer.forms, answer.errors, strict=True)
    }


def _ends(value: float, p90_pct: float) -> tuple[float, float]:
    from driple.answers.compare import MethodTime

    ends = MethodTime(method="", iteration_time_s=value, p90=p90_pct / 100).interval_s
    return cast("tuple[float, float]", ends)


def _work(answer: Answer) -> dict[str, Json] | None:
    work = answer.work
    if work is None:
        return None
    return {
        "forward_flops": work.forward_flops,
        "parameter_bytes": work.nbytes,
        "pushes": work.num_pushes,
        "ops_of_unknown_flops": dict(work.unknown),
        "bytes_share_of_unknown": work.unknown_share,
    }


def _checkpoint(answer: Answer) -> dict[str, Json] | None:
    made = answer.prediction
    if made is None:
        return None
    return {
        "setting": made.setting,
        "provenance": made.provenance,
        # The simulator's error on such clusters is over all networks, not of this graph.
        "trained_on": to_dict(replace(made.trained_on, label_error=None)),
        "metrics": dict(made.metrics),
        "outdated": made.outdated,
    }


def answer_row(answer: Answer) -> dict[str, Cell]:
    """The answer as one flat row: iteration time, its interval, and the twelve targets."""
    time = answer.iteration_time_s
    row: dict[str, Cell] = {
        "job": answer.job.source,
        "setting": answer.setting.name,
        "method": time.method,
        "iteration_time_s": time.value,
        "low_s": None if time.interval is None else time.interval.low,
        "high_s": None if time.interval is None else time.interval.high,
    }
    found = _target_values(answer)
    if found is not None:
        for resource, figures in found.to_dict().items():
            for figure, value in figures.items():
                row[f"{resource}_{figure}"] = value
    return row


def _target_values(answer: Answer) -> Targets | None:
    """The twelve targets of the method that answered; None of closed forms."""
    if answer.method == "inspector":
        return None if answer.prediction is None else answer.prediction.targets
    return None if answer.simulation is None else answer.simulation.step_targets
