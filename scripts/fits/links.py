"""What links reach of their rates: fitted to published iterations of rings and servers.

TensorFlowRun + efficiency of its devices -> PreparedRun (steps of all workers) -> seconds on links
PreparedRuns of one family of links      -> LinkEfficiency, what its servers take for a byte

Links of one family (PCIe between peers, PCIe through the host, NVLink, Ethernet, ...) share an
efficiency, so that the faster of two links of a family is never the slower one in a simulation.
Latencies are not fitted: they are those by which NCCL chooses its algorithms. Where the source has
the same job on one device, its measured time scales the computing, so that a fit of links does not
depend on how well devices are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.catalog import Link, device_named, link_named, shipped_hardware
from driple.cluster.schemes import DDP, PS
from driple.cluster.topology import Topology, copy_s_per_byte
from driple.errors import CatalogError
from driple.runs.solver import least_squares
from driple.runs.tensorflow_runs import TensorFlowRun
from driple.schemes.links import ReachedLink
from driple.schemes.ps import ClusterSpec, simulate_cluster
from driple.schemes.registry import scheme_named
from driple.schemes.scheme import SchemeStep, ServerRates
from driple.schemes.timeline import StepUpdate
from driple.simulate.calibration import CalibratedDevice, LinkEfficiency, link_kind
from driple.simulate.gpu_times import GpuEfficiency
from driple.simulate.kernels import Efficiency
from driple.simulate.prepared_job import PreparedJob, Program
from driple.step.plan import StepPlan
from scripts.fits.batched import BatchedGraph
from scripts.fits.server_rate import ServerRate

__all__ = [
    "LATENCY_S",
    "PUBLISHED",
    "PUBLISHED_KINDS",
    "PreparedRun",
    "by_family",
    "family_of_link",
    "fit_link_efficiency",
    "kinds_of",
    "prepare_run",
    "program_of",
    "role_copy_bytes_per_s",
    "seconds_on",
    "topology_of_run",
]

FloatArray = npt.NDArray[np.float64]
Links = Mapping[str, LinkEfficiency]  # by family

# tf_cnn_benchmarks sends the gradients of half-precision runs round in half precision
# (compact_gradient_transfer, its default).
_COMPACT = 0.5
_STEPS = 3
_HOST = "-host"
# Seconds of a step of a ring without data (Simple protocol): NCCL's src/graph/tuning.cc, tables of
# hardware latencies; those of a network for every link between machines.
LATENCY_S = {"NVLink": 3.4e-6, "PCIe": 5.7e-6, f"PCIe{_HOST}": 5.7e-6}
NETWORK_LATENCY_S = 14e-6
# Families whose rates are published, and are better known from there than from rows of training,
# where gradients hide behind computing: rings over NVLink reach 370 of 450 GB/s (NVIDIA/nccl-tests
# issue 212), rings over InfiniBand 96 of 100 GB/s at most, 85 on average (issue 119).
PUBLISHED = {
    "NVLink": LinkEfficiency(share=0.8, latency_s=LATENCY_S["NVLink"], sharing=0.0),
    "InfiniBand": LinkEfficiency(share=0.9, latency_s=NETWORK_LATENCY_S, sharing=0.0),
}
# The links that these figures are of; NVLinks of A100s and later have those of
# driple/schemes/nccl_links.py.
PUBLISHED_KINDS = {
    "NVLink-H100": PUBLISHED["NVLink"],
    "NVLink-A100": PUBLISHED["NVLink"],
    "InfiniBand-HDR": PUBLISHED["InfiniBand"],
}
# Where fits begin: share of the rate, what sharing costs, and seconds of a server for a byte of a
# gradient.
_START = (0.6, 0.05)
_SHARES = (0.9, 0.6, 0.4, 0.25, 0.15, 0.1, 0.06)
_APPLY_START = 1e-10
_PRIOR = np.array([0.7, 1.5, 2.0])  # deviations of the logarithms from the start
# No transfer within a machine passes more than 0.8 of the nominal rate, as packets have headers,
# and none more than all of it; more sharing than this leaves many no rate at all.
_MOST = np.log([1.0, 1.0, np.inf])
_MOST_WITHIN = np.log([0.8, 1.0, np.inf])
_NOISE = 0.05
_MOST_RUNS = 48  # of a family that a fit looks at, evenly spaced: more are more of the same


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedRun:
    """A published run, ready to be put on any link.

    Attributes:
        run: the measurement.
        plans: step of each worker.
        update_s: seconds of each worker to apply gradients, where there are no servers.
        program: what its program did.
    """

    run: TensorFlowRun
    plans: tuple[StepPlan, ...]
    update_s: tuple[float, ...]
    program: Program

    @property
    def family(self) -> str:
        """Family of the link that its gradients cross between devices or machines."""
        return family_of_link(link_named(self.run.link))


def family_of_link(link: Link) -> str:
    """Links with one efficiency: their kind, and whether they go through the host's memory."""
    return link.kind + (_HOST if link.through_host else "")


def prepare_run(
    run: TensorFlowRun,
    graph: BatchedGraph,
    efficiency_of: Callable[[str], Efficiency | GpuEfficiency],
    alone_s: float | None = None,
) -> PreparedRun:
    """The steps of a run's workers.

    Args:
        run: the measurement.
        graph: of its model.
        efficiency_of: what a device reaches.
        alone_s: measured seconds of the same job on one device, which then scale its computing.
    """
    job = graph.job(run.batch_size, program_of(run))
    devices = {
        name: CalibratedDevice(device_named(name), efficiency_of(name), name)
        for name in set(run.devices)
    }
    plans = {name: _plan(job, run, device) for name, device in devices.items()}
    update_s = {name: job.update_seconds(device) for name, device in devices.items()}
    if alone_s is not None:
        for name, plan in plans.items():
            factor = alone_s / (plan.compute_s + update_s[name])
            plans[name] = _scaled(plan, factor)
            update_s[name] *= factor
    return PreparedRun(
        run=run,
        plans=tuple(plans[name] for name in run.devices),
        update_s=tuple(update_s[name] for name in run.devices),
        program=job.program,
    )


def _plan(job: PreparedJob, run: TensorFlowRun, device: CalibratedDevice) -> StepPlan:
    rule = scheme_named(PS if run.num_servers else DDP).rule(job.exchange)
    if rule is None:
        return job.plan(device, run.num_servers, "round_robin")
    return job.exchange_plan(device, rule)


def _scaled(plan: StepPlan, factor: float) -> StepPlan:
    """The plan with all computing so many times as long."""
    return replace(
        plan,
        segments=tuple(
            replace(
                segment,
                duration_s=factor * segment.duration_s,
                busy_s=factor * segment.busy_s,
                memory_s=factor * segment.memory_s,
            )
            for segment in plan.segments
        ),
    )


def program_of(run: TensorFlowRun) -> Program:
    """What the program of a run did that its graph does not tell."""
    return Program(
        synchronous=True,
        overlapped=run.overlapped,
        fused=run.compiled,
        ring_share=_COMPACT if run.half and not run.num_servers else 1.0,
        exchange="horovod" if run.overlapped else "tensors",
    )


def topology_of_run(run: TensorFlowRun) -> Topology:
    """The machines of a run: with servers each role on a machine of its own."""
    count = len(run.devices)
    link = link_named(run.link)
    per_machine = 1 if run.num_servers else run.per_machine
    several = run.num_servers > 0 or per_machine < count
    within = link
    if several and per_machine > 1:
        within = shipped_hardware().pcie_link(device_named(run.device))
    return Topology(
        workers=tuple(device_named(name) for name in run.devices),
        worker_machine=tuple(worker // per_machine for worker in range(count)),
        server_machine=tuple(range(count, count + run.num_servers)),
        within=None if several and per_machine == 1 else within,
        between=link if several else None,
        scheme=PS if run.num_servers else DDP,
    )


def seconds_on(
    prepared: PreparedRun,
    links: Links,
    *,
    apply_s_per_byte: float,
    role_copy_bytes_per_s: float = float("inf"),
) -> float:
    """Simulated seconds of an iteration, differences between steps left out: for fits.

    Args:
        prepared: the run.
        links: efficiency of the families of the links that it crosses.
        apply_s_per_byte: seconds of a server for a byte of a gradient.
        role_copy_bytes_per_s: rate at which a worker or a server copies what crosses the network.
    """
    run, topology = prepared.run, topology_of_run(prepared.run)
    if run.num_servers:
        reached = ReachedLink(link_named(run.link), links[prepared.family])
        rate = reached.bytes_per_s(1)
        spec = ClusterSpec(
            worker_machine=topology.worker_machine,
            server_machine=topology.server_machine,
            link_bytes_per_s=rate,
            bridge_bytes_per_s=rate,
            link_sharing=reached.efficiency.sharing,
            role_copy_bytes_per_s=role_copy_bytes_per_s,
            message_s=reached.efficiency.latency_s,
            copy_s_per_byte=tuple(copy_s_per_byte(device_named(name)) for name in run.devices),
            apply_s_per_byte=apply_s_per_byte,
            synchronous=True,
        )
        return simulate_cluster(spec, prepared.plans, _STEPS)[0].iteration_time_s
    step = SchemeStep(
        topology=topology,
        plans=prepared.plans,
        within=_reached(topology.within, links),
        between=_reached(topology.between, links),
        host=_reached(_host(topology), links),
        update=StepUpdate(update_s=prepared.update_s, overlapped=prepared.program.overlapped),
        share=prepared.program.ring_share,
        program="horovod" if prepared.program.overlapped else "tensors",
        servers=ServerRates(
            bridge_bytes_per_s=1.0, role_copy_bytes_per_s=1.0, apply_s_per_byte=0.0
        ),
        synchronous=True,
        are_alike=len(set(run.devices)) == 1,
    )
    return scheme_named(DDP).simulate(step, 1, 0)[0].iteration_time_s


def _reached(link: Link | None, links: Links) -> ReachedLink | None:
    """A link with its family's efficiency; None where that is not known."""
    known = None if link is None else links.get(family_of_link(link))
    return None if link is None or known is None else ReachedLink(link, known)


def _host(topology: Topology) -> Link | None:
    if topology.between is None:
        return None
    try:
        return shipped_hardware().host_link(topology.workers[0])
    except CatalogError:
        return None


def role_copy_bytes_per_s(passed: ServerRate | None, efficiency: LinkEfficiency) -> float:
    """Rate at which a role copies what crosses the network, in series with its link.

    1 / passed = 1 / link + 1 / copy

    Args:
        passed: what a server passed over a link; None without such a measurement.
        efficiency: of that link.

    Returns:
        Bytes/s; infinite if the link alone explains the measurement, or there is none.
    """
    if passed is None:
        return float("inf")
    reached = ReachedLink(link_named(passed.link), efficiency).bytes_per_s(passed.num_workers)
    left_s = 1 / passed.bytes_per_s - 1 / reached
    return 1 / left_s if left_s > 0 else float("inf")


def fit_link_efficiency(
    runs: Sequence[PreparedRun], known: Links | None = None, passed: ServerRate | None = None
) -> tuple[LinkEfficiency, float]:
    """The efficiency of the family of links that these runs share, and of their servers.

    Args:
        runs: over links of one family; of many, 48 evenly spaced ones count.
        known: other families that they cross, by family.
        passed: what a server passed over a link of this family, which then tells what its copies
            take.

    Returns:
        The efficiency, and seconds of a server for a byte of a gradient; 0 without servers.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    family = runs[0].family
    runs = [runs[i] for i in np.unique(np.linspace(0, len(runs) - 1, _MOST_RUNS).astype(int))]
    measured = np.array([item.run.step_s for item in runs])
    served = any(item.run.num_servers for item in runs)
    begin = np.log([*_START, *([_APPLY_START] * served)])
    count = len(begin)
    most = (_MOST_WITHIN if family in LATENCY_S else _MOST)[:count]

    def meaning(logs: FloatArray) -> tuple[LinkEfficiency, float]:
        values = np.exp(logs).tolist()
        link = LinkEfficiency(
            share=values[0],
            latency_s=LATENCY_S.get(family, NETWORK_LATENCY_S),
            sharing=values[1],
        )
        return link, values[2] if served else 0.0

    def residuals(logs: FloatArray) -> FloatArray:
        link, apply_s = meaning(logs)
        links = {**(known or {}), family: link}
        copy = role_copy_bytes_per_s(passed, link) if served else float("inf")
        predicted = np.array(
            [
                seconds_on(item, links, apply_s_per_byte=apply_s, role_copy_bytes_per_s=copy)
                for item in runs
            ]
        )
        away = (logs - begin) / _PRIOR[:count]
        return np.concatenate([np.log(predicted / measured) / _NOISE, away])

    # Where gradients are hidden by computing, no small step changes anything: begin at the best.
    starts = [np.concatenate([[share], begin[1:]]) for share in np.log(_SHARES)]
    begin_at = min(starts, key=lambda logs: float(np.abs(residuals(logs)).sum()))
    fit = least_squares(
        residuals, np.minimum(begin_at, most - 1e-3), bounds=(-np.inf, most), loss="soft_l1",
        diff_step=0.03, max_nfev=15,
    )  # fmt: skip
    return meaning(fit.x)


def by_family(runs: Sequence[PreparedRun]) -> Mapping[str, list[PreparedRun]]:
    """Runs by the family of their link; families within machines first."""
    families: dict[str, list[PreparedRun]] = {}
    for run in sorted(runs, key=lambda item: not link_named(item.run.link).within_machine):
        families.setdefault(run.family, []).append(run)
    return families


def kinds_of(runs: Sequence[PreparedRun]) -> tuple[str, ...]:
    """The kinds of links that some runs cross, as calibrations name them."""
    return tuple(dict.fromkeys(link_kind(item.run.link) for item in runs))
