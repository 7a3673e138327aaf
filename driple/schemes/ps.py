"""Parameter servers, synchronous or asynchronous: the scheme `ps`.

`driple.schemes.servers` simulates workers and servers event by event; its names are
re-exported here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driple.cluster.cluster import Cluster
from driple.cluster.schemes import PS, Degrees
from driple.cluster.topology import Topology
from driple.errors import SettingError
from driple.graph.opgraph import Layout
from driple.remarks import Remark
from driple.schemes.fair_shares import SharedLink
from driple.schemes.layouts import Layouts
from driple.schemes.records import Computing, WorkerRecord
from driple.schemes.scheme import ProgramExchange, RunsLike, SchemeStep, Sharding
from driple.schemes.servers import ClusterSpec, simulate_cluster, spread
from driple.step.exchange import ExchangeRule
from driple.units import counted

__all__ = [
    "ClusterSpec",
    "Computing",
    "ParameterServers",
    "WorkerRecord",
    "simulate_cluster",
    "spread",
]

# Steps of each asynchronous worker: warm-up until the phases between workers are stable, then
# measured steps. 100 steps average over the phases of heterogeneous workers; 200 steps of all
# workers together are as precise.
_WARM_UP, _MOST_STEPS, _LEAST_ASYNC_STEPS, _WORKER_STEPS = 5, 100, 20, 200
_MOST_PAIRS = 1_000  # of a worker and a server: a simulation takes the square of their number


class ParameterServers:
    """Workers that pull parameters from servers and push gradients to them."""

    name = PS
    uses_servers = True
    sharding: Sharding | None = Sharding(updates=False)

    def sharding_of(self, degrees: Degrees) -> Sharding | None:
        """The same: degrees are for replicas of several devices."""
        return self.sharding

    def runs_like(self, num_workers: int) -> RunsLike:
        """Parameter servers; a worker's memory is that of one device."""
        return RunsLike(times="servers", memory="single")

    def is_planned(self, cluster: Cluster, *, is_model: bool) -> bool:
        """Never: what may be rented has no servers."""
        return False

    def rule(self, program: ProgramExchange) -> ExchangeRule | None:
        """None: messages belong to servers."""
        return None

    def assumption(self, layout: Layout, num_workers: int) -> Remark | None:
        """Assumption for a graph that was built for another scheme."""
        return Layouts.on_servers(layout)

    def link_loads(
        self, topology: Topology, link: SharedLink, bridge: float
    ) -> tuple[float, float] | None:
        """Seconds per byte of all workers' gradients, spread evenly: at workers, at servers.

        Roles of one machine communicate over ports of its bridge; others share the machines' links.
        All workers use the links at the same time.

        Args:
            topology: with parameter servers.
            link: of a machine, each way; its copies are those of each role.
            bridge: bytes/s of a port of a machine's bridge, each way.
        """
        workers = np.array(topology.worker_machine)
        servers = np.array(topology.server_machine)
        here = workers[:, None] == servers[None, :]
        share = 1 / len(servers)
        at_worker = [share * here.sum(axis=1).max() / bridge]
        at_server = [share * here.sum(axis=0).max() / bridge]
        for machine in range(topology.num_machines):
            own, served = ~here[workers == machine], ~here[:, servers == machine]
            users = int(own.any(axis=1).sum() + served.any(axis=1).sum())
            link_s = 1 / replace(link, copy_s_per_byte=0.0).capacity(users)
            at_worker.append(share * own.sum() * link_s)
            at_server.append(share * served.sum() * link_s)
            role_s = 1 / link.capacity(users)
            at_worker += (share * own.sum(axis=1) * role_s).tolist()
            at_server += (share * served.sum(axis=0) * role_s).tolist()
        return max(at_worker), max(at_server)

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker; a record each.

        Asynchronous workers start one after another, spread over a step. After a warm-up they run
        200 steps together, and 20 to 100 each, whatever `num_steps` is.

        Raises:
            SettingError: the link is not known, or there are too many pairs of a worker and a
                server.
        """
        topology, servers = step.topology, step.servers
        link = step.within if step.between is None else step.between
        if link is None:
            raise SettingError(
                "the link between workers and parameter servers is not known; name it, as in "
                "V100-P1w2/ho-PCIe"
            )
        _check_pairs(topology)
        cluster = ClusterSpec(
            worker_machine=topology.worker_machine,
            server_machine=topology.server_machine,
            link_bytes_per_s=link.bytes_per_s(1),
            link_sharing=link.efficiency.sharing,
            bridge_bytes_per_s=servers.bridge_bytes_per_s,
            role_copy_bytes_per_s=servers.role_copy_bytes_per_s,
            message_s=link.efficiency.latency_s,
            copy_s_per_byte=servers.copy_s_per_byte,
            apply_s_per_byte=servers.apply_s_per_byte,
            synchronous=step.synchronous,
            jitter=step.update.jitter,
        )
        if step.synchronous:
            return simulate_cluster(cluster, step.plans, num_steps, seed)
        steps = min(_MOST_STEPS, max(_LEAST_ASYNC_STEPS, _WORKER_STEPS // len(step.plans)))
        if not step.update.jitter and step.are_alike:
            steps = _LEAST_ASYNC_STEPS  # they repeat
        return simulate_cluster(
            spread(cluster, step.plans), step.plans, 1 + steps, seed, warm_up=_WARM_UP
        )


def _check_pairs(topology: Topology) -> None:
    """Refuse what would take hours.

    Raises:
        SettingError: too many pairs of a worker and a server.
    """
    workers, servers = len(topology.worker_machine), len(topology.server_machine)
    if workers * servers > _MOST_PAIRS:
        raise SettingError(
            f"{counted(workers, 'worker')} on {counted(servers, 'parameter server')} exchange "
            f"messages in {workers * servers:,} pairs, and at most {_MOST_PAIRS:,} are simulated; "
            f"ask for fewer, or for a ring, such as {topology.workers[0].name}-R128/ho-10G"
        )
