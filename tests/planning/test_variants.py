"""Variants of a job are the jobs that a user would get by naming them."""

from dataclasses import replace

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.errors import ConfigError, GraphError
from driple.graph.torch.options import StepOptions, compute_capability_of, kernels_like
from driple.jobs.load import JobOptions, load_job
from driple.planning.variants import JobVariants, Variant, with_passes
from tests.planning.gpt import write_gpt

A100, V100 = Setting.parse("1xA100"), Setting.parse("1xV100")
OPTIONS = JobOptions(batch_size=2, seq_len=32, precision="amp-fp16")


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_gpt(tmp_path_factory.mktemp("gpt"))


@pytest.mark.parametrize("setting", [A100, V100])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_passes_are_counted_as_if_they_were_read(
    gpt: str, setting: Setting, checkpointing: str
) -> None:
    variants = JobVariants(gpt, OPTIONS)
    job = variants.job(
        replace(variants.usual, grad_accumulation=5, activation_checkpointing=checkpointing),
        setting,
    )
    options = replace(OPTIONS, grad_accumulation=5, activation_checkpointing=checkpointing)
    read = load_job(gpt, options, setting=setting)
    assert np.array_equal(job.graph.executions, read.graph.executions)
    assert np.array_equal(job.graph.signature_of, read.graph.signature_of)
    assert job.grad_accumulation == 5
    assert job.cost.flops.sum() == read.cost.flops.sum()


def test_a_variant_is_read_once_and_the_usual_one_is_the_given_job(gpt: str) -> None:
    variants = JobVariants(gpt, OPTIONS)
    assert variants.job(variants.usual, A100) is variants.given
    four = replace(variants.usual, batch_size=4)
    assert variants.job(four, A100) is variants.job(four, Setting.parse("8xH100"))
    assert variants.job(four, A100) is not variants.job(four, V100)  # another attention kernel
    assert variants.job(four, A100).batch_size == 4
    assert variants.job(four, A100).grad_accumulation == 1


def test_a_fixed_graph_has_no_other_variant() -> None:
    graph = load_job("datasets/examples/resnet20.pbtxt", JobOptions(batch_size=24))
    variants = JobVariants("datasets/examples/resnet20.pbtxt", JobOptions(batch_size=24))
    assert not variants.can_vary
    assert variants.job(variants.usual, A100).graph.num_nodes == graph.graph.num_nodes
    with pytest.raises(ConfigError, match="fixed graph"):
        variants.job(replace(variants.usual, batch_size=25), A100)


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize(
    "generation", ["Kepler", "Maxwell", "Volta", "Turing", "Ampere", "Ada", "Hopper", "CDNA3"]
)
def test_devices_that_share_a_step_pick_the_same_kernels(generation: str, half: bool) -> None:
    """Every attention of usual shapes gets one kernel on a generation and on its stand-in."""
    import torch

    from driple.graph.torch.attention import attention_kernel

    like, own = kernels_like(generation, half=half), compute_capability_of(generation)
    types = [torch.float16, torch.bfloat16, torch.float32] if half else [torch.float32]
    for dtype in types:
        for width in (64, 128, 208, 256, 320):
            tensor = torch.empty(2, 4, 64, width, dtype=dtype, device="meta", requires_grad=True)
            picked = [
                attention_kernel(
                    tensor, tensor, tensor, None, is_causal=True, dropout=0.1, grouped=False,
                    capability=capability,
                )
                for capability in (like, own)
            ]  # fmt: skip
            assert picked[0] == picked[1], (generation, dtype, width)


def test_words_leave_out_what_is_usual() -> None:
    assert Variant(batch_size=8, precision="fp32").name == "batch 8, fp32"
    whole = Variant(
        batch_size=8,
        grad_accumulation=4,
        activation_checkpointing="full",
        precision="amp-bf16",
        compiled=True,
    )
    assert whole.name == "batch 8 x 4, full checkpointing, amp-bf16, compiled"
    assert whole.samples_per_update == 32


def test_passes_are_counted_of_a_job_that_was_read_with_three() -> None:
    """Ops of every pass have 3 turns, those of all but the first 2, and others 1."""
    job = load_job("datasets/examples/resnet20.pbtxt", JobOptions(batch_size=24))
    step = StepOptions(grad_accumulation=3)
    turns = np.resize([3, 2, 1], job.graph.num_nodes)
    probe = replace(job, step=step, graph=replace(job.graph, executions=turns))
    more = with_passes(probe, 7)
    assert more.graph.executions.tolist() == np.resize([7, 6, 1], len(turns)).tolist()
    assert more.grad_accumulation == 7
    assert more.cost.executions.tolist() == more.graph.executions.tolist()
    four = replace(probe, graph=replace(job.graph, executions=np.resize([3, 4], len(turns))))
    for other in (four, replace(probe, step=StepOptions(grad_accumulation=2)), job):
        with pytest.raises(GraphError, match="repeat otherwise"):
            with_passes(other, 7)
