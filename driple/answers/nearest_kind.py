"""The nearest kind of published run, where none is of an answer's own kind.

    JobKind, ClusterKind, checked runs --nearest_kind--> JobKind, ClusterKind that runs are like

A kind is a task, a kind of network, a kind of cluster in one machine or on several, compiled or
not, in half precision or not. Each kind left out in turn, and its runs asked by the nearest one,
90 % intervals with logarithms `NEAREST_KIND_WIDER` times as long hold 95 % of the runs in the mean
over kinds, and 79 % in the worst (decisions 0054 and 0072).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import log10

from driple.answers.checked_runs import RunColumns
from driple.answers.job_kind import JobKind
from driple.answers.like_cluster import ClusterKind
from driple.answers.op_mix import network_of
from driple.catalog import link_named
from driple.estimate import NEAREST_KIND_WIDER

__all__ = ["RunKind", "RunKinds", "kind_distance"]

_FEWEST_FAMILIES = 3  # of a kind that stands in for others
# A forward pass never stands in for training, nor the reverse.
_WEIGHTS = {"network": 8, "cluster": 4, "several_machines": 2, "compiled": 2, "half": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunKind:
    """What decides whether runs are of one kind.

    Attributes:
        task: `train` or `forward`.
        network: kind of network.
        cluster: `single`, `ring`, `sharded`, `servers`, or a scheme's own kind.
        several_machines: whether workers are on more than one machine.
        compiled: whether a compiler fused the ops.
        half: whether most multiply-adds are in half precision.
    """

    task: str
    network: str
    cluster: str
    several_machines: bool
    compiled: bool
    half: bool

    @classmethod
    def of(cls, job: JobKind, cluster: ClusterKind) -> RunKind:
        """The kind of an answer."""
        return cls(
            task=job.task,
            network=job.network,
            cluster=cluster.kind,
            several_machines=cluster.several_machines,
            compiled=job.compiled,
            half=job.half,
        )


def kind_distance(kind: RunKind, other: RunKind) -> int:
    """How unlike two kinds of one task are: 0 of the same kind."""
    return sum(
        weight for name, weight in _WEIGHTS.items() if getattr(kind, name) != getattr(other, name)
    )


@dataclass(slots=True)
class _Extent:
    """How large the clusters of one kind's runs are."""

    families: set[str]
    links: set[str]
    num_devices: int = 1
    num_servers: int = 0


class RunKinds:
    """Kinds of checked runs, with the sizes of their clusters.

    Args:
        columns: of the runs.
    """

    def __init__(self, columns: RunColumns) -> None:
        self._extents: dict[RunKind, _Extent] = defaultdict(lambda: _Extent(set(), set()))
        names = ("task", "mix", "kind", "several_machines", "compiled", "half")
        more = ("family", "link", "num_devices", "num_servers")
        table = columns.columns
        networks = {mix: network_of(mix) for mix in set(table["mix"])}
        for row in zip(*(table[name] for name in (*names, *more)), strict=True):
            task, mix, cluster, several, compiled, half, family, link, devices, servers = row
            extent = self._extents[
                RunKind(
                    task=task,
                    network=networks[mix],
                    cluster=cluster,
                    several_machines=bool(several),
                    compiled=bool(compiled),
                    half=bool(half),
                )
            ]
            extent.families.add(family)
            extent.links.add(link)
            extent.num_devices = max(extent.num_devices, devices)
            extent.num_servers = max(extent.num_servers, servers)

    def by_distance(self, kind: RunKind) -> list[RunKind]:
        """Kinds of the same task with enough families, the nearest first."""
        enough = [
            other
            for other, extent in self._extents.items()
            if other.task == kind.task and len(extent.families) >= _FEWEST_FAMILIES
        ]
        return sorted(
            enough,
            key=lambda other: (kind_distance(kind, other), -len(self._extents[other].families)),
        )

    def stand_in(
        self, kind: RunKind, job: JobKind, cluster: ClusterKind
    ) -> tuple[JobKind, ClusterKind]:
        """A job and a cluster as runs of a kind have them, as near as may be to those asked for.

        Args:
            kind: of the runs.
            job: that asks.
            cluster: it runs on.
        """
        extent = self._extents[kind]
        alone = kind.cluster == "single"
        link = "" if alone else _nearest_link(cluster, extent.links, rate=_rate)
        return (
            replace(job, network=kind.network, compiled=kind.compiled, half=kind.half),
            ClusterKind(
                kind=kind.cluster,
                devices=cluster.devices,
                num_workers=1 if alone else min(cluster.num_workers, extent.num_devices),
                num_servers=min(cluster.num_servers, extent.num_servers),
                several_machines=kind.several_machines,
                link=link,
                link_bytes_per_s=_rate(link) if link else 0.0,
                one_machine=cluster.one_machine if kind.several_machines else None,
            ),
        )

    def exponent(self, kind: RunKind, cluster: ClusterKind) -> float:
        """On the factors of an interval: larger beyond the largest cluster of the runs.

        Args:
            kind: of the runs.
            cluster: of the answer.
        """
        most = self._extents[kind].num_devices
        if kind.cluster == "single" or cluster.num_workers <= most:
            return NEAREST_KIND_WIDER
        return NEAREST_KIND_WIDER * (1 + log10(cluster.num_workers / most))


def _rate(link: str) -> float:
    return link_named(link).bytes_per_s


def _nearest_link(
    cluster: ClusterKind, links: Iterable[str], *, rate: Callable[[str], float]
) -> str:
    """The cluster's own link where runs have it, else the nearest by its rate."""
    known = sorted(filter(None, links))
    if cluster.link in known or not known:
        return cluster.link
    return min(
        known, key=lambda link: abs(log10(rate(link)) - log10(cluster.link_bytes_per_s or 1))
    )
