"""`inspect`: what does Driple see of a job: ops, FLOPs, parameters, phases, modules, unknowns.

JOB, setting -> load_job -> Breakdown of the step on a device of the setting -> InspectResult
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.api.arguments import (
    PathLike,
    catalog_of,
    machine_of,
    own_setting,
    path_of,
    settings_of,
)
from driple.api.breakdown import Breakdown, Share, break_down_step
from driple.api.results import Cell, Result, job_facts
from driple.cluster.setting import Setting
from driple.codec import Json, to_dict
from driple.estimate import optional_estimate
from driple.jobs.load import Job, JobOptions, JobSource, load_job
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from driple.api.inspecting_memory import InspectedMemory
    from driple.api.json_types.inspect import InspectJson, ShareJson
    from driple.api.module_tree import ModuleNode
    from driple.api.traced_beside import TracedStep
    from driple.catalog.catalog import Catalog

__all__ = ["InspectResult", "ParameterFacts", "inspect"]

_DEPTH = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterFacts:
    """Parameters, gradients and optimizer of a job.

    Attributes:
        count: number of parameter tensors.
        elements: number of parameters; None if the graph does not show it.
        nbytes: bytes of them.
        trained_elements: number of parameters that are not frozen; None if not shown.
        gradient_bytes: bytes of the gradients of a step.
        optimizer: name; empty if unknown.
        state_bytes: bytes that the optimizer keeps from step to step.
    """

    count: int
    elements: int | None
    nbytes: int
    trained_elements: int | None
    gradient_bytes: int
    optimizer: str
    state_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class InspectResult(Result):
    """A job, read.

    Attributes:
        job: the job with its graph and the costs of its ops.
        setting: whose device the times are of.
        counts: nodes of each op type, the most frequent first.
        breakdown: work and time by phase, kind of op and module.
        parameters: parameters, gradients and optimizer.
        depth: levels of modules in the JSON.
        memory: of a device over the step; None if it was not asked for.
        traced: a trace of the PyTorch profiler beside it; None without one.
    """

    job: Job
    setting: Setting
    counts: dict[str, int]
    breakdown: Breakdown
    parameters: ParameterFacts
    depth: int = _DEPTH
    memory: InspectedMemory | None = None
    traced: TracedStep | None = None

    @property
    def assumptions(self) -> tuple[Remark, ...]:
        """What was assumed of the job and of the device."""
        return (*self.job.assumptions, *self.breakdown.assumptions)

    @property
    def unknown(self) -> tuple[Remark, ...]:
        """What is unknown of the job."""
        known = self.job.unknown
        remarks = [] if known is None else [remark("unknown_count_as_1", unknown=known)]
        unknown = self.job.op_types_without_cost
        if unknown:
            remarks.append(
                remark("flops_unknown", op_types=tuple(unknown), counts=tuple(unknown.values()))
            )
        if self.job.graph.is_training and not self.parameters.optimizer:
            remarks.append(remark("optimizer_unknown"))
        if self.job.batch_size is None:
            remarks.append(remark("batch_size_unknown"))
        return (*remarks, *self.breakdown.unknown)

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple inspect --json` prints."""
        from driple.api.traced_beside import traced_dict
        from driple.memory.least import least_memory

        graph, cost, parts = self.job.graph, self.job.cost, self.breakdown
        report = graph.report
        inspected: InspectJson = {
            "question": "inspect",
            "job": job_facts(self.job),
            "setting": self.setting.name,
            "device": parts.device,
            "compute_s": optional_estimate(parts.total_s, "simulator"),
            "phases": [_share_dict(one) for one in parts.phases],
            "kinds": [_share_dict(one) for one in parts.kinds],
            "modules": None if parts.modules is None else parts.modules.to_dict(self.depth),
            "parameters": self.parameters,
            "assumptions": self.assumptions,
            "unknown": self.unknown,
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "nodes_in_file": report.nodes_in_file,
            "nodes_inlined": report.nodes_inlined,
            "nodes_without_shape": report.nodes_without_shape,
            "dangling_inputs": report.dangling_inputs,
            "tensor_bytes": int(graph.tensor_bytes.sum()),
            "flops": cost.total_flops,
            "memory_bytes": cost.total_bytes,
            "least_device_memory": least_memory(graph)
            if graph.is_training and not self.job.open_fields("memory")
            else None,
            "memory": None if self.memory is None else self.memory.to_dict(self.depth),
            "traced": None if self.traced is None else traced_dict(self.traced, self.depth),
            "loops_of_unknown_length": report.loops_of_unknown_length,
            "layout": graph.layout,
            "is_training": graph.is_training,
            "train_ops": report.train_ops,
            "target": report.target,
            "left_out": report.left_out,
            "sent_bytes": graph.placed_bytes[0],
            "received_bytes": graph.placed_bytes[1],
            "sent_bytes_with_servers": graph.sent_bytes,
            "received_bytes_with_servers": graph.received_bytes,
            "op_types": self.counts,
            "remote_op_types": {item.op_type: item.num_nodes for item in graph.remote},
        }
        return to_dict(inspected)

    def rows(self) -> list[dict[str, Cell]]:
        """One row per phase, per kind of op, and per module; `part` states which."""
        parts = self.breakdown
        rows = [_share_row("phase", one) for one in parts.phases]
        rows += [_share_row("kind", one) for one in parts.kinds]
        if parts.modules is not None:
            rows += [
                {
                    "part": "module",
                    "name": node.path,
                    "ops": node.ops,
                    "flops": node.flops,
                    "memory_bytes": node.moved_bytes,
                    "time_s": node.time_s,
                    "time_pct": _pct(node.time_s, parts.total_s),
                    "parameters": node.parameters,
                    "parameter_bytes": node.parameter_bytes,
                }
                for node in _within(parts.modules, self.depth)
            ]
        return rows


def _share_dict(share: Share) -> ShareJson:
    return {
        "name": share.name,
        "ops": share.ops,
        "flops": share.flops,
        "memory_bytes": share.moved_bytes,
        "time_s": optional_estimate(share.time_s, "simulator"),
        "time_pct": optional_estimate(share.time_pct, "simulator"),
    }


def _share_row(part: str, share: Share) -> dict[str, Cell]:
    return {
        "part": part,
        "name": share.name,
        "ops": share.ops,
        "flops": share.flops,
        "memory_bytes": share.moved_bytes,
        "time_s": share.time_s,
        "time_pct": share.time_pct,
    }


def _pct(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole


def _within(node: ModuleNode, depth: int) -> Iterator[ModuleNode]:
    """A module and those down to `depth` levels below it."""
    yield node
    for child in node.children if depth > 0 else ():
        yield from _within(child, depth - 1)


def inspect(
    job: JobSource,
    setting: str | Setting | None = None,
    *,
    options: JobOptions | None = None,
    catalogs: PathLike | Sequence[PathLike] = (),
    machine: PathLike | None = None,
    depth: int = _DEPTH,
    memory: bool = False,
    measured: PathLike | None = None,
) -> InspectResult:
    """Read a job and add up its work by phase, kind of op and module.

    A graph without a training step is read too.

    Args:
        job: JOB as on the command line, a graph or a `Job`.
        setting: whose first device the times are of; as for `predict` if None.
        options: batch size, shapes of inputs and the like.
        catalogs: own devices and links (TOML), which take precedence.
        machine: file of `driple measure --machine`, whose values take precedence over `catalogs`.
        depth: levels of modules in the JSON and the table.
        memory: whether the memory of a device over the step is asked for.
        measured: trace of the PyTorch profiler (JSON, gzipped or not) of this job, set beside the
            predicted times; without a setting, these are of the trace's device.

    Raises:
        ConfigError: no such job.
        GraphError: a job that cannot be read, or whose memory is unknown if that is asked for.
        MissingExtraError: TensorFlow or PyTorch is needed and not installed.
        SettingError: an unknown setting.
        TraceError: a trace that cannot be read.
    """
    own = machine_of(machine)
    catalog = catalog_of(catalogs, own)
    trace = path_of("--measured", measured)
    setting = setting or own_setting(own) or _setting_of_trace(trace, catalog)
    given = None if setting is None else settings_of([setting], catalog, options, own)[0]
    loaded = load_job(job, options, setting=given, training=False, forward=True)
    place = given or settings_of(loaded.usual_setting, catalog, None, own)[0]
    if memory:
        loaded.require_decided("memory", "inspect --memory")
    from driple.api.inspecting_memory import inspected_memory

    breakdown = break_down_step(loaded, place)
    traced = None
    if trace is not None:
        from driple.api.traced_beside import traced_beside
        from driple.catalog import shipped_catalog

        traced = traced_beside(loaded, place, breakdown, trace, catalog or shipped_catalog())
    return InspectResult(
        job=loaded,
        setting=place,
        counts=dict(loaded.graph.op_type_counts().most_common()),
        breakdown=breakdown,
        parameters=_parameter_facts(loaded),
        depth=depth,
        memory=inspected_memory(loaded, place) if memory else None,
        traced=traced,
    )


def _setting_of_trace(trace: Path | None, catalog: Catalog | None) -> str | None:
    """One device of the trace's kind, if the catalogue has it."""
    if trace is None:
        return None
    from driple.api.traced_beside import device_of_trace
    from driple.catalog import shipped_catalog

    device = device_of_trace(trace, catalog or shipped_catalog())
    return None if device is None else f"1x{device}"


def _parameter_facts(job: Job) -> ParameterFacts:
    from driple.memory.least import least_memory

    graph, table = job.graph, job.graph.parameters
    least = least_memory(graph)
    is_shown = bool(table.names)
    return ParameterFacts(
        count=len(table.names) if is_shown else len(graph.traffic.received_bytes),
        elements=int(table.elements.sum()) if is_shown else None,
        nbytes=int(table.nbytes.sum()) if is_shown else least.parameters_bytes,
        trained_elements=int(table.elements[table.is_trained].sum()) if is_shown else None,
        gradient_bytes=least.gradients_bytes,
        optimizer=graph.update.optimizer,
        state_bytes=graph.update.state_bytes,
    )
