"""Where the work of a training step is: by phase, by kind of op and by module.

Job, Setting -> Breakdown: FLOPs, bytes moved and time on one device of the setting
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from driple.api.module_tree import ModuleNode, module_tree
from driple.graph.step_facts import Phase
from driple.jobs.load import Job
from driple.jobs.training_config import undecided_remark
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.cluster.setting import Setting
    from driple.graph.opgraph import OpGraph

__all__ = ["Breakdown", "Share", "break_down_step"]

FloatArray = npt.NDArray[np.float64]

_UPDATE = Phase.UPDATE.name.lower()


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """The part of a step that one phase or one kind of op makes up.

    Attributes:
        name: of the phase or kind.
        ops: ops of it.
        flops: FLOPs of a step.
        moved_bytes: bytes of memory that a step reads and writes.
        time_s: seconds on the device; None if unknown.
        time_pct: share of the step's computing time; None if unknown.
    """

    name: str
    ops: int
    flops: float
    moved_bytes: float
    time_s: float | None
    time_pct: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakdown:
    """The work of one step on one device.

    Attributes:
        device: name of the device.
        total_s: seconds of computing, without communication; None if unknown.
        phases: in the order in which they run; empty if the graph does not show them.
        kinds: kinds of op, the one with the most time (or FLOPs) first.
        modules: tree of the model's modules; None if the graph names none.
        assumptions: what stands in for measurements of the device.
        unknown: what could not be worked out.
    """

    device: str
    total_s: float | None
    phases: tuple[Share, ...]
    kinds: tuple[Share, ...]
    modules: ModuleNode | None
    assumptions: tuple[Remark, ...]
    unknown: tuple[Remark, ...]


def break_down_step(job: Job, setting: Setting) -> Breakdown:
    """The work of a step by phase, kind and module, with times on a device of the setting.

    Times are the simulator's, of computing alone. Where the setting has parameter servers, these
    update the parameters, and the update takes no time of the device.

    Raises:
        SettingError: an unknown device or link.
        CatalogError: the catalogue lacks a fact about the device.
    """
    from driple.cluster.topology import topology_of
    from driple.schemes.registry import scheme_named
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.prepared_job import PreparedJob

    graph, cost = job.graph, job.cost
    calibration = shipped_calibration(setting)
    spec = topology_of(setting).workers[0]
    device = calibration.device(spec)
    prepared = PreparedJob.of_job(job)
    on_servers = scheme_named(setting.scheme.name).uses_servers
    times_s = prepared.times(device, updates=not on_servers).duration_s
    update_s = 0.0 if on_servers else prepared.update_seconds(device)
    runs = cost.executions.astype(np.float64)
    flops = cost.flops * runs
    moved = (cost.bytes_read + cost.bytes_written) * runs
    total_s = float(times_s.sum()) + update_s
    numbers = _Numbers(flops, moved, times_s, total_s)
    kinds = [op.kind for op in graph.signatures]
    by_kind = numbers.shares([kinds[i] for i in graph.signature_of.tolist()])
    unknown = []
    assumed = calibration.assumptions([spec], [])
    if on_servers and graph.is_training:
        assumed += (remark("servers_update"),)
    phases: tuple[Share, ...] = ()
    if len(graph.phases):
        names = [Phase(phase).name.lower() for phase in graph.phases.tolist()]
        phases = _with_update(numbers.shares(names), graph, update_s, total_s, here=not on_servers)
    else:
        unknown.append(remark("phases_not_shown"))
    untimed = job.open_fields("time")
    if untimed:
        unknown.append(undecided_remark(untimed))
        phases, by_kind = _without_times(phases), _without_times(by_kind)
    modules = module_tree(graph, flops, moved, None if untimed else times_s)
    if modules is None:
        unknown.append(remark("no_modules"))
    return Breakdown(
        device=spec.name,
        total_s=None if untimed else total_s,
        phases=phases,
        kinds=tuple(by_kind),
        modules=modules,
        assumptions=assumed,
        unknown=tuple(unknown),
    )


class _Numbers:
    """Numbers of each op, summed by name."""

    def __init__(
        self, flops: FloatArray, moved: FloatArray, times_s: FloatArray, total_s: float
    ) -> None:
        self.columns = (flops, moved, times_s)
        self.total_s = total_s

    def shares(self, names: Iterable[str]) -> tuple[Share, ...]:
        """A share for each name, the one with the most time first."""
        known, which = np.unique(np.array([*names], dtype=str), return_inverse=True)
        counts = np.bincount(which, minlength=len(known))
        flops, moved, seconds = (
            np.bincount(which, weights=column, minlength=len(known)) for column in self.columns
        )
        shares = [
            Share(
                name=str(name),
                ops=int(counts[i]),
                flops=float(flops[i]),
                moved_bytes=float(moved[i]),
                time_s=float(seconds[i]),
                time_pct=_pct(float(seconds[i]), self.total_s),
            )
            for i, name in enumerate(known)
        ]
        return tuple(sorted(shares, key=lambda one: (-(one.time_s or 0.0), -one.flops, one.name)))


def _without_times(shares: tuple[Share, ...]) -> tuple[Share, ...]:
    return tuple(replace(share, time_s=None, time_pct=None) for share in shares)


def _pct(part: float, whole: float) -> float:
    return 100 * part / whole if whole > 0 else 0.0


def _with_update(
    shares: tuple[Share, ...], graph: OpGraph, update_s: float, total_s: float, *, here: bool
) -> tuple[Share, ...]:
    """The phases in their order, with the optimizer's own kernels where the device runs them."""
    by_name = {share.name: share for share in shares}
    update = graph.update
    if update.moved_bytes:
        own = by_name.get(_UPDATE)
        seconds = update_s + (0.0 if own is None or own.time_s is None else own.time_s)
        by_name[_UPDATE] = Share(
            name=_UPDATE,
            ops=update.num_kernels + (0 if own is None else own.ops),
            flops=0.0 if own is None else own.flops,
            moved_bytes=update.moved_bytes * here + (0.0 if own is None else own.moved_bytes),
            time_s=seconds,
            time_pct=_pct(seconds, total_s),
        )
    order = [phase.name.lower() for phase in (Phase.FORWARD, Phase.RECOMPUTE, Phase.BACKWARD)]
    return tuple(by_name[name] for name in (*order, _UPDATE) if name in by_name)
