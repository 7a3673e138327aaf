"""The JSON of one answer of `predict`: the same keys whichever method answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from driple.api.measured_beside import measured_dict
from driple.api.memory import memory_dict
from driple.api.quantiles import quantiles_of
from driple.api.results import Cell, job_facts
from driple.estimate import estimate, optional_estimate
from driple.trace.targets import FIGURES, RESOURCES, UNITS

if TYPE_CHECKING:
    from driple.answers.method_answer import MethodAnswer
    from driple.api.json_types.predict import (
        AnswerJson,
        CheckpointJson,
        MethodAnswerJson,
        StepJson,
        WorkJson,
    )
    from driple.api.json_types.shared import TargetsJson
    from driple.api.predicting import Answer
    from driple.estimate import Source

__all__ = ["answer_dict", "answer_row"]


def answer_dict(answer: Answer) -> AnswerJson:
    """All that is known of one job on one setting."""
    from driple.answers.ask import disagreements, trust_of
    from driple.api.throughput import throughput_of

    prediction, forms, compared = answer.prediction, answer.forms, answer.compared
    simulation = answer.simulation
    form = forms[0].form if forms else None
    is_inspector = answer.method == "inspector" and prediction is not None
    return {
        "job": job_facts(answer.job),
        "setting": answer.setting.name,
        "method": answer.method,
        "reason": answer.reason,
        "iteration_time_s": None if answer.best is None else answer.best.step_time,
        "iteration_time_quantiles_s": None
        if answer.best is None
        else quantiles_of(answer.best.step_time),
        "throughput": None if answer.best is None else throughput_of(answer),
        "memory": memory_dict(answer.memory),
        "targets": _targets(answer),
        "units": UNITS,
        "step": _step(answer),
        "methods": {each.method: _method(each) for each in answer.answers},
        "silent": {} if compared is None else compared.silent,
        "disagreements": []
        if compared is None
        else [
            {"methods": [pair.first.method, pair.other.method], "factor": pair.factor}
            for pair in disagreements(compared.answers)
        ],
        "trust": None if compared is None else trust_of(compared),
        "assumptions": answer.assumptions,
        "warnings": prediction.warnings if is_inspector and prediction is not None else (),
        "remarks": prediction.remarks if is_inspector and prediction is not None else (),
        "stated_error": None if answer.stated is None else answer.stated.to_dict(),
        "host": answer.host,
        "slow_host": answer.slow_host,
        "closed_form_s": None
        if prediction is None
        else optional_estimate(prediction.closed_form_s, "zhang"),
        "bottleneck": answer.bottleneck or None,
        "model_flops_utilisation_pct": answer.flops_pct,
        "step_parts": None
        if answer.parts is None
        else [
            {"part": name, "seconds": seconds, "pct": pct}
            for name, seconds, pct in answer.parts.rows()
        ],
        "is_guess": answer.best is not None and answer.best.step_time.is_guess,
        "communication_ratio": None if form is None else form.communication_ratio,
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
        if prediction is None
        else {
            "nodes": prediction.num_nodes,
            "edges": prediction.num_edges,
            "groups": prediction.num_groups,
            "unknown_op_types": prediction.unknown_op_types,
        },
        "checkpoint": _checkpoint(answer),
        "measured": None if answer.measured is None else measured_dict(answer.measured),
    }


def _targets(answer: Answer) -> TargetsJson | None:
    """The twelve targets of the method that answered; closed forms have none."""
    prediction, simulation = answer.prediction, answer.simulation
    if prediction is not None and answer.method == "inspector":
        ends = prediction.target_ends
        return {
            resource: {
                figure: estimate(
                    figures[figure],
                    "inspector",
                    cast("Source", prediction.provenance),
                    ends=None if ends is None else ends[row, column].tolist(),
                    level=prediction.level,
                )
                for column, figure in enumerate(FIGURES)
            }
            for row, (resource, figures) in enumerate(prediction.targets.to_dict().items())
        }
    if simulation is None:
        return None
    values: Mapping[str, Mapping[str, float]] = simulation.step_targets.to_dict()
    return {
        resource: {figure: estimate(values[resource][figure], "simulator") for figure in FIGURES}
        for resource in RESOURCES
    }


def _step(answer: Answer) -> StepJson | None:
    """One step in time, whose targets are the simulator's on a GPU setting."""
    simulation = answer.simulation
    step = None if simulation is None or answer.method == "inspector" else simulation.step
    if step is None or simulation is None:
        return None
    gpu, memory = step.counted_pct()
    return {
        "step_s": step.step_s,
        "phases_s": step.phases_s(),
        "resources": {
            name: {
                "bursts_per_step": usage.num_bursts,
                "mean": usage.mean,
                "bursts": usage.bursts,
            }
            for name, usage in step.usage().items()
        },
        "counters": {
            "window_s": simulation.setting.worker.known_window_s,
            "device_util_pct": gpu,
            "device_mem_util_pct": memory,
        },
    }


def _method(answer: MethodAnswer) -> MethodAnswerJson:
    return {
        "iteration_time_s": answer.step_time,
        "p90_error_pct": None if answer.p90 is None else 100 * answer.p90,
        "parts_s": answer.parts_s,
        "error": answer.form_error,
        "workload": None if answer.measured is None else answer.measured.workload,
    }


def _work(answer: Answer) -> WorkJson | None:
    work = answer.forms[0].work if answer.method == "analytic" else None
    if work is None:
        return None
    return {
        "forward_flops": work.forward_flops,
        "parameter_bytes": work.nbytes,
        "pushes": work.num_pushes,
        "ops_of_unknown_flops": work.unknown,
        "bytes_share_of_unknown": work.unknown_share,
    }


def _checkpoint(answer: Answer) -> CheckpointJson | None:
    prediction = answer.prediction
    if prediction is None:
        return None
    return {
        "setting": prediction.setting,
        "provenance": cast("Source", prediction.provenance),
        # The simulator's error on such clusters is over all networks, not of this graph.
        "trained_on": replace(prediction.trained_on, label_error=None),
        "metrics": prediction.metrics,
        "outdated": prediction.outdated,
    }


def answer_row(answer: Answer) -> dict[str, Cell]:
    """The answer as one flat row: iteration time, its interval, and the twelve targets."""
    time = None if answer.best is None else answer.best.step_time
    ends = None if time is None else time.interval
    row: dict[str, Cell] = {
        "job": answer.job.source,
        "setting": answer.setting.name,
        "method": answer.method if time is None else time.method,
        "iteration_time_s": None if time is None else time.value,
        "low_s": None if ends is None else ends.low,
        "high_s": None if ends is None else ends.high,
    }
    if answer.targets is not None:
        for resource, figures in answer.targets.to_dict().items():
            for figure, value in figures.items():
                row[f"{resource}_{figure}"] = value
    return row
