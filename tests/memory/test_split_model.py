"""Memory of shards and stages against the closed forms of Megatron-LM's papers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting
from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase, TensorRole
from driple.memory.device_tensors import device_tensors
from driple.memory.estimate import memory_of_graph, memory_of_places
from driple.memory.events import bytes_by_kind
from driple.memory.on_device import device_timeline
from driple.memory.place import MemoryPlace
from driple.memory.split_model import batched_device_steps, device_steps
from driple.memory.step_memory import StepMemory
from driple.render.remarks import sentence
from driple.schemes.scheme import Sharding

WIDTH, HEADS, WORDS, TOKENS, SAMPLES = 256, 8, 1024, 128, 2
RESIDUAL = SAMPLES * TOKENS * WIDTH  # elements, s b h of the paper
_STATISTICS = 0.25  # s b h: means of norms, sums of softmax, seeds, which the paper leaves out


@cache
def gpt2(
    layers: int = 4,
    *,
    passes: int = 1,
    samples: int = SAMPLES,
    checkpointing: str = "none",
    precision: str = "bf16",
) -> OpGraph:
    """GPT-2 of transformers with one kernel for GELU and flash attention, as Megatron-LM has it."""
    transformers = pytest.importorskip("transformers")
    import torch

    from driple.jobs.pytorch.modules import job_of_module
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    config = transformers.GPT2Config(
        n_layer=layers, n_embd=WIDTH, n_head=HEADS, vocab_size=WORDS, n_positions=TOKENS,
        bos_token_id=0, eos_token_id=0, activation_function="gelu", tie_word_embeddings=False,
        use_cache=False,
    )  # fmt: skip
    config._attn_implementation = "sdpa"
    tokens = torch.zeros(samples, TOKENS, dtype=torch.int64)
    return job_of_module(
        transformers.GPT2LMHeadModel(config),
        {"input_ids": tokens, "labels": tokens},
        grad_accumulation=passes,
        activation_checkpointing=checkpointing,
        optimizer="adamw",
        precision=precision,
    ).graph


def activations_of(step: StepMemory) -> int:
    """Bytes of all activations of a step, those of micro-batches that wait among them."""
    return int(step.nbytes[step.roles == TensorRole.ACTIVATION].sum())


def peak_of(step: StepMemory) -> int:
    return int(bytes_by_kind(device_tensors(step, Sharding(), 1)).sum(axis=1).max())


def activations_of_a_block(degree: int) -> float:
    """Bytes of one block, in s b h: what two more blocks add, halved."""
    more, fewer = (
        _alive_at_turn(gpt2(layers), degree)
        for layers in (4, 2)
    )  # fmt: skip
    return (more - fewer) / 2 / RESIDUAL


def _alive_at_turn(graph: OpGraph, degree: int) -> int:
    """Bytes of activations when the backward pass begins."""
    (step,) = device_steps(graph, Degrees(tensor=degree))
    turn = int(np.flatnonzero(graph.phases == Phase.BACKWARD)[0])
    alive = (step.made_by >= 0) & (step.made_by < turn) & (step.freed_after >= turn)
    return int(step.nbytes[alive & (step.roles == TensorRole.ACTIVATION)].sum())


@pytest.mark.parametrize("degree", [1, 2, 4, 8])
def test_activations_of_a_block_follow_the_closed_form(degree: int) -> None:
    """Bytes: 34 s b h / t, without the scores that flash attention never stores.

    Korthikanti et al. (arXiv 2205.05198), equation 4: with sequence parallelism.
    """
    assert activations_of_a_block(degree) == pytest.approx(34 / degree, abs=_STATISTICS)


@pytest.mark.parametrize("degree", [2, 4])
def test_shards_of_parameters_gradients_and_states(degree: int) -> None:
    """Matrices, tables of words and biases of columns are split; all else is whole."""
    graph = gpt2()
    (whole,), (part,) = device_steps(graph), device_steps(graph, Degrees(tensor=degree))
    sizes = dict(zip(graph.parameters.names, part.weights.nbytes.tolist(), strict=True))
    full = dict(zip(graph.parameters.names, whole.weights.nbytes.tolist(), strict=True))
    kept_whole = ("ln_", "wpe", "c_proj.bias")
    for name, nbytes in full.items():
        share = 1 if any(one in name for one in kept_whole) else degree
        assert sizes[name] * share == nbytes, name
    assert part.update.state_bytes == pytest.approx(2 * part.weights.trained_bytes, rel=1e-3)
    gradients = part.nbytes[
        (part.roles == TensorRole.GRADIENT) & (part.freed_after >= part.num_nodes)
    ]
    assert gradients.sum() == part.weights.trained_bytes


def test_casts_of_split_weights_are_shares() -> None:
    """Autocast casts the matrices that a device has."""
    (whole,), (part,) = (
        device_steps(gpt2(precision="amp-bf16"), Degrees(tensor=degree)) for degree in (1, 4)
    )
    matrices = int(whole.nbytes[whole.is_cast].sum())
    biases_and_norms = 4 * 16 * WIDTH
    assert matrices / 4 <= part.nbytes[part.is_cast].sum() <= matrices / 4 + biases_and_norms


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("passes", [2, 16])
def test_micro_batches_in_flight(stages: int, passes: int) -> None:
    """Stage i of p keeps the activations of min(p - i, m) micro-batches of its blocks.

    Narayanan et al. (arXiv 2104.04473), section 2.2.1.
    """
    steps = device_steps(gpt2(passes=passes), Degrees(pipeline=stages))
    alone = device_steps(gpt2(), Degrees(pipeline=stages))
    block = 34 * RESIDUAL
    for number, step in enumerate(steps[:-1]):  # the last has the head's as well
        waits = activations_of(step) - activations_of(alone[number])
        ahead = min(stages - number, passes) - 1
        blocks = 4 // stages
        # A block's input belongs to the stage that reads it.
        # The output of the last block is handed on. Before the first block, the dropout of the
        # words has an output and a mask of its own.
        words = 0 if number else (3 - 2) * RESIDUAL
        wanted = ahead * (blocks * block + words)
        assert waits == pytest.approx(wanted, abs=ahead * blocks * _STATISTICS * RESIDUAL)
    assert [peak_of(one) for one in steps[:-1]] == sorted(
        [peak_of(one) for one in steps[:-1]], reverse=True
    )


def test_stages_share_out_a_model() -> None:
    """Parameters, gradients and states of all stages are those of a device that has everything."""
    graph = gpt2(passes=4)
    (whole,) = device_steps(graph)
    stages = device_steps(graph, Degrees(pipeline=4))
    assert sum(one.weights.nbytes.sum() for one in stages) == whole.weights.nbytes.sum()
    assert sum(one.update.state_bytes for one in stages) == pytest.approx(
        whole.update.state_bytes, abs=4
    )
    for stage in stages:
        gradients = stage.nbytes[stage.roles == TensorRole.GRADIENT].sum()
        assert gradients >= stage.weights.trained_bytes


def test_one_micro_batch_at_a_time_keeps_what_one_device_keeps() -> None:
    """With one pass, the activations of all stages add up to those of one device, nearly."""
    graph = gpt2()
    stages = device_steps(graph, Degrees(pipeline=2))
    together = sum(activations_of(one) for one in stages)
    (whole,) = device_steps(graph)
    alone = activations_of(whole)
    assert alone <= together <= alone + 4 * 2 * RESIDUAL  # what is handed on is at both


def test_more_devices_never_need_more() -> None:
    """Of tensor groups; of pipelines with one micro-batch."""
    for kind in ("tp", "pp"):
        grouped = [
            memory_of_graph(gpt2(), Setting.parse(f"{count}xA100-80G@{kind}{count}")).allocated
            for count in (2, 4)
        ]
        alone = memory_of_graph(gpt2(), Setting.parse("1xA100-80G")).allocated
        assert alone is not None and all(one is not None for one in grouped)
        values = [alone.value, *(one.value for one in grouped if one is not None)]
        assert values == sorted(values, reverse=True)


def test_checkpointing_keeps_less_in_flight() -> None:
    """Full checkpointing leaves the input of each block for each micro-batch that waits."""

    def waits(checkpointing: str) -> int:
        many, single = (
            device_steps(gpt2(passes=passes, checkpointing=checkpointing), Degrees(pipeline=4))[0]
            for passes in (8, 1)
        )
        return activations_of(many) - activations_of(single)

    # The input of its one block, the dropout's mask before it.
    assert waits("full") == pytest.approx(3 * 3 * RESIDUAL, abs=3 * _STATISTICS * RESIDUAL)
    assert waits("full") < waits("none") / 8


def test_batches_on_a_line_are_those_that_were_traced() -> None:
    """Stages and shards grow in proportion to the batch, as whole models do."""
    steps_at = batched_device_steps(
        (2, gpt2(samples=2)), (3, gpt2(samples=3)), Degrees(tensor=2, pipeline=2)
    )
    traced = device_steps(gpt2(samples=4), Degrees(tensor=2, pipeline=2))
    for step, other in zip(steps_at(4), traced, strict=True):
        assert np.array_equal(step.nbytes, other.nbytes)


def test_main_gradients_are_wide_beside_masters() -> None:
    """Megatron-LM: 2 bytes of weights, 4 of gradients, 12 of masters and states; 18 in all."""
    graph = gpt2(precision="bf16-mixed", passes=2)
    place = MemoryPlace.of(Setting.parse("2xA100-80G@tp2"))
    sharding = replace(place, has_masters=True).sharding
    assert place.sharding == Sharding()
    assert sharding is not None
    (step,) = device_steps(graph, Degrees(tensor=2))
    tensors = device_tensors(step, sharding, 1)
    elements = int(step.weights.elements.sum())
    kept = [tensors.kept_bytes(role) for role in (TensorRole.PARAMETER, TensorRole.GRADIENT)]
    states = int(tensors.states.sum())
    assert kept[1] == 4 * elements
    assert states / elements == pytest.approx(12, rel=1e-3)
    assert kept[0] == pytest.approx(2 * elements, rel=1e-3)
    assert tensors.temporary.sum() < 4.1 * elements  # no copies of gradients


@pytest.mark.parametrize("passes", [1, 2])
def test_gradients_that_add_up_are_there_before_a_pass(passes: int) -> None:
    """Of one micro-batch each is made where it is ready, on a stage as on one device."""
    graph = gpt2(passes=passes)
    whole = StepMemory.of(graph)
    for step in device_steps(graph, Degrees(pipeline=2)):
        made_by = step.made_by[step.roles == TensorRole.GRADIENT]
        of_whole = whole.made_by[whole.roles == TensorRole.GRADIENT]
        assert set(made_by.tolist()) <= set(of_whole.tolist())
        assert bool((made_by == -1).all()) == (passes > 1)


def test_what_lasts_or_was_there_ends_on_a_stage_when_it_ends_on_one_device() -> None:
    """What the step begins with, and frees on the way, and an activation that it hands on."""
    graph = gpt2()
    lives_of = graph.lifetimes
    ends = lives_of.freed_after.copy()
    inputs = np.flatnonzero((lives_of.made_by < 0) & (lives_of.roles == TensorRole.INPUT))
    activations = np.flatnonzero(
        (lives_of.made_by >= 0) & (lives_of.roles == TensorRole.ACTIVATION)
    )
    ends[inputs[0]], ends[activations[0]] = graph.num_nodes // 4, graph.num_nodes
    graph = replace(graph, lifetimes=replace(lives_of, freed_after=ends))
    whole = StepMemory.of(graph)
    rest = whole.roles != TensorRole.GRADIENT
    fixed = rest & ((whole.made_by < 0) | (whole.freed_after >= whole.num_nodes))
    assert fixed.any()

    def lives(step: StepMemory, chosen: Any) -> list[tuple[int, int, int]]:
        columns = (step.nbytes, step.made_by, step.freed_after)
        return sorted(zip(*(column[chosen].tolist() for column in columns), strict=True))

    on_stages: list[tuple[int, int, int]] = []
    for step in device_steps(graph, Degrees(pipeline=2)):
        kept = step.roles != TensorRole.GRADIENT
        chosen = kept & ((step.made_by < 0) | (step.freed_after >= step.num_nodes))
        on_stages += lives(step, chosen)
    assert set(lives(whole, fixed)) <= set(on_stages)


def test_the_largest_stage_decides() -> None:
    setting = Setting.parse("4xA100-80G@pp4")
    graph = gpt2(passes=8)
    places = MemoryPlace.of_kinds(setting)
    each = [
        memory_of_places([one], places).allocated
        for one in device_steps(graph, Degrees(pipeline=4))
    ]
    largest = memory_of_graph(graph, setting).allocated
    assert largest is not None
    assert largest.value == max(one.value for one in each if one is not None)
    timeline = device_timeline(graph, setting)
    assert timeline.peak_bytes == max(
        peak_of(one) for one in device_steps(graph, Degrees(pipeline=4))
    )


def test_every_stage_that_reads_a_tensor_has_it() -> None:
    """Such as an encoder's output, which all blocks of a decoder read, written in place or not."""
    torch = pytest.importorskip("torch")

    from driple.jobs.pytorch.modules import job_of_module

    class Reads(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = torch.nn.Linear(WIDTH, WIDTH)
            self.layers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, 8) for _ in range(3))

        def forward(self, images: Any) -> Any:
            encoded = torch.relu_(self.encoder(images))
            return sum(layer(encoded) for layer in self.layers)

    samples, length = 3, 5
    batch = (torch.zeros(samples, length, WIDTH), torch.zeros(samples))
    graph = job_of_module(Reads(), batch, loss=lambda outputs, _: outputs.sum()).graph
    encoded = 4 * samples * length * WIDTH
    for step in device_steps(graph, Degrees(pipeline=3)):
        inside = (step.made_by >= 0) & (step.roles == TensorRole.ACTIVATION)
        assert encoded in step.nbytes[inside].tolist()


def test_nothing_waits_in_the_update() -> None:
    """The pipeline is empty before it: activations are gone, as with one micro-batch."""
    for step in device_steps(gpt2(passes=8), Degrees(pipeline=4)):
        kinds = bytes_by_kind(device_tensors(step, Sharding(), 1))
        assert not kinds[-1, TensorRole.ACTIVATION]


def test_a_tied_table_is_on_the_first_and_the_last_stage() -> None:
    """As Megatron-LM keeps it."""
    transformers = pytest.importorskip("transformers")
    import torch

    from driple.jobs.pytorch.modules import job_of_module

    config = transformers.GPT2Config(
        n_layer=2, n_embd=WIDTH, n_head=HEADS, vocab_size=WORDS, n_positions=TOKENS,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    tokens = torch.zeros(SAMPLES, TOKENS, dtype=torch.int64)
    graph = job_of_module(
        transformers.GPT2LMHeadModel(config), {"input_ids": tokens, "labels": tokens}
    ).graph
    table = 4 * WORDS * WIDTH
    for step in device_steps(graph, Degrees(pipeline=2)):
        assert table in step.weights.nbytes.tolist()


def test_the_interval_is_that_of_the_nearest_kind() -> None:
    """Wider than that of one device, by the same runs, and the answer names the reason."""
    alone = memory_of_graph(gpt2(), Setting.parse("1xA100-80G"))
    split = memory_of_graph(gpt2(), Setting.parse("4xA100-80G@tp4"))
    for interval in (alone.device_total, split.device_total):
        assert interval is not None and interval.lower is not None and interval.upper is not None
    ratios = [
        np.log([one.upper / one.value, one.value / one.lower])  # type: ignore[union-attr,operator]
        for one in (alone.device_total, split.device_total)
    ]
    assert ratios[1] == pytest.approx(1.25 * ratios[0])
    assert split.source is not None
    assert "of the nearest kind" in sentence(split.source)


def test_a_step_without_blocks_is_refused() -> None:
    torch = pytest.importorskip("torch")

    from driple.jobs.pytorch.modules import job_of_module

    model = torch.nn.Sequential(torch.nn.Linear(8, 8))
    graph = job_of_module(
        model, (torch.zeros(2, 8), torch.zeros(2)), loss=lambda outputs, _: outputs.sum()
    ).graph
    with pytest.raises(GraphError, match="pp2 cuts a step between numbered blocks"):
        device_steps(graph, Degrees(pipeline=2))
