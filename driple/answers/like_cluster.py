"""Which checked runs are on clusters like an answer's, and how they are named.

Setting -> ClusterKind
CheckedRun, ... + ClusterKind --runs_like--> those like it, or why there are none
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driple.answers.checked_runs import CheckedRun
from driple.catalog import link_named
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.schemes.registry import scheme_named
from driple.schemes.scheme import run_words

__all__ = ["ClusterKind", "named", "runs_like", "unlike_servers", "where_of"]

_MOST_NAMED = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterKind:
    """What of a cluster decides which runs are like an answer.

    Attributes:
        kind: `single`, `ring`, `sharded` or `servers`.
        devices: of the workers, each name once.
        num_workers: all of them.
        num_servers: parameter servers.
        several_machines: whether workers are on more than one machine.
        link: name of what joins workers, or machines; empty of a device alone.
        link_bytes_per_s: its nominal rate; 0 of a device alone.
        one_machine: one of several machines by itself; None of a single one, and with servers.
    """

    kind: str
    devices: tuple[str, ...]
    num_workers: int = 1
    num_servers: int = 0
    several_machines: bool = False
    link: str = ""
    link_bytes_per_s: float = 0.0
    one_machine: ClusterKind | None = None

    @classmethod
    def of(cls, setting: Setting, topology: Topology | None = None) -> ClusterKind:
        """Of a setting.

        Raises:
            SettingError: an unknown device or link.
        """
        kind = scheme_named(setting.scheme.name).runs_like(setting.num_workers).times
        if kind == "single":
            return cls(kind=kind, devices=(setting.device,))
        known = topology_of(setting) if topology is None else topology
        return cls(
            kind=kind,
            devices=(setting.device,),
            num_workers=setting.num_workers,
            num_servers=setting.num_servers,
            several_machines=known.num_machines > 1,
            link=known.link,
            link_bytes_per_s=0.0 if known.joined_by is None else known.link_bytes_per_s,
            one_machine=_one_machine(kind, setting.device, known),
        )


def _one_machine(kind: str, device: str, topology: Topology) -> ClusterKind | None:
    """One of several machines by itself."""
    each, within = topology.devices_per_machine, topology.within
    if topology.num_machines < 2 or topology.server_machine:
        return None
    if each == 1 or within is None:
        return ClusterKind(kind="single", devices=(device,))
    return ClusterKind(
        kind=kind,
        devices=(device,),
        num_workers=each,
        link=within.name,
        link_bytes_per_s=within.bytes_per_s,
    )


def runs_like(
    some: Sequence[CheckedRun], cluster: ClusterKind, *, compiled: bool = False
) -> tuple[list[CheckedRun], str]:
    """Runs on clusters like this one; or why there are none.

    Args:
        some: of one task and kind of network.
        cluster: it.
        compiled: whether they are compiled, which the reason says.
    """
    words = run_words(cluster.kind)
    like = [run for run in some if run.kind == cluster.kind]
    if not like:
        adjective = "compiled " if compiled else ""
        return [], f"no published {adjective}run of this kind of network is of {words}"
    return (like, "") if cluster.kind == "single" else _like_joined(like, cluster)


def _like_joined(like: list[CheckedRun], cluster: ClusterKind) -> tuple[list[CheckedRun], str]:
    """Of runs on several devices, those on as many machines, of such a size, over such a link."""
    words = run_words(cluster.kind)
    where = "on several machines" if cluster.several_machines else "in one machine"
    like = [run for run in like if run.several_machines == cluster.several_machines]
    if not like:
        return [], f"no published run of {words} {where} of this kind of network"
    most = max(run.num_devices for run in like)
    if cluster.num_workers > most:
        return [], (
            f"no published run of {words} {where} has more than {most} devices, this one has "
            f"{cluster.num_workers}"
        )
    fastest = max((run.link for run in like), key=_rate)
    if cluster.several_machines and cluster.link_bytes_per_s > _rate(fastest):
        return [], (
            f"no published run of {words} {where} has a faster network than {fastest}, this one "
            f"has {cluster.link}"
        )
    families = sorted({_link_family(run.link) for run in like})
    if not cluster.several_machines and _link_family(cluster.link) not in families:
        return [], (
            f"published {words} {where} go over {named(families)}, this one over {cluster.link}"
        )
    return like, ""


def unlike_servers(cluster: ClusterKind, clusters: Sequence[CheckedRun]) -> str:
    """How a setting differs from all published runs with servers; empty if it does not."""
    if not clusters:
        return "there is no published run with parameter servers of this kind of network"
    servers = max(run.num_servers for run in clusters)
    workers = max(run.num_devices for run in clusters)
    if cluster.num_servers > servers or cluster.num_workers > workers:
        return (
            f"published runs with parameter servers have up to {servers} of them and {workers} "
            f"workers, this setting {cluster.num_servers} and {cluster.num_workers}"
        )
    if not cluster.several_machines:
        return "published runs with parameter servers are on several machines"
    fastest = max((run.link for run in clusters), key=_rate)
    if cluster.link_bytes_per_s > _rate(fastest):
        return f"published runs with parameter servers have networks of up to {fastest}"
    return ""


def where_of(cluster: ClusterKind, names: Sequence[str]) -> str:
    """Devices and cluster of some runs, in words."""
    if cluster.kind == "single":
        return f"one device ({named(names)})"
    where = "on several machines" if cluster.several_machines else "in one machine"
    if cluster.kind == "servers":
        return f"parameter servers with {named(names)}"
    return f"{run_words(cluster.kind)} of {named(names)} {where}"


def named(names: Sequence[str]) -> str:
    """Names in a row; only their number if there are many."""
    if len(names) > _MOST_NAMED:
        return f"{len(names)} kinds"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _rate(link: str) -> float:
    return link_named(link).bytes_per_s


def _link_family(link: str) -> str:
    return link.partition("-")[0].rstrip("0123456789")
