"""The optimizer's update of a step, from the kinds of its ops.

    update_adam x 160, update_adam of rows x 2, 100 MB of parameters -> adam, 200 MB of states

For readers whose graphs show which updates there are; others state the update themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from driple.graph.cost.updates import UPDATES
from driple.graph.opgraph import RemoteOps, Traffic
from driple.graph.step_facts import OptimizerUpdate

__all__ = ["optimizer_of_kind", "update_of_kinds", "update_of_remote"]

# Variants of an update whose users call the optimizer by one name.
_WORDS = {"adagrad_epsilon": "adagrad", "ftrl_shrinkage": "ftrl"}
# Passes over the parameters of an update of unknown kind: read and write variable and one state,
# read the gradient.
_USUAL_PASSES = 5


def optimizer_of_kind(kind: str) -> str:
    """The optimizer that a kind of op is the update of, such as `adam`; empty if of none."""
    if kind not in UPDATES:
        return ""
    name = kind.removeprefix("sparse_").removeprefix("update_")
    return _WORDS.get(name, name)


def update_of_kinds(
    counts: Mapping[str, int], parameters_bytes: int, state_bytes: int = 0
) -> OptimizerUpdate:
    """The update of which the step has most ops.

    Args:
        counts: number of ops of each kind; kinds that update nothing are skipped.
        parameters_bytes: bytes of all trained parameters.
        state_bytes: bytes of the states that the graph shows; the optimizer keeps at least these.
    """
    kinds: Counter[str] = Counter()
    for kind, count in counts.items():
        if optimizer_of_kind(kind):
            kinds[kind.removeprefix("sparse_")] += count
    main = max(kinds, key=lambda kind: kinds[kind], default="")
    num_variables = UPDATES[main].num_variables if main else 1
    passes = 2 * num_variables + 1 if main else _USUAL_PASSES
    return OptimizerUpdate(
        optimizer=optimizer_of_kind(main),
        state_bytes=max((num_variables - 1) * parameters_bytes, state_bytes),
        moved_bytes=passes * parameters_bytes,
        num_kernels=sum(kinds.values()),
    )


def update_of_remote(
    remote: Sequence[RemoteOps], traffic: Traffic, state_bytes: int = 0
) -> OptimizerUpdate:
    """The update that parameter servers make of all that a worker receives.

    Args:
        remote: ops of the step that run elsewhere.
        traffic: what the worker receives: its parameters.
        state_bytes: bytes of the states that the graph shows; the optimizer keeps at least these.
    """
    parameters_bytes = sum(traffic.without_states().received_bytes.tolist())
    counts = {ops.kind: 0 for ops in remote}
    for ops in remote:
        counts[ops.kind] += ops.num_nodes
    return update_of_kinds(counts, parameters_bytes, state_bytes)
