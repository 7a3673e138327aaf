"""Degrees of parallelism that a plan tries where a user asks for any scheme.

Cluster, Splittable -> names of schemes: tp8-zero1, tp8-pp4-zero1, ep16-zero1, ...

Tensor groups stay within a machine, stages are machines or groups of them, experts are shared out
within a machine and over all; replicas share out states, as Megatron-LM's do by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from driple.cluster.cluster import Cluster
from driple.cluster.schemes import SPLIT, Degrees, SchemeChoice
from driple.step.splittable import Splittable
from driple.step.stages import divides_into

__all__ = ["degrees_to_try"]

_MOST_TENSOR, _MOST_STAGES = 8, 16
_STATES = "zero1"


def degrees_to_try(cluster: Cluster, model: Splittable) -> list[str]:
    """Names of schemes with degrees that fit a cluster and a model; at most eight.

    Args:
        cluster: machines that are alike.
        model: what devices can share out of it.
    """
    devices = [len(machine.devices) for machine in cluster.machines]
    if len(set(devices)) > 1 or len(cluster.kinds) > 1:
        return []
    total = sum(devices)
    named = {
        SchemeChoice(name=SPLIT, degrees=_with_states(one, total)).suffix: None
        for one in _fitting(devices[0], len(devices), model)
        if one.is_split
    }
    return list(named)


def _with_states(degrees: Degrees, total: int) -> Degrees:
    """Replicas, where there are several, share out states."""
    if total == degrees.tensor * degrees.pipeline:
        return degrees
    return Degrees(
        tensor=degrees.tensor,
        expert=degrees.expert,
        pipeline=degrees.pipeline,
        states=_STATES,
    )


def _fitting(per_machine: int, machines: int, model: Splittable) -> Iterator[Degrees]:
    """Degrees, those with fewest exchanges between machines first."""
    tensor = min(gcd(per_machine, model.heads), _MOST_TENSOR) if model.heads else 1
    stages = max(
        one
        for one in range(1, min(machines, _MOST_STAGES, max(model.layers, 1)) + 1)
        if machines % one == 0 and (one == 1 or divides_into(model.layers, one))
    )
    for degree in dict.fromkeys((tensor, gcd(tensor, 2))):
        yield Degrees(tensor=degree)
    for degree in dict.fromkeys((tensor, 1)):
        yield Degrees(tensor=degree, pipeline=stages)
    if model.experts:
        total = per_machine * machines
        for part in dict.fromkeys((per_machine, total)):
            yield Degrees(expert=gcd(part, model.experts))
        of_stage = total // stages
        yield Degrees(expert=gcd(of_stage, model.experts), pipeline=stages)
        yield Degrees(tensor=gcd(tensor, 2), expert=gcd(of_stage, model.experts), pipeline=stages)
