"""Which checked runs are on clusters like an answer's.

Setting -> ClusterKind
CheckedRun, ... + ClusterKind --runs_like--> those like it, or why there are none
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from driple.answers.checked_runs import CheckedRun
from driple.catalog import link_named
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.remarks import Remark, remark
from driple.schemes.registry import scheme_named

__all__ = ["ClusterKind", "runs_like", "unlike_servers"]


_OFFLOADED = "states on the host (CPU offload)"


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
    def of(
        cls, setting: Setting, topology: Topology | None = None, *, offloads: bool = False
    ) -> ClusterKind:
        """Of a setting.

        Args:
            setting: cluster and scheme.
            topology: its machines, where they are known already.
            offloads: whether the job keeps states on hosts, as no checked run does.

        Raises:
            SettingError: an unknown device or link.
        """
        kind = scheme_named(setting.scheme.name).runs_like(setting.num_workers).times
        if offloads:
            kind = _OFFLOADED
        if kind == "single" or (offloads and setting.num_workers == 1):
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

    def on(self, device: str) -> ClusterKind:
        """The same cluster of another device."""
        machine = None if self.one_machine is None else self.one_machine.on(device)
        return replace(self, devices=(device,), one_machine=machine)


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
) -> tuple[list[CheckedRun], Remark | None]:
    """Runs on clusters like this one; or why there are none.

    Args:
        some: of one task and kind of network.
        cluster: it.
        compiled: whether they are compiled, which the reason says.
    """
    like = [run for run in some if run.kind == cluster.kind]
    if not like:
        return [], remark("no_run_of_kind", kind=cluster.kind, compiled=compiled)
    return (like, None) if cluster.kind == "single" else _like_joined(like, cluster)


def _like_joined(
    like: list[CheckedRun], cluster: ClusterKind
) -> tuple[list[CheckedRun], Remark | None]:
    """Of runs on several devices, those on as many machines, of such a size, over such a link."""
    of: dict[str, str | bool] = {"kind": cluster.kind, "several_machines": cluster.several_machines}
    like = [run for run in like if run.several_machines == cluster.several_machines]
    if not like:
        return [], remark("no_run_on_machines", **of)
    most = max(run.num_devices for run in like)
    if cluster.num_workers > most:
        return [], remark("more_devices", num_devices=cluster.num_workers, most=most, **of)
    fastest = max((run.link for run in like), key=_rate)
    if cluster.several_machines and cluster.link_bytes_per_s > _rate(fastest):
        return [], remark("faster_network", link=cluster.link, fastest=fastest, **of)
    families = sorted({_link_family(run.link) for run in like})
    if not cluster.several_machines and _link_family(cluster.link) not in families:
        return [], remark("other_links", link=cluster.link, families=tuple(families), **of)
    return like, None


def unlike_servers(cluster: ClusterKind, clusters: Sequence[CheckedRun]) -> Remark | None:
    """How a setting differs from all published runs with servers; None if it does not."""
    if not clusters:
        return remark("no_run_with_servers")
    servers = max(run.num_servers for run in clusters)
    workers = max(run.num_devices for run in clusters)
    if cluster.num_servers > servers or cluster.num_workers > workers:
        return remark(
            "more_servers",
            num_servers=cluster.num_servers,
            num_workers=cluster.num_workers,
            most_servers=servers,
            most_workers=workers,
        )
    if not cluster.several_machines:
        return remark("servers_on_one_machine")
    fastest = max((run.link for run in clusters), key=_rate)
    if cluster.link_bytes_per_s > _rate(fastest):
        return remark("faster_network_of_servers", fastest=fastest)
    return None


@cache
def _rate(link: str) -> float:
    """Of a link of the installed catalogue."""
    return link_named(link).bytes_per_s


def _link_family(link: str) -> str:
    return link.partition("-")[0].rstrip("0123456789")
