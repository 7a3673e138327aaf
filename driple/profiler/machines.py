"""Several machines for step 5: real ones joined by torchrun, or emulated by network namespaces.

torchrun --nnodes 2 --nproc-per-node 1 ... -m driple profile run -- SCRIPT
    machine 0 is the leader: it runs steps 1 to 4, starts step 5 on all machines, and keeps all
    results; the other machines are followers

driple profile run --set bandwidth=100M -- SCRIPT
    each namespace (`driple.measure.testbed.network`) is a machine, with a link of that rate
"""

from __future__ import annotations

import datetime
import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from driple.codec import from_json, json_field, to_dict
from driple.errors import MeasureError
from driple.measure.testbed.network import ClusterNetwork, Port
from driple.profiler.launch import LaunchPlace
from driple.profiler.profile_records import RankResult
from driple.storedfiles import parse_json

__all__ = ["JoinedMachines", "free_port", "own_machine", "stand_in_machines"]

_PORT = 29_511
_LOOPBACK = "127.0.0.1"
# Timeout of a follower that waits while the leader runs steps 1 to 4.
_LONG = datetime.timedelta(days=2)

Results = list[RankResult]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Order:
    """A command of the leader: launch with this port, or stop."""

    port: int = field(default=0, metadata=json_field(optional=True))
    stop: bool = field(default=False, metadata=json_field(optional=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    """Measurements of a machine's ranks, or the reason for their absence."""

    results: list[RankResult] = field(default_factory=list, metadata=json_field(optional=True))
    error: str = field(default="", metadata=json_field(optional=True))


def free_port() -> int:
    """A free TCP port of this machine."""
    with socket.socket() as taken:
        taken.bind(("", 0))
        return int(taken.getsockname()[1])


def own_machine(processes: int) -> tuple[tuple[LaunchPlace, ...], tuple[str, int]]:
    """This machine alone: its place, and the address of the rendezvous."""
    here = {"GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")}
    return (LaunchPlace(processes=processes, environment=here),), (_LOOPBACK, free_port())


@contextmanager
def stand_in_machines(
    processes: int, machines: int, bits_per_s: float, gpus: Sequence[int] = ()
) -> Iterator[tuple[tuple[LaunchPlace, ...], tuple[str, int]]]:
    """Network namespaces as machines, joined by links of that rate: places, rendezvous address.

    Args:
        processes: total number of processes.
        machines: number of namespaces; a divisor of `processes`.
        bits_per_s: rate of each link in each direction.
        gpus: GPU numbers, one per process; empty for training on CPUs.

    Raises:
        MeasureError: missing permission or tools, or another run uses the network.
    """
    each = processes // machines
    roles = [f"m{i}" for i in range(machines)]
    with ClusterNetwork(roles, bits_per_s, port=Port(in_order=True)) as network:
        host, _, port = network.address(roles[0], _PORT).partition(":")
        places = []
        for i, role in enumerate(roles):
            # NCCL must see different hosts, or it uses shared memory.
            here = {"GLOO_SOCKET_IFNAME": "eth0", "NCCL_SOCKET_IFNAME": "eth0",
                    "NCCL_HOSTID": role}  # fmt: skip
            if gpus:
                own = gpus[i * each : (i + 1) * each]
                here["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, own))
            prefix = tuple(network.command_prefix(role))
            places.append(LaunchPlace(processes=each, prefix=prefix, environment=here))
        yield tuple(places), (host, int(port))


@dataclass(slots=True)
class JoinedMachines:
    """The machines that torchrun joined, one `driple profile run` on each.

    Attributes:
        rank: rank of this machine; 0 is the leader.
        size: number of machines.
        master: address of machine 0.
        store: key-value store for their communication.
        orders: number of commands so far.
    """

    rank: int
    size: int
    master: str
    store: Any
    orders: int = 0

    @classmethod
    def of_environment(cls) -> JoinedMachines | None:
        """The group of a process that torchrun started; None without torchrun, or with one machine.

        Raises:
            MeasureError: torchrun started several processes per machine, or its store cannot be
                reached.
        """
        environment = os.environ
        if "RANK" not in environment or int(environment.get("WORLD_SIZE", "1")) < 2:
            return None
        if int(environment.get("LOCAL_WORLD_SIZE", "1")) != 1:
            raise MeasureError(
                f"torchrun started {environment['LOCAL_WORLD_SIZE']} profilers on a machine; give "
                "it --nproc-per-node 1, and --devices to driple profile run"
            )
        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        rank, size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        agent = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        try:
            store = TCPStore(
                environment["MASTER_ADDR"],
                int(environment["MASTER_PORT"]),
                is_master=rank == 0 and not agent,
                wait_for_workers=False,
            )
        except (KeyError, RuntimeError) as error:
            raise MeasureError(f"the other machines cannot be reached: {error}") from error
        return cls(rank=rank, size=size, master=environment["MASTER_ADDR"], store=store)

    def order(self, port: int, timeout_s: float, mine: Callable[[], Results]) -> Results:
        """Leader: launch on all machines and gather the measurements of all ranks.

        Args:
            port: port of the rendezvous of all processes.
            timeout_s: timeout for each answer after this machine's launch has ended.
            mine: launches on this machine.

        Raises:
            MeasureError: a machine failed or does not answer.
        """
        number, self.orders = self.orders, self.orders + 1
        self.store.set(f"driple/order{number}", json.dumps(to_dict(_Order(port=port))))
        results = mine()
        for machine in range(1, self.size):
            whom = f"machine {machine}"
            answer = from_json(
                _Answer,
                self._wait(
                    f"driple/answer{number}/{machine}", datetime.timedelta(seconds=timeout_s), whom
                ),
                where=f"the answer of {whom}",
                error=MeasureError,
            )
            if answer.error:
                raise MeasureError(f"{whom}: {answer.error}")
            results = results + answer.results
        return results

    def stop(self) -> None:
        """Leader: stop the followers."""
        self.store.set(f"driple/order{self.orders}", json.dumps(to_dict(_Order(stop=True))))
        for machine in range(1, self.size):  # this process may host the store
            self._wait(
                f"driple/stopped/{machine}", datetime.timedelta(seconds=30), f"machine {machine}"
            )

    def follow(self, launch: Callable[[int, int], Results]) -> int:
        """Follower: launch on every command of the leader; the number of launches.

        Args:
            launch: port and number of the command -> measurements of this machine's ranks.

        Raises:
            MeasureError: the leader has ended.
        """
        while True:
            number = self.orders
            order = from_json(
                _Order,
                self._wait(f"driple/order{number}", _LONG, "machine 0"),
                where="the order of machine 0",
                error=MeasureError,
            )
            if order.stop:
                self.store.set(f"driple/stopped/{self.rank}", json.dumps({}))
                return number
            try:
                answer = _Answer(results=launch(order.port, number))
            except MeasureError as error:
                answer = _Answer(error=str(error))
            self.store.set(f"driple/answer{number}/{self.rank}", json.dumps(to_dict(answer)))
            self.orders += 1

    def _wait(self, key: str, how_long: datetime.timedelta, whom: str) -> object:
        try:
            self.store.wait([key], how_long)
            value: object = parse_json(self.store.get(key))
        except RuntimeError as error:
            raise MeasureError(
                f"{whom} does not answer; start the same command on every machine, and again to "
                "go on"
            ) from error
        return value
