"""Models of the published rows have the published numbers of parameters, and their steps scale."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

pytest.importorskip("torch")
pytest.importorskip("transformers")

from driple.errors import ConfigError
from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.graph.torch.options import StepOptions
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from scripts.published.models import OPTIONS, PREFIX, REGISTRY, built, definition_of, traced_job

declare_torchvision_ops()
pytest.importorskip("torchvision")
SCALED = (
    "ncf", "ssd300", "gnmt", "mpt-125m", "rnnt", "wide-and-deep",
    *(pytest.param(name, marks=pytest.mark.slow) for name in (
        "bert-base-squad", "transformerxl-base", "granite-3.0-3b-a800m", "transformer-big",
        "jasper")),
)  # fmt: skip
MARK = 1009  # a prime


def traced(job: str, batch_size: int, size: int = 0) -> OpGraph:
    known = definition_of(job)
    options = StepOptions(precision=known.half, optimizer=known.optimizer, compiled=known.compiled)
    return traced_job(job, batch_size=batch_size, size=size, options=options)


@pytest.mark.parametrize("name", [name for name, one in REGISTRY.items() if one.parameters])
def test_parameters_are_as_published(name: str) -> None:
    """The number of a model card, or of the source's own log."""
    model = built(PREFIX + name, batch_size=1).model
    assert sum(one.numel() for one in model.parameters()) == REGISTRY[name].parameters


def sizes(graph: OpGraph) -> list[tuple[int, ...]]:
    """Shapes of all that an op reads and writes, op by op."""
    signatures = [graph.signatures[one] for one in graph.signature_of]
    return [one.shape or () for op in signatures for one in (*op.inputs, *op.outputs)]


@pytest.mark.parametrize("name", SCALED)
def test_each_size_grows_with_the_batch_or_stays(name: str) -> None:
    """With a prime as batch, what is a multiple of it doubles with the batch, the rest stays.

    The store of steps is made by this mark, so a size must not be rounded after a division.
    """
    few, many = traced(PREFIX + name, MARK), traced(PREFIX + name, 2 * MARK)
    assert many.op_types == few.op_types
    assert np.array_equal(few.edges, many.edges)
    for small, large in zip(sizes(few), sizes(many), strict=True):
        assert large == tuple(side if side % MARK else 2 * side for side in small)


def test_every_model_says_how_it_is_trained() -> None:
    """Options of each job make valid options of a step."""
    assert set(OPTIONS) == {PREFIX + name for name in REGISTRY}
    for options in OPTIONS.values():
        StepOptions(precision=options.half, optimizer=options.optimizer, compiled=options.compiled)


def test_an_unknown_model_is_refused() -> None:
    """Names and kinds of adapters are those of the registry."""
    for job in ("own:nothing", "own:llama2-7b+nothing"):
        with pytest.raises(ConfigError, match="no published model"):
            definition_of(job)


# GFLOPs of a token: stated TFLOPs per GPU over stated tokens per GPU and second. The share of pairs
# of tokens that the source counts in causal attention: all, or half.
STATED = {
    "mpt-1b": (2048, 401e3 * 128 / 5_647_854, 1.0),  # llm-foundry, 128 H100
    "mpt-3b": (2048, 419e3 * 128 / 2_998_098, 1.0),
    "mpt-7b": (2048, 452e3 * 128 / 1_340_830, 1.0),
    "gpt3-5b": (2048, 32.68, 1.0),  # NeMo 24.07
    "nemotron-8b": (4096, 51.41, 1.0),
    "llama3-8b": (8192, 51.48, 0.5),  # Megatron-Bridge, which NeMo 24.07 gives as 57.93
    "qwen3-30b-a3b": (4096, 23.01, 0.5),
}


_QUICK = ("mpt-1b", "mpt-3b", "gpt3-5b", "nemotron-8b")


@pytest.mark.parametrize(
    "name",
    [name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow) for name in STATED],
)
def test_flops_are_those_of_the_rows(name: str) -> None:
    """The sources count 6 FLOPs for each weight and token, and the products of attention.

    Flash attention skips the pairs that a causal mask hides, half of them, and computes the scores
    again in the backward pass: 3.5 in place of 3 products.
    """
    size, stated, share = STATED[name]
    graph = traced(PREFIX + name, 1, size)
    kinds = np.array([graph.signatures[one].kind for one in graph.signature_of])
    flops = cost_of_graph(graph).flops
    attention = np.isin(kinds, ("attention", "attention_gradient"))
    products = np.isin(kinds, ("matmul", "batch_matmul"))
    product_flops = flops[products].sum() + flops[attention].sum() * (2 * share) * 3 / 3.5
    assert product_flops / size / 1e9 == approx(stated, rel=0.02)


def test_a_fused_loss_keeps_fewer_copies_of_the_logits() -> None:
    """Of all words of 128 tokens, in single precision: three with PyTorch's loss at the peak."""
    from driple.memory.timeline import step_timeline

    plain, fused = (
        step_timeline(traced(f"own:tinyllama+lora{suffix}", 8, 128)).peak_bytes
        for suffix in ("", "+foak")
    )
    copy = 8 * 128 * 32_000 * 4
    assert 0.4 * copy < plain - fused < 2.1 * copy
