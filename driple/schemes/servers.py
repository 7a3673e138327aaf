"""Event simulation of workers and parameter servers, step by step.

    step: pull parameters -> segments of computing, as parameters come -> push gradients
    asynchronous: a worker's next step begins when the server has applied its gradients; the first
                  steps of the workers begin one after another, spread over the time of a step
    synchronous:  all workers begin together when the last gradient is in

This is the behaviour of TensorFlow 1, which the public Driple measurements used: a worker fetches
all parameters when its step begins, and sends each gradient as soon as it is computed. Many
synchronous steps are simulated at once, by the same rules (`driple.schemes.synchronous`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from driple.checks import check_number, check_whole
from driple.errors import ConfigError
from driple.schemes.engine import EventQueue
from driple.schemes.fair_shares import SharedLink
from driple.schemes.network import SharedNetwork
from driple.schemes.records import Computing, WorkerRecord, check_rate
from driple.schemes.synchronous import simulate_synchronous
from driple.schemes.wiring import Wiring
from driple.step.plan import Message, Segment, StepPlan

# Minimum steps of the slowest worker.
_LEAST_STEPS = 10
_STEPS_ALONE = 2
_STEPS_AT_ONCE = 20  # synchronous steps from which on it is faster to simulate all at once
_MOST_AT_ONCE = 3  # servers that a worker hears from at the same time, where workers share

__all__ = ["ClusterSpec", "simulate_cluster", "spread"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSpec:
    """Placement of workers and parameter servers, and the links between them.

    Two roles on one machine communicate over its bridge, each over its own port. Roles on different
    machines share their machines' links with all other roles there. What a role sends or receives
    over a link it also copies in its host's memory, one after the other.

    Attributes:
        worker_machine: machine of each worker.
        server_machine: machine of each server.
        link_bytes_per_s: rate of a machine's link, each way, with one or two workers on it.
        link_sharing: n workers on a machine's link together get (2 / n) ** link_sharing of it.
        bridge_bytes_per_s: rate of a port of a machine's bridge, each way.
        role_copy_bytes_per_s: rate at which a role copies what crosses links between machines, each
            way, in series with the link.
        message_s: latency from the end of a message until the receiver can use it, seconds.
        apply_s_per_byte: time of a server to apply one byte of gradient, seconds.
        copy_s_per_byte: time of each worker to copy one byte between host memory and device,
            seconds; empty without such a copy.
        synchronous: whether workers wait for each other.
        starts_s: start of each worker, seconds; empty if all start at 0.
        jitter: standard deviation of the logarithm of a step's computing time.

    Raises:
        ConfigError: no workers or servers, a rate that is not above 0, a negative time, or numbers
            of workers that differ.
    """

    worker_machine: tuple[int, ...]
    server_machine: tuple[int, ...]
    link_bytes_per_s: float
    bridge_bytes_per_s: float
    link_sharing: float = 0.0
    role_copy_bytes_per_s: float = float("inf")
    message_s: float = 0.0
    apply_s_per_byte: float = 0.0
    copy_s_per_byte: tuple[float, ...] = ()
    synchronous: bool = False
    starts_s: tuple[float, ...] = ()
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not self.worker_machine or not self.server_machine:
            raise ConfigError(
                f"a cluster of {len(self.worker_machine)} workers and {len(self.server_machine)} "
                "servers; needed is one of each at least"
            )
        for name in ("link_bytes_per_s", "bridge_bytes_per_s", "role_copy_bytes_per_s"):
            check_rate(name, getattr(self, name))
        for name in ("link_sharing", "message_s", "apply_s_per_byte", "jitter"):
            check_number(name, getattr(self, name), least=0)
        for name in ("copy_s_per_byte", "starts_s"):
            numbers = getattr(self, name)
            if len(numbers) not in (0, len(self.worker_machine)):
                raise ConfigError(
                    f"{name} of {len(numbers)} workers, needed is one for each of "
                    f"{len(self.worker_machine)}"
                )
            for number in numbers:
                check_number(name, number, least=0)

    def wiring(self) -> Wiring:
        """Links between the roles: workers, then servers."""
        link = SharedLink(
            self.link_bytes_per_s, self.link_sharing, copy_s_per_byte=1 / self.role_copy_bytes_per_s
        )
        places = (*self.worker_machine, *self.server_machine)
        return Wiring(places, link, self.bridge_bytes_per_s)


def spread(spec: ClusterSpec, plans: Sequence[StepPlan]) -> ClusterSpec:
    """The cluster with staggered worker starts, spread evenly over a step.

    Asynchronous workers that all start at 0 request the same parameters at the same time, and
    may stay synchronised for hundreds of steps, which would decide the result. The step used
    here is the first worker's alone, without jitter.
    """
    alone = replace(
        spec,
        worker_machine=spec.worker_machine[:1],
        copy_s_per_byte=spec.copy_s_per_byte[:1],
        jitter=0.0,
    )
    (record,) = simulate_cluster(alone, plans[:1], _STEPS_ALONE)
    apart_s = record.iteration_time_s / len(plans)
    return replace(spec, starts_s=tuple(apart_s * worker for worker in range(len(plans))))


def simulate_cluster(
    spec: ClusterSpec,
    plans: Sequence[StepPlan],
    num_steps: int,
    seed: int = 0,
    *,
    warm_up: int = 0,
) -> list[WorkerRecord]:
    """Simulate every worker.

    Args:
        spec: the cluster.
        plans: step plan of each worker.
        num_steps: steps of the fastest worker; the run continues until every worker has done
            min(10, num_steps).
        seed: random seed of the jitter.
        warm_up: steps of every worker before the recorded ones.

    Returns:
        One record per worker; synchronous workers that are alike may share that of the first.

    Raises:
        ConfigError: the number of plans differs from the number of workers, a message is for a
        server that does not exist, or there are no steps.
    """
    check_whole("num_steps", num_steps, 1)
    check_whole("warm_up", warm_up, 0)
    _check_plans(spec, plans)
    random = np.random.default_rng(seed)
    if num_steps >= _STEPS_AT_ONCE and not warm_up and _are_apart(spec, plans):
        slowness = np.exp(random.normal(0.0, spec.jitter, (num_steps, len(plans))))
        return simulate_synchronous(spec, plans, slowness, _MOST_AT_ONCE)
    cluster = _Cluster(spec, plans, num_steps, warm_up, random)
    cluster.start()
    cluster.queue.run()
    return cluster.records()


def _are_apart(spec: ClusterSpec, plans: Sequence[StepPlan]) -> bool:
    """Whether nothing of a step is left when the next one begins: no message, and no worker."""
    needed = all(plan.segments[-1].needs == len(plan.pulls) for plan in plans if plan.segments)
    return spec.synchronous and not spec.starts_s and needed


def _check_plans(spec: ClusterSpec, plans: Sequence[StepPlan]) -> None:
    if len(plans) != len(spec.worker_machine):
        raise ConfigError(
            f"{len(plans)} step plans for {len(spec.worker_machine)} workers; give one for each"
        )
    last = len(spec.server_machine) - 1
    for plan in {id(plan): plan for plan in plans}.values():
        sends = (message for segment in plan.segments for message in segment.sends)
        for message in (*plan.pulls, *sends):
            check_whole("server of a message", message.server, 0, last)
            check_number("bytes of a message", message.nbytes, least=0)


class _Cluster:
    """Links, servers and workers, and the dependencies between them."""

    def __init__(
        self,
        spec: ClusterSpec,
        plans: Sequence[StepPlan],
        num_steps: int,
        warm_up: int,
        random: np.random.Generator,
    ) -> None:
        self.spec, self.num_steps, self.random = spec, num_steps, random
        self.warm_up, self.is_warm = warm_up, not warm_up
        self.queue = EventQueue()
        places, num_workers = (*spec.worker_machine, *spec.server_machine), len(plans)
        wiring = spec.wiring()
        # Requests of asynchronous workers are served first come, first served, gradients in
        # parallel with parameters. Requests of synchronous workers arrive together and share the
        # links; so do messages on a machine's link that servers and workers both use.
        beside = len(set(places)) > 1 and set(spec.worker_machine) & set(spec.server_machine)
        in_turn = not spec.synchronous and not beside
        most = 2 * num_workers * len(spec.server_machine) if in_turn else _MOST_AT_ONCE
        ports = [number // 2 for number in range(len(wiring.links))]  # both directions
        self.network = SharedNetwork(self.queue, wiring.links, 2 * num_workers, most, ports)
        num_groups = 2 if in_turn else 2 * num_workers
        self.groups = [self.network.group() for _ in range(num_groups)]

        roles = range(num_workers, len(places))
        self.servers = [_Server(self) for _ in roles]
        self.workers = [
            _Worker(
                self,
                plan,
                copy_s_per_byte=spec.copy_s_per_byte[w] if spec.copy_s_per_byte else 0.0,
                up=self._streams([wiring.path(w, s) for s in roles], 2 * w),
                down=self._streams([wiring.path(s, w) for s in roles], 2 * w + 1),
            )
            for w, plan in enumerate(plans)
        ]
        self.at_barrier = 0

    def _streams(self, crossed: Iterable[tuple[int, ...]], meter: int) -> list[int]:
        """Streams of one worker in one direction; its messages keep their order."""
        group = self.groups[meter % len(self.groups)]
        return [self.network.stream(links, (meter,), group, meter // 2) for links in crossed]

    def start(self) -> None:
        starts_s = self.spec.starts_s or (0.0,) * len(self.workers)
        for worker, start_s in zip(self.workers, starts_s, strict=True):
            if start_s > 0:
                self.queue.at(start_s, worker.begin_step)
            else:
                worker.begin_step()

    def step_done(self, worker: _Worker) -> None:
        """Handle a worker's last gradient: start its next step, or all workers' if synchronous."""
        if not self.spec.synchronous:
            self.next_step([worker])
            return
        self.at_barrier += 1
        if self.at_barrier == len(self.workers):
            self.at_barrier = 0
            self.next_step(self.workers)

    def next_step(self, workers: Sequence[_Worker]) -> None:
        """End a step of these workers, and start another unless the run is over."""
        for worker in workers:
            worker.record.step_ends_s.append(self.queue.now_s)
        if not self.is_warm and min(self.num_done) >= self.warm_up:
            self.is_warm = True
            for worker in self.workers:  # each keeps its last end, which its next step begins at
                del worker.record.step_ends_s[:-1]
        if not self.is_over:
            for worker in workers:
                worker.begin_step()

    @property
    def num_done(self) -> list[int]:
        """Steps done by each worker; warm-up steps during the warm-up."""
        return [len(worker.record.step_ends_s) for worker in self.workers]

    @property
    def is_over(self) -> bool:
        """Whether no worker starts another step."""
        done = self.num_done
        least = min(_LEAST_STEPS, self.num_steps)
        return self.is_warm and max(done) >= self.num_steps and min(done) >= least

    def records(self) -> list[WorkerRecord]:
        """Record of each worker w; its meters are 2 w (out) and 2 w + 1 (in).

        Steps after the first worker has finished are dropped: the remaining workers then have more
        of the servers' capacity than in a long training.
        """
        all_train_s = min(worker.record.step_ends_s[-1] for worker in self.workers)
        return [
            WorkerRecord(
                computing=worker.record.computing,
                step_ends_s=[end for end in worker.record.step_ends_s if end <= all_train_s],
                tx=self.network.rates[2 * number],
                rx=self.network.rates[2 * number + 1],
            )
            for number, worker in enumerate(self.workers)
        ]


class _Server:
    """A server, which processes gradients one after another."""

    def __init__(self, cluster: _Cluster) -> None:
        self.cluster = cluster
        self.free_s = 0.0

    def take(self, nbytes: float, done: Callable[[], None]) -> None:
        """Apply or accumulate a received gradient."""
        start_s = max(self.free_s, self.cluster.queue.now_s)
        self.free_s = start_s + nbytes * self.cluster.spec.apply_s_per_byte
        self.cluster.queue.at(self.free_s, done)


class _Worker:
    """State of one worker within its step."""

    def __init__(
        self,
        cluster: _Cluster,
        plan: StepPlan,
        *,
        copy_s_per_byte: float,
        up: list[int],
        down: list[int],
    ) -> None:
        self.cluster, self.plan, self.up, self.down = cluster, plan, up, down
        self.copy_s_per_byte = copy_s_per_byte
        self.record = WorkerRecord()
        self.missing: list[bool] = []  # parameter messages in flight
        self.arrived = 0  # messages received, together with all before them
        self.next_segment = 0
        self.computing = False
        self.unsent = 0  # gradients that no server has processed yet
        self.slowness = 1.0

    def begin_step(self) -> None:
        spec, queue = self.cluster.spec, self.cluster.queue
        self.arrived = self.next_segment = self.unsent = 0
        self.slowness = float(np.exp(self.cluster.random.normal(0.0, spec.jitter)))
        self.missing = [True] * len(self.plan.pulls)
        for number, message in enumerate(self.plan.pulls):
            usable_s = spec.message_s + message.nbytes * self.copy_s_per_byte

            def come(number: int = number, usable_s: float = usable_s) -> None:
                queue.at(queue.now_s + usable_s, lambda: self._pulled(number))

            self.cluster.network.send(self.down[message.server], message.nbytes, come)
        self._advance()

    def _pulled(self, number: int) -> None:
        self.missing[number] = False
        while self.arrived < len(self.missing) and not self.missing[self.arrived]:
            self.arrived += 1
        self._advance()

    def _advance(self) -> None:
        """Start the next segment, if the device is free and its parameters have arrived."""
        if self.computing or self.next_segment == len(self.plan.segments):
            return
        segment = self.plan.segments[self.next_segment]
        if self.arrived >= segment.needs:
            self.computing = True
            start_s = self.cluster.queue.now_s
            end_s = start_s + segment.duration_s * self.slowness
            self.cluster.queue.at(end_s, lambda: self._computed(segment, start_s))

    def _computed(self, segment: Segment, start_s: float) -> None:
        end_s = self.cluster.queue.now_s
        if segment.duration_s > 0:
            self.record.computing.append(
                Computing(
                    start_s,
                    end_s,
                    segment.busy_s / segment.duration_s,
                    segment.memory_s / segment.duration_s,
                    segment.parts,
                )
            )
        self.computing = False
        self.next_segment += 1
        for message in segment.sends:
            self._push(message)
        self._advance()
        self._check_end()

    def _push(self, message: Message) -> None:
        queue, spec = self.cluster.queue, self.cluster.spec
        taker = self.cluster.servers[message.server]
        self.unsent += 1

        def worked_off() -> None:
            self.unsent -= 1
            self._check_end()

        def come() -> None:
            queue.at(queue.now_s + spec.message_s, lambda: taker.take(message.nbytes, worked_off))

        def send() -> None:
            self.cluster.network.send(self.up[message.server], message.nbytes, come)

        if self.copy_s_per_byte:
            queue.at(queue.now_s + message.nbytes * self.copy_s_per_byte, send)
        else:
            send()

    def _check_end(self) -> None:
        if not self.unsent and self.next_segment == len(self.plan.segments):
            self.next_segment += 1  # so that it ends once
            self.cluster.step_done(self)
