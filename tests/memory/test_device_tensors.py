"""Tensors of a device under each scheme: closed forms and laws, on models that nobody here made."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

pytest.importorskip("torch")

from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import TensorRole
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.memory.device_tensors import COMMUNICATION, DeviceTensors, device_tensors
from driple.memory.events import bytes_by_kind, played_steps
from driple.memory.step_memory import BatchedMemory, StepMemory
from driple.schemes.registry import scheme_named
from driple.schemes.scheme import Sharding

SHARDED = ("zero1", "zero2", "fsdp", "hsdp")


@cache
def _graph(batch: int = 4, **options: object) -> OpGraph:
    """A small vision transformer of torchvision, on the meta device."""
    import torch
    from torch import nn

    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    from torchvision.models.vision_transformer import VisionTransformer

    with torch.device("meta"):
        model = VisionTransformer(
            image_size=64, patch_size=16, num_layers=4, num_heads=4, hidden_dim=64, mlp_dim=256
        )
        images = torch.empty(batch, 3, 64, 64)
        labels = torch.empty(batch, dtype=torch.int64)
    chosen = StepOptions(**{"optimizer": "adamw", **options})  # type: ignore[arg-type]
    return traced_step(
        model, images, lambda made: nn.functional.cross_entropy(made, labels), chosen
    )


@cache
def _step(batch: int = 4, **options: object) -> StepMemory:
    return StepMemory.of(_graph(batch, **options))


def _tensors(
    step: StepMemory, scheme: str, shards: int, replicas: int, *, masters: bool = False
) -> DeviceTensors:
    sharding = scheme_named(scheme).sharding
    assert sharding is not None
    return device_tensors(step, sharding, shards, replicas, masters=masters)


def _kept(tensors: DeviceTensors) -> tuple[int, int, int]:
    """Parameters (with buffers), gradients and states that outlive a step."""
    return (
        tensors.kept_bytes(TensorRole.PARAMETER),
        tensors.kept_bytes(TensorRole.GRADIENT),
        int(tensors.states.sum()),
    )


def _peak(tensors: DeviceTensors) -> int:
    return int(bytes_by_kind(tensors, rounding=1).sum(axis=1).max())


def test_parameters_gradients_and_states_are_exact() -> None:
    """One device holds 4 bytes of each parameter and its gradient, and 8 of AdamW's states."""
    step = _step()
    count = int(step.weights.elements.sum())
    tensors = _tensors(step, "ddp", 1, 1)
    parameters, gradients, states = _kept(tensors)
    assert int(step.weights.nbytes.sum()) == 4 * count
    assert parameters == 4 * count + 4  # and the factor of a gradient scaler
    assert gradients == 4 * count
    assert states - 8 * count == 0


def test_ddp_adds_buckets_of_all_gradients() -> None:
    """The reducer's buckets stay, and hold as many bytes as the gradients."""
    step = _step()
    tensors = _tensors(step, "ddp", 4, 4)
    assert tensors.kept_bytes(COMMUNICATION) == step.weights.trained_bytes
    assert _kept(tensors) == _kept(_tensors(step, "ddp", 1, 1))


@pytest.mark.parametrize("shards", [2, 4, 7, 64])
def test_shards_of_fsdp_add_up_to_the_whole(shards: int) -> None:
    """All devices together hold every byte once, and less than a byte a block more."""
    step = _step()
    whole = _kept(_tensors(step, "ddp", 1, 1))
    blocks = len(step.weights.forward_at)
    for kept, all_of_it in zip(_kept(_tensors(step, "fsdp", shards, shards)), whole,
                               strict=True):  # fmt: skip
        padding = shards * max(blocks, 2 * len(step.weights.nbytes))
        assert all_of_it <= shards * kept <= all_of_it + padding


def test_zero_keeps_what_its_stage_says() -> None:
    """Rajbhandari et al., table 1: stage 1 shares states, stage 2 gradients too, 3 all."""
    step, n = _step(), 8
    parameters, gradients, states = _kept(_tensors(step, "ddp", 1, 1))
    near = pytest.approx
    assert _kept(_tensors(step, "zero1", n, n)) == near(
        (parameters, gradients, states / n), rel=0.01
    )
    assert _kept(_tensors(step, "zero2", n, n)) == near(
        (parameters, gradients / n, states / n), rel=0.01
    )
    assert _kept(_tensors(step, "fsdp", n, n)) == near(
        (parameters / n, gradients / n, states / n), rel=0.01
    )


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("parameters", [False, True])
def test_each_part_is_sharded_by_itself(parameters: bool, gradients: bool, states: bool) -> None:
    """Whatever a scheme says that it shares out is an eighth, and all else is whole."""
    step, n = _step(), 8
    sharding = Sharding(
        shards_parameters=parameters, shards_gradients=gradients, shards_states=states
    )
    shares = [n if is_sharded else 1 for is_sharded in (parameters, gradients, states)]
    whole = _kept(_tensors(step, "ddp", 1, 1))
    wanted = [nbytes / share for nbytes, share in zip(whole, shares, strict=True)]
    assert _kept(device_tensors(step, sharding, n, n)) == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("scheme", SHARDED)
def test_more_shards_never_need_more(scheme: str) -> None:
    """The peak falls, or stays, as more devices share."""
    peaks = [_peak(_tensors(_step(), scheme, n, 64)) for n in (2, 4, 8, 16, 64)]
    assert peaks == sorted(peaks, reverse=True)


@pytest.mark.parametrize("scheme", ["ddp", *SHARDED])
def test_half_the_batch_never_needs_more(scheme: str) -> None:
    """With half of the samples, no scheme needs more."""
    few, many = (_peak(_tensors(_step(batch), scheme, 4, 4)) for batch in (4, 8))
    assert few <= many


@pytest.mark.parametrize("scheme", ["ddp", *SHARDED])
def test_checkpointing_never_needs_more(scheme: str) -> None:
    """Blocks that are computed again need no more memory, at a batch where activations count."""
    plain, again = (
        _peak(_tensors(_step(64, activation_checkpointing=mode), scheme, 4, 4))
        for mode in ("none", "full")
    )
    assert again < plain


@pytest.mark.parametrize("scheme", ["ddp", *SHARDED])
def test_reserved_is_no_less_than_allocated(scheme: str) -> None:
    """The allocator holds what it hands out, and that is what lives at the peak."""
    tensors = _tensors(_step(), scheme, 4, 4)
    peak = played_steps(tensors)
    assert _peak(tensors) <= peak.allocated_bytes <= peak.reserved_bytes


def test_fsdp_frees_blocks_that_it_does_not_use() -> None:
    """In the forward pass no more is gathered than the root and three blocks; all comes once."""
    step = _step()
    tensors = _tensors(step, "fsdp", 64, 64)
    gathered = bytes_by_kind(tensors, rounding=1)[:, COMMUNICATION]
    sizes = np.bincount(step.weights.block_of, weights=step.weights.nbytes)
    turn = int(step.weights.backward_at[step.weights.backward_at >= 0].min())
    assert gathered[: turn // 2].max() <= np.sort(sizes)[::-1][:4].sum()
    assert gathered[: turn // 2].max() >= sizes.max()
    # At the end of the backward pass the root's gradients are flattened beside its parameters.
    assert gathered.max() <= 2 * np.sort(sizes)[::-1][:2].sum()
    assert gathered[-1] == 0


def test_masters_add_a_copy_in_single_precision() -> None:
    """Of a model in half precision, masters take 4 bytes a parameter, and states twice as much."""
    step = _step(precision="bf16")
    count = int(step.weights.elements.sum())
    plain = _tensors(step, "ddp", 1, 1)
    copied = _tensors(step, "ddp", 1, 1, masters=True)
    assert int(plain.states.sum()) == 4 * count
    assert int(copied.states.sum()) == 12 * count
    shards = _tensors(step, "fsdp", 2, 2, masters=True)
    assert _kept(shards) == pytest.approx((2 * count, 2 * count, 4 * count), rel=0.01)


def test_servers_keep_the_states() -> None:
    """With parameter servers, a worker has parameters and gradients alone."""
    tensors = _tensors(_step(), "ps", 1, 4)
    assert _kept(tensors)[2] == 0
    assert tensors.kept_bytes(COMMUNICATION) == 0


def test_batches_on_a_line_are_those_that_were_traced() -> None:
    """Between two batch sizes, each tensor is as large as a trace at that size says."""
    line = BatchedMemory.between((4, StepMemory.of(_graph(4))), (8, StepMemory.of(_graph(8))))
    for batch in (4, 6, 8, 32):
        traced = _step(batch)
        assert np.array_equal(line.at(batch).nbytes, traced.nbytes)


def test_another_job_is_no_line() -> None:
    """Two different steps, or a batch size twice, are refused."""
    other = _graph(8, activation_checkpointing="full")
    with pytest.raises(ConfigError, match="not the same job"):
        BatchedMemory.between((4, StepMemory.of(_graph(4))), (8, StepMemory.of(other)))
    with pytest.raises(ConfigError, match="not the same job"):
        BatchedMemory.between((4, StepMemory.of(_graph(4))), (4, StepMemory.of(_graph(4))))


def test_a_lump_of_states_is_spread_exactly() -> None:
    """States of each parameter add up to the optimizer's own count."""
    step = _step()
    odd = replace(step, update=replace(step.update, state_bytes=1_000_003))
    assert int(_tensors(odd, "ddp", 1, 1).states.sum()) == 1_000_003


def test_wide_shards_stand_for_the_copies_of_an_update() -> None:
    """FSDP with an update in fp32: shards of 4 bytes, and no copy beside them."""
    step = _step(precision="bf16-mixed")
    count = int(step.weights.elements.sum())
    sharding = scheme_named("fsdp").sharding
    assert sharding is not None
    copied = device_tensors(step, sharding, 2, 2)
    wide = device_tensors(step, replace(sharding, has_wide_shards=True), 2, 2)
    assert _kept(copied) == pytest.approx((count, count, 6 * count), rel=0.01)
    assert _kept(wide) == pytest.approx((2 * count, 2 * count, 4 * count), rel=0.01)
    assert int(copied.temporary.sum()) > int(wide.temporary.sum())
    alone = device_tensors(step, replace(sharding, has_wide_shards=True), 1, 1)
    assert _kept(alone) == pytest.approx((2 * count, 2 * count, 12 * count), rel=0.01)


def test_blocks_that_are_used_again_soon_stay_gathered() -> None:
    """At the turn from forward to backward pass, as many blocks as fit the distance, no more."""
    step = _step()
    sharding = scheme_named("fsdp").sharding
    assert sharding is not None
    repeated = step.weights.backward_at >= 0
    turn = int(step.weights.backward_at[repeated].min()) - 1
    sizes = np.bincount(step.weights.block_of, weights=step.weights.elements)[repeated]

    def gathered(reuse: int) -> int:
        tensors = device_tensors(step, replace(sharding, reuse_elements=reuse), 64, 64)
        return int(bytes_by_kind(tensors, rounding=1)[turn, COMMUNICATION])

    whole = int(sizes.sum())
    few, some, most = gathered(0), gathered(whole // 2), gathered(2 * whole)
    assert few < some < most
    assert some - few <= 4 * (whole // 2)
    assert most - few <= 4 * whole
