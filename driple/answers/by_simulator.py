"""The simulator's answer: step time, the error on runs like the job, and a slower host.

ReadyJob, Place -> Simulation, StatedError, SlowHost -> MethodAnswer

`ask_simulator` has the traces and targets too; `ask_step` leaves them out, which is many times as
fast and gives the same step time to the last digit.
"""

from __future__ import annotations

from dataclasses import replace

from driple.analytic.spread import ServerSpread
from driple.answers.error_statement import StatedError
from driple.answers.method_answer import MethodAnswer, simulated_ends
from driple.answers.options import USUAL, MethodOptions
from driple.answers.ready_job import ReadyJob
from driple.answers.slow_hosts import SlowHost, host_is_told, slow_host
from driple.answers.stated_error import stated_error
from driple.answers.tcp_networks import steps_by_tcp, taken_as_rdma
from driple.answers.timelines import timelines
from driple.errors import ConfigError
from driple.estimate import LEVEL, estimate
from driple.remarks import Remark, remark
from driple.simulate.place import Place
from driple.simulate.run import NUM_STEPS, Simulation, simulate, simulated_step_s

__all__ = ["ask_simulator", "ask_step", "error_of"]


def error_of(ready: ReadyJob, place: Place) -> StatedError:
    """The simulator's error on runs like a job; none of a graph with unknown sizes.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
    """
    if ready.job.unknown is not None:
        return StatedError(runs=ready.job.unknown)
    if place.setting.on_cpu:
        return stated_error(place.setting, ready.job.graph, topology=place.topology)
    return stated_error(
        place.setting,
        ready.kind,
        topology=place.topology,
        offloads=bool(ready.job.offload),
    )


def ask_simulator(ready: ReadyJob, place: Place, options: MethodOptions = USUAL) -> MethodAnswer:
    """Simulate a job, with the simulator's error on such jobs.

    The interval holds the step on a slower host too, where that differs and the host is not known,
    and the steps over a network by TCP of which it is not known what it reaches.

    Args:
        ready: the job.
        place: machines and their calibration.
        options: steps, seed and placement; microseconds of the host where the user knows them.

    Raises:
        ConfigError: the user states his host twice.
        GraphError: a graph that cannot be simulated.
    """
    there, assumed = _with_host(ready, place, options)
    simulation = simulate(
        ready.prepared,
        there.setting,
        there.calibration,
        num_steps=options.num_steps or NUM_STEPS,
        seed=options.seed,
        placement=options.placement,
        topology=there.topology,
    )
    count = place.setting.num_servers
    if count > 1:
        assumed += (*ServerSpread.of(ready.prepared, [count], options.placement).remarks(),)
    return _answer(
        ready,
        there,
        simulation.iteration_time_s,
        simulation=simulation,
        assumptions=(*simulation.assumptions, *taken_as_rdma(there), *assumed),
        host_is_known=options.host_us_per_op is not None,
    )


def ask_step(ready: ReadyJob, place: Place) -> MethodAnswer:
    """The same without traces and targets, by the usual options.

    Raises:
        GraphError: a graph that cannot be simulated, or whose steps take no time.
    """
    step_s = simulated_step_s(
        ready.prepared, place.setting, place.calibration, topology=place.topology
    )
    return _answer(ready, place, step_s)


def _answer(
    ready: ReadyJob,
    place: Place,
    step_s: float,
    *,
    simulation: Simulation | None = None,
    assumptions: tuple[Remark, ...] = (),
    host_is_known: bool = False,
) -> MethodAnswer:
    stated = error_of(ready, place)
    host_is_known |= all(host_is_told(device) for device in place.topology.kinds)
    slow: SlowHost | None = None
    if not host_is_known:
        slow = slow_host(ready.prepared, place, step_s=step_s)
    lines = timelines(ready.prepared, place, step_s, host_is_known=host_is_known)
    by_network = steps_by_tcp(ready.prepared, place)
    return MethodAnswer(
        setting=place.setting,
        step_time=estimate(
            step_s,
            "simulator",
            ends=simulated_ends(step_s, stated, slow, by_network, lines),
            level=LEVEL,
        ),
        p90=stated.p90,
        stated=stated,
        slow_host=slow,
        by_network=by_network,
        assumptions=assumptions,
        simulation=simulation,
    )


def _with_host(
    ready: ReadyJob, place: Place, options: MethodOptions
) -> tuple[Place, tuple[Remark, ...]]:
    """The place with the user's own host, and what that assumes."""
    host_us = options.host_us_per_op
    if host_us is None:
        return place, ()
    for device in place.topology.kinds:
        if host_is_told(device):
            raise ConfigError(
                f"--set host_us_per_op and tuned_host of {device.origin} both say how fast the "
                "host is; give one of them"
            )
    calibration = place.calibration.with_host(host_us / 1e6, ready.prepared.runtime)
    assumed = (remark("host_given", host_us_per_op=host_us),)
    return replace(place, calibration=calibration), assumed
