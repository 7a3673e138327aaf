"""Small jobs, and a plain simulation of them, to hold the compiled one against."""

from __future__ import annotations

import heapq
from functools import partial

import numpy as np

from driple.async_sgd.compiled import CompiledJob
from driple.async_sgd.jobtrace import JobTrace, Resource
from driple.async_sgd.order import downlink_ranks, uses_of_downlinks
from driple.async_sgd.origin import TraceOrigin
from driple.async_sgd.scaling import ScaledCluster
from driple.schemes.engine import EventQueue
from driple.schemes.network import SharedNetwork

RATE = 100e6


def job_of(
    ops: list[tuple[int, list[float], list[int]]], servers: int = 1, batch_size: int = 8
) -> CompiledJob:
    """A job of (resource, amount in each profiled step, ops that it waits for)."""
    links = 1 + servers
    down = [links <= resource < links + servers for resource, _, _ in ops]
    first_use, load = uses_of_downlinks([waits for _, _, waits in ops], down)
    amount = np.array([amounts for _, amounts, _ in ops]).T
    return CompiledJob(
        names=tuple(f"op{i}" for i in range(len(ops))),
        resource=np.array([resource for resource, _, _ in ops], dtype=np.int64),
        amount=amount,
        rank=np.tile(np.arange(len(ops)), (len(amount), 1)),
        edges=np.array(
            [(j, i) for i, (_, _, waits) in enumerate(ops) for j in waits], dtype=np.int64
        ).reshape(-1, 2),
        num_servers=servers,
        batch_size=batch_size,
        step_s=(amount / [RATE if resource >= links else 1 for resource, _, _ in ops]).sum(axis=1),
        transfer_of=np.arange(len(ops)),
        first_use=first_use,
        load=load,
    )


def random_job(seed: int, servers: int = 1, steps: int = 3) -> CompiledJob:
    """Parameters, ops that read them and each other, gradients, updates."""
    random = np.random.default_rng(seed)

    def seconds() -> list[float]:
        return random.uniform(0.001, 0.05, steps).tolist()

    ops: list[tuple[int, list[float], list[int]]] = []
    for _ in range(6):
        place = 1 + servers + int(random.integers(servers))
        ops.append((place, [float(random.uniform(0.1e6, 4e6))] * steps, []))
    for i in range(6, 18):
        waits = random.choice(i, size=int(random.integers(1, 4)), replace=False).tolist()
        ops.append((0, seconds(), sorted(waits)))
    for _ in range(5):
        server = int(random.integers(servers))
        waits = [int(random.integers(6, 18))]
        ops.append((1 + 2 * servers + server, [float(random.uniform(0.1e6, 4e6))] * steps, waits))
        ops.append((1 + server, seconds(), [len(ops) - 1]))
    return job_of(ops, servers)


def trace_of(job: CompiledJob, ends: list[dict[int, tuple[float, float]]]) -> JobTrace:
    """A trace with these (begin, end) of each op in each step; ops in the job's order."""
    servers = job.num_servers
    kinds, numbers = [], []
    for resource in job.resource.tolist():
        kind = 0 if not resource else 1 + (resource - 1) // servers
        kinds.append(kind)
        numbers.append(0 if not resource else (resource - 1) % servers)
    is_link = [kind >= Resource.DOWNLINK for kind in kinds]
    return JobTrace(
        names=job.names,
        resources=np.array(kinds, dtype=np.int8),
        servers=np.array(numbers, dtype=np.int16),
        sizes=np.where(is_link, job.amount[0], 0).astype(np.int64),
        edges=job.edges.astype(np.int32),
        start_s=np.array([[one[i][0] for i in range(job.num_ops)] for one in ends]),
        end_s=np.array([[one[i][1] for i in range(job.num_ops)] for one in ends]),
        step_s=np.array([max(end for _, end in one.values()) for one in ends]),
        batch_size=job.batch_size,
        bytes_per_s=RATE,
        about=TraceOrigin(),
    )


def plain_ends(job: CompiledJob, cluster: ScaledCluster, chosen: np.ndarray) -> np.ndarray:
    """When each worker ends each step, by the event queue and the shared network of `simulate`."""
    queue = EventQueue()
    workers, servers = cluster.num_workers, job.num_servers
    own = list(cluster.worker_bytes_per_s or [cluster.bytes_per_s] * workers)
    # A link from and one to each server, then one to and one from each worker.
    capacities = [cluster.bytes_per_s] * (2 * servers) + [rate for rate in own for _ in range(2)]
    network = SharedNetwork(queue, capacities, 0)
    everyone = [_Worker(job, cluster, chosen[w], w, network) for w in range(workers)]
    barrier: list[int] = []
    for worker in everyone:
        worker.peers, worker.barrier = everyone, barrier
    for worker in everyone:
        worker.begin()
    queue.run()
    return np.array([worker.ends for worker in everyone])


class _Worker:
    """One worker; every resource takes what is ready, one chunk at a time."""

    def __init__(
        self,
        job: CompiledJob,
        cluster: ScaledCluster,
        steps: np.ndarray,
        number: int,
        network: SharedNetwork,
    ) -> None:
        self.job, self.cluster, self.steps = job, cluster, steps
        self.network, self.queue, self.servers = network, network._queue, job.num_servers
        servers = self.servers
        self.slow = cluster.slowness[number] if cluster.slowness else 1.0
        self.window = np.inf if cluster.window_bytes is None else cluster.window_bytes
        self.ranks = downlink_ranks(job, cluster.order)
        mine = 2 * servers + 2 * number
        self.streams = [
            *(network.stream((s, mine)) for s in range(servers)),
            *(network.stream((servers + s, mine + 1)) for s in range(servers)),
        ]
        self.ends: list[float] = []
        self.sequence = 0
        self.peers: list[_Worker] = []
        self.barrier: list[int] = []

    def begin(self) -> None:
        self.left = self.job.amount[self.steps[len(self.ends)]].copy()
        self.fresh = [True] * self.job.num_ops
        self.waits = np.bincount(self.job.edges[:, 1], minlength=self.job.num_ops)
        self.ready: list[list[tuple[int, int]]] = [[] for _ in range(1 + 3 * self.servers)]
        self.busy = [False] * len(self.ready)
        self.done = 0
        for op in np.flatnonzero(self.waits == 0).tolist():
            self.add(op)
        self.start()

    def add(self, op: int) -> None:
        resource = int(self.job.resource[op])
        key = int(self.job.rank[self.steps[len(self.ends)], op])
        if resource > self.servers:
            self.sequence += 1
            key = int(self.ranks[op]) if self.ranks[op] >= 0 else self.sequence
        heapq.heappush(self.ready[resource], (key, op))

    def start(self) -> None:
        for resource, waiting in enumerate(self.ready):
            if self.busy[resource] or not waiting:
                continue
            self.busy[resource] = True
            _, op = heapq.heappop(waiting)
            if resource <= self.servers:
                seconds = self.left[op] * (self.slow if not resource else 1.0)
                self.left[op] = 0.0
                self.queue.at(self.queue.now_s + seconds, partial(self.finish, resource, op))
            else:
                chunk = min(self.left[op], self.window) if self.fresh[op] else self.left[op]
                self.fresh[op] = False
                self.left[op] -= chunk
                stream = self.streams[resource - 1 - self.servers]
                self.network.send(stream, chunk, partial(self.finish, resource, op))

    def finish(self, resource: int, op: int) -> None:
        self.busy[resource] = False
        if self.left[op] > 0:
            self.add(op)
        else:
            self.done += 1
            for d in self.job.edges[self.job.edges[:, 0] == op, 1].tolist():
                self.waits[d] -= 1
                if not self.waits[d]:
                    self.add(d)
        self.start()
        if self.done == self.job.num_ops:
            self.end()

    def end(self) -> None:
        self.ends.append(self.queue.now_s)
        if not self.cluster.synchronous:
            if len(self.ends) < len(self.steps):
                self.begin()
            return
        self.barrier.append(1)
        if len(self.barrier) == len(self.peers):
            self.barrier.clear()
            for each in self.peers:
                if len(each.ends) < len(each.steps):
                    each.begin()
