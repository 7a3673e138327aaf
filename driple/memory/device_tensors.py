"""The tensors of a step on one device, of what a scheme says that it holds.

    StepMemory, Sharding, number of shards -> DeviceTensors

Parameters are whole, or shards: then a block's parameters are gathered before its forward and its
backward pass, one block ahead, and freed after it. Gradients are whole, with or without buckets
that stay; or each lives until its bucket, or its block, is reduced, then a shard of them. States
are whole, a shard, or elsewhere. Each scheme's file in `driple.schemes` says which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.graph.step_facts import OptimizerUpdate, TensorRole
from driple.memory.step_memory import StepMemory
from driple.schemes.scheme import Sharding
from driple.step.exchange import BUCKETS

__all__ = ["COMMUNICATION", "DeviceTensors", "device_tensors", "host_bytes"]

IntArray = npt.NDArray[np.int64]

COMMUNICATION = len(TensorRole)  # kind of buffers that a scheme adds
_WHOLE = Sharding()
_HALF_BYTES, _FULL_BYTES = 2, 4


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceTensors:
    """All tensors of a step on one device.

    Attributes:
        num_nodes: ops of a forward and backward pass.
        nbytes: shape [t].
        made_by: shape [t], node that makes it; -1 if it exists before the step.
        freed_after: shape [t], last node that uses it; `num_nodes` if it outlives the step.
        kinds: shape [t], a `TensorRole`, or `COMMUNICATION`.
        states: shape [s], bytes of each of the optimizer's states, which the first update makes.
        temporary: shape [u], bytes of what an update makes and frees.
    """

    num_nodes: int
    nbytes: IntArray
    made_by: IntArray
    freed_after: IntArray
    kinds: npt.NDArray[np.int8]
    states: IntArray
    temporary: IntArray

    def kept_bytes(self, kind: int) -> int:
        """Bytes of a kind that outlive the step."""
        return int(self.nbytes[(self.kinds == kind) & (self.freed_after >= self.num_nodes)].sum())


class _Rows:
    """Tensors that are collected."""

    def __init__(self) -> None:
        self._parts: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []

    def add(
        self,
        nbytes: IntArray,
        made_by: IntArray | int,
        freed_after: IntArray | int,
        kinds: npt.NDArray[np.int8] | int,
    ) -> None:
        """Add tensors; a number stands for all of them."""
        count = len(nbytes)
        columns = [
            np.broadcast_to(np.asarray(one, dtype=np.int64), (count,))
            for one in (nbytes, made_by, freed_after, kinds)
        ]
        self._parts.append((columns[0], columns[1], columns[2], columns[3]))

    def tensors(self, step: StepMemory, states: IntArray, temporary: IntArray) -> DeviceTensors:
        """All of them together."""
        nbytes, made_by, freed_after, kinds = (
            np.concatenate([part[i] for part in self._parts]) for i in range(4)
        )
        return DeviceTensors(
            num_nodes=step.num_nodes,
            nbytes=nbytes,
            made_by=made_by,
            freed_after=freed_after,
            kinds=kinds.astype(np.int8),
            states=states,
            temporary=temporary,
        )


def device_tensors(
    step: StepMemory, sharding: Sharding, shards: int, replicas: int = 1, *, masters: bool = False
) -> DeviceTensors:
    """The tensors of a step on one device.

    Args:
        step: of a device that holds the whole model.
        sharding: what the device holds of it under its scheme.
        shards: devices that share out what the scheme shards.
        replicas: devices in all.
        masters: whether what is trained in half precision is updated in single precision: shards of
            parameters, their gradients and states are, else there is a copy with states.
    """
    if not sharding.updates:
        return _tensors(replace(step, update=OptimizerUpdate()), sharding, 1)
    if masters:
        step = _with_masters(step, sharded=sharding.shards_parameters and replicas > 1)
    if sharding.has_wide_shards and sharding.shards_parameters and replicas > 1:
        step = _with_wide_shards(step)
    if sharding.has_wide_gradients:
        step = _with_wide_gradients(step)
    if replicas < 2 and not sharding.states_on_host and not sharding.parameters_on_host:
        alone = replace(
            _WHOLE,
            bucket_elements=sharding.bucket_elements,
            updates_in_backward=sharding.updates_in_backward,
        )
        return _tensors(step, alone, 1)
    shards_weights = sharding.shards_parameters or sharding.shards_gradients
    if shards_weights and not len(step.weights.nbytes):
        return _tensors(step, _WHOLE, 1)  # parameters that no table shows cannot be sharded
    return _tensors(step, sharding, shards)


def _tensors(step: StepMemory, sharding: Sharding, shards: int) -> DeviceTensors:
    """Parameters, buckets that stay, tensors of the step, gradients that are shared out, states."""
    rows = _Rows()
    kept = np.ones(len(step.roles), dtype=np.bool_)
    if sharding.shards_parameters:
        _add_shards(rows, step, shards, sharding)
        kept &= ~step.is_cast  # autocast has nothing to cast: products read what was gathered
    else:
        rows.add(step.weights.nbytes, -1, step.num_nodes, TensorRole.PARAMETER)
    if sharding.keeps_buckets:
        sizes = [int(step.weights.nbytes[bucket].sum()) for bucket in _buckets(step)]
        rows.add(np.array(sizes, dtype=np.int64), -1, step.num_nodes, COMMUNICATION)
    at_once = sharding.updates_in_backward and bool(len(step.weights.nbytes)) and step.passes == 1
    if sharding.shards_gradients or at_once:
        kept &= step.roles != TensorRole.GRADIENT
    rows.add(step.nbytes[kept], step.made_by[kept], step.freed_after[kept], step.roles[kept])
    if sharding.bucket_elements is not None:
        rows.add(_buffer(step, sharding.bucket_elements), -1, step.num_nodes, COMMUNICATION)
    if at_once and not sharding.shards_gradients:
        trained, done = step.weights.nbytes[step.weights.is_trained], step.weights.gradient_at
        done = done[step.weights.is_trained]
        rows.add(trained, done, done, TensorRole.GRADIENT)
    if sharding.shards_gradients:
        if sharding.shards_parameters:
            _reduce_blocks(rows, step, shards, on_host=sharding.states_on_host or at_once)
        else:
            _reduce_buckets(rows, step, shards, sharding)
    states, temporary = _states(step, shards if sharding.shards_states else 1)
    if at_once and len(temporary):
        temporary = temporary.max(keepdims=True)  # of one parameter at a time
    if sharding.states_on_host:
        nothing = np.zeros(0, dtype=np.int64)
        states, temporary = nothing, nothing
    return rows.tensors(step, states, temporary)


def host_bytes(step: StepMemory, sharding: Sharding, shards: int) -> int:
    """Bytes that one device keeps on the host: states, shards of gradients and of parameters.

    Args:
        step: of a device that holds the whole model.
        sharding: what the device holds under its scheme, and what is on the host.
        shards: devices that share out what the scheme shards.
    """
    weights, on_host = step.weights, 0
    if sharding.states_on_host:
        states, _ = _states(step, shards if sharding.shards_states else 1)
        gradients = int(weights.elements[weights.is_trained].sum()) * _FULL_BYTES
        on_host += int(states.sum())
        on_host += -(-gradients // shards) if sharding.shards_gradients else 0
    if sharding.parameters_on_host:
        on_host += -(-int(weights.nbytes.sum()) // shards)
    return on_host


def _buffer(step: StepMemory, elements: int) -> IntArray:
    """Bytes of a buffer of so many gradients, in their type."""
    weights = step.weights
    trained = int(weights.elements[weights.is_trained].sum())
    each = weights.trained_bytes / trained if trained else 0.0
    return np.array([round(elements * each)], dtype=np.int64)


def _with_masters(step: StepMemory, *, sharded: bool) -> StepMemory:
    """The step with parameters in half precision that are updated in single precision."""
    weights, update = step.weights, step.update
    wide = weights.is_trained & (weights.nbytes == _HALF_BYTES * weights.elements)
    sizes = np.where(wide, _FULL_BYTES * weights.elements, weights.nbytes)
    grown = float(sizes[weights.is_trained].sum()) / max(weights.trained_bytes, 1)
    states, temporary = round(update.state_bytes * grown), round(update.temporary_bytes * grown)
    if sharded:
        update = replace(update, state_bytes=states, temporary_bytes=temporary)
        masters = replace(weights, nbytes=sizes)
        return replace(step, weights=masters, update=update, computes_in_half=True)
    # Parameters and gradients in half precision; a copy of each in single precision.
    copies = int(sizes[wide].sum())
    update = replace(update, state_bytes=states + copies, temporary_bytes=temporary + copies)
    return replace(step, update=update)


def _with_wide_shards(step: StepMemory) -> StepMemory:
    """The step whose parameters in half precision are stored, and updated, in single precision.

    Its update has a copy of them and of their gradients, which the shards themselves are then.
    """
    weights, update = step.weights, step.update
    wide = weights.is_trained & (weights.nbytes == _HALF_BYTES * weights.elements)
    sizes = np.where(wide, _FULL_BYTES * weights.elements, weights.nbytes)
    copies = int(sizes[wide].sum())
    return replace(
        step,
        weights=replace(weights, nbytes=sizes),
        update=replace(
            update,
            state_bytes=max(update.state_bytes - copies, 0),
            temporary_bytes=max(update.temporary_bytes - copies, 0),
        ),
        computes_in_half=True,
    )


def _with_wide_gradients(step: StepMemory) -> StepMemory:
    """The step whose gradients in half precision are added up, and stay, in single precision.

    Its update has no copies of them. What a pass makes is added at once, or never made (fused).
    """
    weights, update = step.weights, step.update
    wide = weights.is_trained & (weights.nbytes == _HALF_BYTES * weights.elements)
    lasts = (step.roles == TensorRole.GRADIENT) & (step.freed_after >= step.num_nodes)
    sizes = np.where(wide, _FULL_BYTES * weights.elements, weights.nbytes)[weights.is_trained]
    count = len(sizes)
    copies = int((_FULL_BYTES * weights.elements[wide]).sum())
    return replace(
        step,
        nbytes=np.concatenate([step.nbytes[~lasts], sizes]),
        made_by=np.concatenate([step.made_by[~lasts], np.full(count, -1)]),
        freed_after=np.concatenate([step.freed_after[~lasts], np.full(count, step.num_nodes)]),
        roles=np.concatenate(
            [step.roles[~lasts], np.full(count, TensorRole.GRADIENT, dtype=np.int8)]
        ),
        is_cast=np.concatenate([step.is_cast[~lasts], np.zeros(count, dtype=np.bool_)]),
        update=replace(update, temporary_bytes=max(update.temporary_bytes - copies, 0)),
    )


def _shard(nbytes: IntArray, shards: int | IntArray) -> IntArray:
    """Bytes of a device's shard, rounded up."""
    return -(-nbytes // shards)


def _shards_of(step: StepMemory, shards: int) -> IntArray:
    """Devices that share out each parameter; shape [p]."""
    counts: IntArray = np.maximum(np.rint(shards * step.weights.sharers), 1).astype(np.int64)
    return counts


def _states(step: StepMemory, shards: int) -> tuple[IntArray, IntArray]:
    """Bytes of states and of an update's temporary tensors, parameter by parameter."""
    update, sizes = step.update, step.weights.nbytes[step.weights.is_trained]
    whole = int(sizes.sum())
    if not whole:
        return (
            np.array([update.state_bytes], dtype=np.int64),
            np.array([update.temporary_bytes], dtype=np.int64),
        )
    copies = max(1, round(update.state_bytes / whole)) if update.state_bytes else 0
    states = _shares(update.state_bytes, np.tile(sizes, copies))
    own = _shards_of(step, shards)[step.weights.is_trained]
    temporary = _shard(_shares(update.temporary_bytes, sizes), own)
    return _shard(states, np.tile(own, copies)), temporary


def _shares(amount: int, sizes: IntArray) -> IntArray:
    """An amount in parts in proportion to sizes; the parts add up to it."""
    if not len(sizes):
        return np.zeros(0, dtype=np.int64)
    ends = np.rint(amount * (np.cumsum(sizes.astype(np.float64)) / float(sizes.sum())))
    return np.diff(ends, prepend=0.0).astype(np.int64)


def _buckets(step: StepMemory, elements: int | None = None) -> list[IntArray]:
    """Trained parameters of each bucket, in order of readiness.

    Args:
        step: of a device that holds the whole model.
        elements: most gradients of a bucket; the bytes of DDP's reducer if None.
    """
    weights = step.weights
    trained = np.flatnonzero(weights.is_trained)
    order = trained[np.argsort(weights.gradient_at[trained], kind="stable")]
    buckets: list[IntArray] = []
    gathered: list[int] = []
    sizes = weights.nbytes if elements is None else weights.elements
    most = elements or BUCKETS.most_bytes
    amount, least = 0, elements or BUCKETS.first_bytes
    for i in order.tolist():
        gathered.append(i)
        amount += int(sizes[i])
        if amount >= least:
            buckets.append(np.array(gathered, dtype=np.int64))
            gathered, amount, least = [], 0, most
    if gathered:
        buckets.append(np.array(gathered, dtype=np.int64))
    return buckets


def _reduce_buckets(rows: _Rows, step: StepMemory, shards: int, sharding: Sharding) -> None:
    """Gradients until their bucket is reduced, then a shard of them.

    With a buffer of its own (DeepSpeed) a gradient is copied there at once, and the bucket is
    flattened when it is reduced.
    """
    weights = step.weights
    for bucket in _buckets(step, sharding.bucket_elements):
        ready = int(weights.gradient_at[bucket].max())
        sizes = weights.nbytes[bucket]
        ends = ready if sharding.bucket_elements is None else weights.gradient_at[bucket]
        rows.add(sizes, weights.gradient_at[bucket], ends, TensorRole.GRADIENT)
        whole = np.array([int(sizes.sum())], dtype=np.int64)
        rows.add(whole, ready, ready, COMMUNICATION)
        if sharding.states_on_host:
            continue
        made_by = ready if step.passes == 1 else -1
        own = _shard(sizes, _shards_of(step, shards)[bucket])
        rows.add(own.sum(keepdims=True), made_by, step.num_nodes, TensorRole.GRADIENT)


def _gathered_bytes(step: StepMemory) -> IntArray:
    """Bytes of each parameter as it is gathered: in half precision if products read that."""
    weights = step.weights
    if not step.computes_in_half:
        return weights.nbytes
    wide = weights.nbytes == _FULL_BYTES * weights.elements
    return np.where(wide, _HALF_BYTES * weights.elements, weights.nbytes)


def _add_shards(rows: _Rows, step: StepMemory, shards: int, sharding: Sharding) -> None:
    """Shards of each block's parameters; blocks are gathered while they are used."""
    weights, blocks = step.weights, len(step.weights.forward_at)
    if not sharding.parameters_on_host:
        own = _shard(weights.nbytes, _shards_of(step, shards))
        rows.add(_sums(own, weights.block_of, blocks), -1, step.num_nodes, TensorRole.PARAMETER)
    near = _used_again(step, sharding.reuse_elements)
    _add_gathered(rows, step, _sums(_gathered_bytes(step), weights.block_of, blocks), near)


def _reduce_blocks(rows: _Rows, step: StepMemory, shards: int, *, on_host: bool) -> None:
    """Gradients until their block is reduced, then a shard of them."""
    weights, blocks = step.weights, len(step.weights.forward_at)
    trained, gathered = weights.is_trained, _gathered_bytes(step)
    done = weights.complete_at[weights.block_of[trained]]
    rows.add(gathered[trained], weights.gradient_at[trained], done, TensorRole.GRADIENT)
    flat = _sums(gathered[trained], weights.block_of[trained], blocks)
    rows.add(flat, weights.complete_at, weights.complete_at, COMMUNICATION)
    if on_host:
        return
    own = _shard(weights.nbytes, _shards_of(step, shards))[trained]
    made_by = weights.complete_at if step.passes == 1 else -1
    rows.add(
        _sums(own, weights.block_of[trained], blocks), made_by, step.num_nodes, TensorRole.GRADIENT
    )


def _sums(values: IntArray, block_of: IntArray, blocks: int) -> IntArray:
    """Sums of each block."""
    sums: IntArray = np.bincount(
        block_of, weights=values.astype(np.float64), minlength=blocks
    ).astype(np.int64)
    return sums


def _used_again(step: StepMemory, within: int) -> npt.NDArray[np.bool_]:
    """Blocks that the backward pass uses before it has come through this many elements.

    Between the two uses of a block the blocks after it are used twice. Together those that stay
    have no more elements than that.
    """
    weights, blocks = step.weights, len(step.weights.forward_at)
    sizes = _sums(weights.elements, weights.block_of, blocks)
    near = np.zeros(blocks, dtype=np.bool_)
    later = 0
    for block in np.argsort(-weights.forward_at, kind="stable").tolist():
        if weights.backward_at[block] < 0:
            continue
        near[block] = max(2 * later, later + int(sizes[block])) <= within
        later += int(sizes[block])
    return near


def _add_gathered(
    rows: _Rows, step: StepMemory, nbytes: IntArray, near: npt.NDArray[np.bool_]
) -> None:
    """Gathered parameters of each block, from the start of the block before it to its own end.

    Blocks that are not gathered again for the backward pass, such as the root, stay, and so do
    those that are used again soon.
    """
    weights = step.weights
    stays = (weights.backward_at < 0) | near
    rows.add(nbytes[stays], weights.forward_at[stays], weights.complete_at[stays], COMMUNICATION)
    again = np.flatnonzero(~stays)
    forward = again[np.argsort(weights.forward_at[again], kind="stable")]
    starts = weights.forward_at[forward]
    ahead = np.concatenate([starts[:1], starts[:-1]])
    ends = np.maximum(weights.forward_end[forward], starts)
    rows.add(nbytes[forward], ahead, ends, COMMUNICATION)
    backward = again[np.argsort(weights.backward_at[again], kind="stable")]
    starts = weights.backward_at[backward]
    ahead = np.concatenate([starts[:1], starts[:-1]])
    rows.add(nbytes[backward], ahead, np.maximum(weights.complete_at[backward], starts),
             COMMUNICATION)  # fmt: skip
