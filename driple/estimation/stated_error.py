"""The checked error that belongs to one simulated answer, or that none does.

    OpGraph -> JobKind                          (is it like the networks of the published runs?)
    Setting, JobKind, checked runs -> StatedError

An error is stated only of the same kind of cluster, precision and network. Of a device without
published runs of that kind, it is the error on devices that were left out of the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from driple.catalog import link_named
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.codec import Json, json_field, to_dict
from driple.comm.registry import scheme_named
from driple.estimation.checked_runs import CheckedRun, shipped_checked_runs
from driple.graph.cost import GraphCost, cost_of_graph
from driple.graph.cost.products import CONVOLUTIONS, FILTER_GRADIENTS, INPUT_GRADIENTS, window_of
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.signature import OpSignature
from driple.simulate.calibration import Calibration, shipped_calibration

__all__ = ["JobKind", "StatedError", "job_kind", "stated_error"]

# Every published run is of a network with at least these: the shares are AlexNet's, the size is
# AlexNet's with two images. tests/simulate/test_stated_error.py takes them from the runs again.
LEAST_CONVOLUTION_SHARE, LEAST_PRODUCT_FLOPS = 0.9, 0.4e9
_HALF = (NUMBER_OF["DT_HALF"], NUMBER_OF["DT_BFLOAT16"])
_PLAIN = CONVOLUTIONS | INPUT_GRADIENTS | FILTER_GRADIENTS
_DEPTHWISE = frozenset(
    {"depthwise_conv", "depthwise_conv_input_gradient", "depthwise_conv_filter_gradient"}
)
_FLAT_WINDOW = 4  # sides of a window of two dimensions, channels in and out
_ENOUGH_RUNS = 5  # of one device, for an error of its own
_MOST_NAMED = 4
_NOT_CHECKED = "this answer was not checked against any published run of this kind"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobKind:
    """What of a job decides which runs are like it.

    Attributes:
        half: whether most multiply-adds are in half precision.
        unlike: how it differs from every published run; empty if it is of their kind.
    """

    half: bool = False
    unlike: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedError:
    """Error of simulated iteration times on runs like the answer's.

    Attributes:
        num_runs: how many; 0 if there are none.
        runs: what they are, in words; without runs, why there are none.
        median_pct: of the errors, percent; None without runs.
        p90_pct: their 90th percentile; None without runs.
    """

    num_runs: int = field(default=0, metadata=json_field(name="runs"))
    runs: str = field(metadata=json_field(name="of"))
    median_pct: float | None = None
    p90_pct: float | None = None

    @property
    def p90(self) -> float | None:
        """The 90th percentile as a share; None if it is not known."""
        return None if self.p90_pct is None else self.p90_pct / 100

    def sentence(self) -> str:
        """For a user."""
        if self.median_pct is None or self.p90_pct is None:
            return f"{_NOT_CHECKED}: {self.runs}"
        return (
            f"the simulator's error on {self.num_runs} {self.runs}: median {self.median_pct:.0f} "
            f"%, 90th percentile {self.p90_pct:.0f} %"
        )

    def to_dict(self) -> dict[str, Json]:
        """As `--json` prints it."""
        return {"checked": self.num_runs > 0, **to_dict(self)}


def job_kind(graph: OpGraph, cost: GraphCost | None = None) -> JobKind:
    """Whether a graph is of the kind of the published runs, and its precision.

    They are of plain convolutional networks on ImageNet. Attention, recurrent layers, depthwise or
    3-D convolutions, and the small convolutions of small images are not among them.

    Args:
        graph: of one worker's step.
        cost: of this graph, where it is known already.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
    """
    if graph.report.has_unknown:
        return JobKind(unlike=graph.report.unknown_words)
    flops = _product_flops(graph, cost_of_graph(graph) if cost is None else cost)
    total = sum(flops)
    if total == 0:
        return JobKind(unlike="it has no convolution or matrix product of a known size")
    in_half = [_output_type(graph, node) in _HALF for node in range(graph.num_nodes)]
    half = sum(one for one, low in zip(flops, in_half, strict=True) if low) > total / 2
    plain_ops = [_is_plain(op) for op in graph.signatures]
    plain = sum(
        one
        for one, number in zip(flops, graph.signature_of.tolist(), strict=True)
        if plain_ops[number]
    )
    unlike = ""
    if not graph.is_training:
        unlike = "it is a forward pass, and published runs are of training"
    elif graph.nodes_of(_DEPTHWISE).any():
        unlike = "no published run has depthwise convolutions"
    if unlike:
        return JobKind(half=half, unlike=unlike)
    if plain < LEAST_CONVOLUTION_SHARE * total:
        return JobKind(
            half=half,
            unlike=f"published runs are of convolutional networks; 2-D convolutions are "
            f"{100 * plain / total:.0f} % of this one's FLOPs",
        )
    runs = graph.executions.tolist()
    count = sum(number for number, one in zip(runs, flops, strict=True) if one > 0)
    if total / count < LEAST_PRODUCT_FLOPS:
        return JobKind(
            half=half,
            unlike=f"its convolutions are smaller than in any published run (mean "
            f"{total / count / 1e9:.2g} GFLOP, published {LEAST_PRODUCT_FLOPS / 1e9:.2g} or more)",
        )
    return JobKind(half=half)


def stated_error(
    setting: Setting,
    job: OpGraph | JobKind,
    *,
    runs: Sequence[CheckedRun] | None = None,
    calibration: Calibration | None = None,
    cost: GraphCost | None = None,
    topology: Topology | None = None,
) -> StatedError:
    """The error that belongs to a simulated answer.

    Args:
        setting: the cluster.
        job: graph of the training step, or its kind.
        runs: that were checked; as installed by default.
        calibration: holds the errors on measured CPU settings; as installed by default.
        cost: of the graph, where it is known already.
        topology: machines of the setting, where they are known already.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
        SettingError: an unknown device or link.
    """
    if setting.on_cpu:
        return _on_cpu(setting, calibration or shipped_calibration(setting))
    kind = job if isinstance(job, JobKind) else job_kind(job, cost)
    if kind.unlike:
        return StatedError(runs=kind.unlike)
    checked = shipped_checked_runs() if runs is None else runs
    like = [run for run in checked if run.half == kind.half]
    cluster_kind = scheme_named(setting.scheme.name).error_kind(setting.num_workers)
    if cluster_kind == "servers":
        return _on_servers(setting, _topology(setting, topology), checked, half=kind.half)
    if cluster_kind == "ring":
        return _on_ring(setting, _topology(setting, topology), like)
    if cluster_kind != "single":
        return StatedError(runs=f"no published run uses the scheme {setting.scheme.name}")
    return _of_device(setting.device, [run for run in like if run.kind == "single"], _alone)


def _topology(setting: Setting, known: Topology | None) -> Topology:
    return topology_of(setting) if known is None else known


def _on_ring(setting: Setting, topology: Topology, like: Sequence[CheckedRun]) -> StatedError:
    several = topology.num_machines > 1
    where = "on several machines" if several else "in one machine"
    rings = [run for run in like if run.kind == "ring" and run.several_machines == several]
    if not rings:
        return StatedError(runs=f"no published ring {where} in this precision")
    most = max(run.num_workers for run in rings)
    if setting.num_workers > most:
        return StatedError(
            runs=f"no published ring {where} has more than {most} devices, this one has "
            f"{setting.num_workers}"
        )
    fastest = max((run.link for run in rings), key=_rate)
    if several and topology.link_bytes_per_s > _rate(fastest):
        return StatedError(
            runs=f"no published ring {where} has a faster network than {fastest}, this one has "
            f"{topology.link}"
        )
    family = topology.link.partition("-")[0].rstrip("0123456789")
    families = sorted({run.link.partition("-")[0].rstrip("0123456789") for run in rings})
    if not several and family not in families:
        return StatedError(
            runs=f"published rings {where} go over {_and(families)}, this one over {topology.link}"
        )
    return _of_device(setting.device, rings, lambda names: f"rings of {_and(names)} {where}")


def _on_servers(
    setting: Setting, topology: Topology, checked: Sequence[CheckedRun], *, half: bool
) -> StatedError:
    """With servers only small GPUs were published.

    A step of a cluster holds one of a device, so what is stated is no smaller than the error of the
    device by itself.
    """
    like = [run for run in checked if run.half == half]
    alone = _of_device(setting.device, [run for run in like if run.kind == "single"], _alone)
    clusters = [run for run in checked if run.kind == "servers"]
    reason = _unlike_clusters(setting, topology, clusters)
    clusters = [run for run in clusters if run.half == half]
    if not reason and not clusters:
        reason = "no published run with parameter servers is in this precision"
    if reason:
        of_part = f"; of computing alone: {alone.sentence()}" if alone.num_runs else ""
        return StatedError(runs=f"{reason}{of_part}")
    together = _of_device(
        setting.device, clusters, lambda names: f"parameter servers with {_and(names)}"
    )
    return max(together, alone, key=lambda error: error.p90_pct or 0.0)


def _unlike_clusters(setting: Setting, topology: Topology, clusters: Sequence[CheckedRun]) -> str:
    """How a setting differs from all published runs with servers; empty if it does not."""
    if not clusters:
        return "there is no published run with parameter servers"
    servers = max(run.num_servers for run in clusters)
    workers = max(run.num_workers for run in clusters)
    if setting.num_servers > servers or setting.num_workers > workers:
        return (
            f"published runs with parameter servers have up to {servers} of them and {workers} "
            f"workers, this setting {setting.num_servers} and {setting.num_workers}"
        )
    if topology.num_machines == 1:
        return "published runs with parameter servers are on several machines"
    fastest = max((run.link for run in clusters), key=_rate)
    if topology.link_bytes_per_s > _rate(fastest):
        return f"published runs with parameter servers have networks of up to {fastest}"
    return ""


def _of_device(
    device: str, runs: Sequence[CheckedRun], words: Callable[[Sequence[str]], str]
) -> StatedError:
    """Error on the device's own runs, or on devices that were left out of the fit."""
    own = [run for run in runs if run.held_out == "model" and device in run.devices]
    if len(own) >= _ENOUGH_RUNS:
        names = sorted({name for run in own for name in run.devices})
        return _summary(own, f"published runs of {words(names)}, without their model in the fit")
    others = [run for run in runs if run.held_out == "device"]
    if not others:
        return StatedError(runs=f"no published run of {words([device])} in this precision")
    names = sorted({name for run in others for name in run.devices})
    return _summary(
        others,
        f"published runs of {words(names)}, without their device in the fit, as too few are of "
        f"{device}",
    )


def _summary(runs: Sequence[CheckedRun], words: str) -> StatedError:
    errors = [run.error_pct for run in runs]
    return StatedError(
        num_runs=len(runs),
        runs=words,
        median_pct=float(np.median(errors)),
        p90_pct=float(np.percentile(errors, 90)),
    )


def _on_cpu(setting: Setting, calibration: Calibration) -> StatedError:
    """Settings of CPUs were measured here, with the workloads of the catalogue."""
    servers = calibration.errors.get("servers")
    measured = {} if servers is None else servers.settings
    if setting.name not in measured:
        return StatedError(
            runs=f"settings of CPUs that were measured are {', '.join(sorted(measured))}"
        )
    found = measured[setting.name]
    return StatedError(
        num_runs=found.rows,
        runs=f"workloads of the catalogue, measured on {setting.name}",
        median_pct=found.median_pct,
        p90_pct=found.p90_pct,
    )


def _alone(names: Sequence[str]) -> str:
    return f"one device ({_and(names)})"


def _and(names: Sequence[str]) -> str:
    """Names in a row; only their number if there are many."""
    if len(names) > _MOST_NAMED:
        return f"{len(names)} kinds"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _rate(link: str) -> float:
    return link_named(link).bytes_per_s


def _is_plain(op: OpSignature) -> bool:
    """A 2-D convolution over all channels, or one of its gradients."""
    window = window_of(op) if op.kind in _PLAIN else None
    return op.kind in _PLAIN and (window is None or len(window) == _FLAT_WINDOW)


def _product_flops(graph: OpGraph, cost: GraphCost) -> list[float]:
    """FLOPs of each convolution and matrix product in a step, 0 of all other nodes."""
    flops: npt.NDArray[np.float64] = cost.flops * cost.executions
    is_product = [family_of(op.kind) in PRODUCT_FAMILIES for op in graph.signatures]
    return [
        one if is_product[number] else 0.0
        for one, number in zip(flops.tolist(), graph.signature_of.tolist(), strict=True)
    ]


def _output_type(graph: OpGraph, node: int) -> int:
    """Number of the data type of a node's first output; 0 if it has none."""
    outputs = graph.signatures[int(graph.signature_of[node])].outputs
    return outputs[0].dtype if outputs else 0
