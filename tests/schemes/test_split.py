"""Laws of tensor and pipeline parallelism: bytes, work, bubbles, links, refused settings."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from driple.cluster.schemes import SPLIT, Degrees
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import GraphError, SettingError
from driple.render.remarks import sentences
from driple.schemes.collectives import DeviceGroup
from driple.schemes.records import WorkerRecord
from driple.schemes.split import SplitGroups, SplitScheme
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate, simulate_steps
from driple.simulate.split_plans import split_plans
from driple.step.exchange import BUCKETS
from tests.schemes.exchanged import sent_bytes
from tests.simulate.jobs import net

STILL = replace(shipped_calibration(), jitter=0.0)
LAYERS, WIDTH, WORDS, SAMPLES, TOKENS = 4, 256, 1024, 4, 64
ACTIVATIONS = 4 * SAMPLES * TOKENS * WIDTH  # bytes of a residual in single precision
DEGREES = ("tp2", "tp4", "pp2", "pp4", "tp2-pp2", "tp2-pp4", "tp4-pp2")


@cache
def gpt2(passes: int = 1, layers: int = LAYERS) -> PreparedJob:
    """GPT-2 of transformers, small."""
    transformers = pytest.importorskip("transformers")
    import torch

    from driple.jobs.pytorch.modules import job_of_module
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    config = transformers.GPT2Config(
        n_layer=layers,
        n_embd=WIDTH,
        n_head=4,
        vocab_size=WORDS,
        n_positions=TOKENS,
        bos_token_id=0,
        eos_token_id=0,
    )
    tokens = torch.zeros(SAMPLES, TOKENS, dtype=torch.int64)
    job = job_of_module(
        transformers.GPT2LMHeadModel(config),
        {"input_ids": tokens, "labels": tokens},
        grad_accumulation=passes,
        optimizer="adamw",
    )
    return PreparedJob(job.graph, cost=job.cost)


@cache
def llama() -> PreparedJob:
    """Llama of transformers, small, under autocast: a matrix each for queries, keys and values."""
    transformers = pytest.importorskip("transformers")
    import torch

    from driple.jobs.pytorch.modules import job_of_module
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    config = transformers.LlamaConfig(
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=WORDS,
        max_position_embeddings=TOKENS,
    )
    tokens = torch.zeros(SAMPLES, TOKENS, dtype=torch.int64)
    job = job_of_module(
        transformers.LlamaForCausalLM(config),
        {"input_ids": tokens, "labels": tokens},
        precision="amp-bf16",
        optimizer="adamw",
    )
    return PreparedJob(job.graph, cost=job.cost)


def records_on(job: PreparedJob, name: str) -> list[WorkerRecord]:
    return simulate_steps(job, topology_of(Setting.parse(name)), STILL, num_steps=3)


def seconds_on(job: PreparedJob, name: str) -> float:
    return records_on(job, name)[0].iteration_time_s


def test_degrees_of_one_are_ddp() -> None:
    """By name, by plan, and by what the scheme makes of a plan."""
    plain = Setting.parse("2x4xH100/NVLink+400G")
    assert Setting.parse("2x4xH100/NVLink+400G@tp1-pp1") == plain
    job, device = gpt2(), STILL.device("H100")
    alone = SplitGroups(tensor=DeviceGroup(count=1), replicas=DeviceGroup(count=1))
    assert split_plans(job, device, alone, Degrees()).plans == (job.exchange_plan(device, BUCKETS),)
    topology = topology_of(plain)
    records = [
        simulate_steps(job, replace(topology, scheme=scheme), STILL, num_steps=3)
        for scheme in (topology.scheme, SPLIT)
    ]
    assert records[0] == records[1]


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("passes", [1, 3])
def test_bytes_of_a_tensor_group(count: int, passes: int) -> None:
    """Two sums in each block's forward and backward pass, one after the words, one before them.

    Each is a reduce-scatter and a gather; the inputs of two matrices of a block, and of the head,
    are gathered once more for their gradients.
    """
    moves = 2 * (4 * LAYERS + 2) + 2 * LAYERS + 1
    wanted = passes * moves * (count - 1) / count * ACTIVATIONS
    records = records_on(gpt2(passes), f"{count}xH100/NVLink@tp{count}")
    assert {round(sent_bytes(one)) for one in records} == {round(wanted)}


def test_gradients_of_separate_matrices_are_summed_once() -> None:
    """In half precision, as products make them under autocast; the words come in single."""
    _, shard = llama().shard(Degrees(tensor=4))
    half, single = ACTIVATIONS / 2, float(ACTIVATIONS)
    sums = [one.nbytes for one in shard.exchanges if one.kind == "reduce_scatter"]
    assert sorted(sums) == [*[half] * (4 * LAYERS + 1), single]


def test_devices_beyond_the_heads_of_keys_hold_the_same() -> None:
    """Two heads of keys on four devices: a device computes one, which another has too."""
    job = llama()
    shard, _ = job.shard(Degrees(tensor=4))
    heads = [
        {op.inputs[1].shape[1] for op in one.graph.signatures if op.kind == "attention"}
        for one in (job, shard)
    ]
    assert heads in ([{2}, {1}], [{8}, {2}])  # as they are, or repeated for each query


@pytest.mark.parametrize("count", [2, 4])
def test_shards_add_up(count: int) -> None:
    """Products, parameters and gradients of all devices are those of one that has everything."""
    job = gpt2()
    shard, _ = job.shard(Degrees(tensor=count))
    products = [
        op.kind in ("matmul", "attention", "attention_gradient")
        for op in (job.graph.signatures[i] for i in job.graph.signature_of.tolist())
    ]
    whole, part = (one.cost.flops[products].sum() for one in (job, shard))
    assert count * part == whole > 0
    tables = [one.graph.parameters.nbytes for one in (job, shard)]
    split = tables[0] != tables[1]
    assert (count * tables[1][split]).tolist() == tables[0][split].tolist()
    names = np.array(job.graph.parameters.names)
    assert all("ln_" in name or "wpe" in name or "c_proj.bias" in name for name in names[~split])
    assert shard.graph.sent_bytes == tables[1].sum()
    moved = shard.cost.bytes_read.sum() / job.cost.bytes_read.sum()
    assert 1 / count < moved < 1.2 / count  # what is gathered for a matrix is read whole


def test_replicas_add_up_their_share_of_the_gradients() -> None:
    """On two tensor groups: what their devices sum, and an all-reduce of a shard of two."""
    inside = sent_bytes(records_on(gpt2(), "2xH100/NVLink@tp2")[0])
    both = sent_bytes(records_on(gpt2(), "4xH100/NVLink@tp2")[0])
    shard, _ = gpt2().shard(Degrees(tensor=2))
    assert both - inside == pytest.approx(2 * 1 / 2 * shard.graph.sent_bytes, rel=1e-6)


def test_replicas_of_a_shard_gather_what_they_share_out() -> None:
    """Half of a shard of two comes for each pass, and half of its gradients go; tables stay."""
    inside = sent_bytes(records_on(gpt2(), "2xH100/NVLink@tp2")[0])
    both = sent_bytes(records_on(gpt2(), "4xH100/NVLink@tp2-fsdp")[0])
    shard, _ = gpt2().shard(Degrees(tensor=2))
    table = shard.graph.parameters
    tables = table.nbytes[[".h." not in name for name in table.names]].sum()
    wanted = 1 / 2 * (3 * shard.graph.sent_bytes - tables)
    assert both - inside == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("passes", [1, 4])
def test_bytes_of_a_pipeline(passes: int) -> None:
    """Each stage hands its activations on, and the gradients of those that it got back."""
    records = records_on(gpt2(passes), "4xH100/NVLink@pp4")
    sent = [sent_bytes(one) for one in records]
    wanted = [passes * hands * ACTIVATIONS for hands in (1, 2, 2, 1)]
    assert sent == pytest.approx(wanted, rel=1e-6)
    assert len({one.iteration_time_s for one in records}) == 1


@pytest.mark.parametrize("scheme", [name for name in DEGREES if "pp" in name])
def test_more_micro_batches_never_lower_the_throughput(scheme: str) -> None:
    """The bubble shrinks. Without a pipeline only the host's time for the update is shared."""
    rates = [passes / seconds_on(gpt2(passes), f"8xH100@{scheme}") for passes in (1, 2, 4, 8, 16)]
    assert rates == sorted(rates)


def test_a_pipeline_fills_with_micro_batches() -> None:
    """With many of them, four stages take little more than a fourth of the time of one."""
    alone = seconds_on(gpt2(64), "1xH100")
    assert alone / 4 < seconds_on(gpt2(64), "4xH100@pp4") < alone / 2


@pytest.mark.parametrize("scheme", DEGREES)
def test_a_faster_link_is_never_slower(scheme: str) -> None:
    for passes in (1, 4):
        job = gpt2(passes)
        between = [
            seconds_on(job, f"2x8xH100/NVLink+{rate}@{scheme}")
            for rate in ("100M", "1G", "10G", "100G", "400G", "3200G")
        ]
        assert between == sorted(between, reverse=True)
        within = [seconds_on(job, f"8xH100/{link}@{scheme}") for link in ("PCIe", "NVLink")]
        assert within[0] >= within[1]


def test_groups_across_machines_are_slower_and_said() -> None:
    near = simulate(gpt2(), Setting.parse("2x4xH100/NVLink+10G@tp4"), STILL, num_steps=3)
    far = simulate(gpt2(), Setting.parse("4x2xH100/NVLink+10G@tp4"), STILL, num_steps=3)
    assert far.iteration_time_s > near.iteration_time_s
    assert any("spans machines of 2" in one for one in sentences(far.assumptions))
    assert not any("spans" in one for one in sentences(near.assumptions))
    assert any("each of 2 replicas of 4 devices" in one for one in sentences(near.assumptions))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("8xA100@tp3", "groups of 3 devices .* a group of 2 or 4 does"),
        ("8xA100@tp4-pp4", "groups of 16 devices .* a group of 8 does"),
        ("16xA100@ep3-pp4", "ep3 does not divide the 4 devices of a stage.* ep 2 or 4 does"),
        ("8xA100@vpp2", "there is no pipeline"),
        ("8xA100@tp2-tp4", "tp twice"),
        ("8xA100@tp2-hsdp", "go with one of ddp, zero1"),
        ("8xA100@split", "name the degrees"),
        ("V100-P1w2/ho-PCIe@tp2", "has parameter servers"),
    ],
)
def test_degrees_that_fit_no_setting_are_refused(name: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Setting.parse(name)


def test_names_are_their_own_inverse() -> None:
    for name in ("8xA100/NVLink@tp8", "2x8xA100/NVLink+400G@tp2-pp4", "4xA100/NVLink@pp4"):
        setting = Setting.parse(name)
        assert setting.name == name
        assert Setting.parse(name.partition("@")[0]).with_scheme(name.partition("@")[2]) == setting
    assert Setting.parse("8xA100@pp2-tp2").name == "8xA100/NVLink@tp2-pp2"
    assert Setting.parse("2x8xA100/NVLink+400G@tp2-pp4").num_replicas == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("8xH100@tp8", "does not divide the 4 heads of attention; tp 4 does"),
        ("8xH100@pp8", "the graph has 4"),
        (
            "3xH100@pp3",
            r"^4 blocks do not divide into 3 stages \(pp x vpp\): the fullest would have 2, "
            "50 % over the mean; 2 or 4 stages do$",
        ),
        (
            "5xH100@tp5",
            "does not divide a side of transformer.h.0.attn.c_attn.weight, which is 768; tp 4 or 6",
        ),
    ],
)
def test_degrees_that_fit_no_model_are_refused(name: str, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        seconds_on(gpt2(), name)


def test_stages_that_differ_by_less_than_a_tenth_are_answered_and_said() -> None:
    """Of 11 blocks two stages have 6 and 5: 9 % over the mean of 5.5."""
    simulation = simulate(gpt2(2, 11), Setting.parse("2xH100@pp2"), STILL, num_steps=3)
    words = "11 blocks do not divide into 2 stages: 6, 5"
    assert words in sentences(simulation.assumptions)
    even = simulate(gpt2(2), Setting.parse("2xH100@pp2"), STILL, num_steps=3)
    assert not any("do not divide" in one for one in sentences(even.assumptions))


@pytest.mark.parametrize("scheme", ["tp2", "pp2"])
def test_graphs_without_blocks_are_refused(scheme: str) -> None:
    with pytest.raises(GraphError, match="use ddp or fsdp"):
        seconds_on(PreparedJob(net(4)), f"8xH100@{scheme}")


def test_plans_choose_its_degrees_and_never_its_name() -> None:
    for name in ("8xH100", "4x8xH100/NVLink+400G"):
        assert SplitScheme().is_planned(Setting.parse(name).cluster, is_model=True) is False
