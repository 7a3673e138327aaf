"""The readers of the other sources, a row of each by hand."""

from __future__ import annotations

import pytest

from driple.errors import ConfigError
from driple.runs.published_runs import PublishedRun, on_setting
from scripts.published.rows.dlperf import dlperf_rows
from scripts.published.rows.draft import TP_PP, checkpointing
from scripts.published.rows.examples import example_rows
from scripts.published.rows.flagperf import flagperf_rows
from scripts.published.rows.language import READERS as LANGUAGE
from scripts.published.rows.machines import (
    canonical_device,
    devices_of_machine,
    link_between,
    link_within,
)
from scripts.published.rows.megatron import READERS as MEGATRON
from scripts.published.rows.mlperf import mlperf_rows
from scripts.published.rows.tables import Facts, training_rows
from scripts.published.rows.timm_runs import TimmName, forward_rows
from tests.scripts.published.rows.gathered import gathered


def test_llm_foundry_keeps_passes_of_a_step() -> None:
    row = LANGUAGE["llm-foundry"](
        gathered(
            source="llm-foundry", gpu="a100_40gb", gpu_canonical="A100 SXM 40GB", gpus="16",
            gpus_per_node="8", model="mpt-3b", precision="bf16", batch_per_gpu="5",
            global_batch="160", grad_accum="2", seq_len_or_res="2048", sharding="FSDP FULL_SHARD",
            act_ckpt="False", throughput="1", step_time_s="2.5",
            notes="A100 40GB with 1600 Gbps; mp_mode=PURE; act_offload=False",
        )
    )  # fmt: skip
    assert (row.job, row.scheme, row.family) == ("own:mpt-3b", "fsdp", "mpt")
    assert (row.batch_size, row.grad_accumulation) == (5, 2)
    assert (row.link_within, row.link_between) == ("NVLink-A100", "1600G")
    assert row.activation_checkpointing == "none"
    assert "mp-pure" in row.implementation


def trainer(**cells: str) -> PublishedRun:
    return LANGUAGE["fms-acceleration (IBM)"](
        gathered(**{
            "source": "fms-acceleration (IBM)", "source_file": "refs/a100_80gb.csv",
            "framework": "PyTorch HF Trainer (+ none)", "gpu": "A100 80GB",
            "gpu_canonical": "A100 SXM 80GB", "gpus": "2", "gpus_per_node": "2",
            "model": "mistralai/Mistral-7B-v0.1", "task": "finetune full", "precision": "bfloat16",
            "batch_per_gpu": "4", "global_batch": "8", "seq_len_or_res": "4098",
            "throughput": "2000", "step_time_s": "3.1", **cells,
        })
    )  # fmt: skip


def test_trainer_rows_are_packed_or_unused() -> None:
    row = trainer()
    assert (row.job, row.size, row.scheme) == ("own:mistral-7b", 4096, "fsdp")
    assert (row.activation_checkpointing, row.precision) == ("full", "bf16")
    assert trainer(seq_len_or_res="277").unused_why == "padded length is not stated"
    assert trainer(global_batch="16").grad_accumulation == 2
    assert trainer(global_batch="125").unused_why.startswith("passes of a step")
    lora = trainer(task="finetune lora", framework="PyTorch HF Trainer (+ accelerated-peft-bnb)")
    assert lora.job == "own:mistral-7b+qlora"


def bridge(**cells: str) -> PublishedRun:
    return MEGATRON["NVIDIA Megatron-Bridge"](
        gathered(**{
            "source": "NVIDIA Megatron-Bridge", "date": "25.11 NeMo Container", "gpu": "GB200",
            "gpu_canonical": "GB200", "gpus": "64", "model": "LLAMA3_70B", "precision": "FP8",
            "batch_per_gpu": "2", "global_batch": "256", "seq_len_or_res": "8192", "dp": "64",
            "tp": "1", "pp": "1", "cp": "1", "ep": "n/a", "sharding": "FSDP 64",
            "throughput": "4224", "step_time_s": "7.76", **cells,
        })
    )  # fmt: skip


def test_fsdp_0_is_off_and_groups_are_kept() -> None:
    sharded = bridge()
    assert (sharded.scheme, sharded.dp, sharded.grad_accumulation) == ("fsdp", 64, 2)
    assert sharded.unused_why == "fp8 is not simulated"
    off = bridge(sharding="FSDP 0", precision="BF16", batch_per_gpu="4")
    assert (off.scheme, off.usable) == ("zero1", True)
    groups = bridge(tp="2", pp="4", dp="8", batch_per_gpu="1", sharding="FSDP 0")
    assert (groups.scheme, groups.tp, groups.pp, groups.dp) == ("tp+pp", 2, 4, 8)
    assert groups.unused_why == TP_PP
    assert bridge(gpu="", gpu_canonical="").unused_why.startswith("unknown device")


def test_deep_learning_examples_take_batches_of_their_configuration() -> None:
    cells = {
        "source": "NVIDIA DeepLearningExamples", "framework": "PyTorch NGC 21.03",
        "gpu": "V100 16G", "gpu_canonical": "V100 16GB", "gpus": "1", "precision": "amp",
        "model": "Classification/ConvNets/resnet50v1.5", "throughput": "1200",
        "notes": "Training performance: NVIDIA DGX-1 16GB (8x V100 16GB) | ",
    }  # fmt: skip
    (row,) = example_rows([gathered(**cells)])
    assert (row.batch_size, row.channels_last, row.library) == (256, True, "ngc21.03")
    assert row.step_s == pytest.approx(256 / 1200)
    a100 = {
        **cells, "gpu": "A100 80GB", "gpu_canonical": "A100 SXM 80GB", "gpus": "8",
        "throughput": "16621", "notes": "Training performance: NVIDIA DGX A100",
    }  # fmt: skip
    (row,) = example_rows([gathered(**a100)])
    assert row.unused_why.startswith("input-bound")
    several = {**cells, "gpus": "8", "throughput": "12900"}
    slow, _ = example_rows([gathered(**cells), gathered(**several)])
    assert slow.unused_why == "one device is slower than each of several"


def test_ncf_counts_millions_and_full_precision_first() -> None:
    cells = {
        "source": "NVIDIA DeepLearningExamples", "framework": "PyTorch", "gpu": "V100 16G",
        "gpu_canonical": "V100 16GB", "gpus": "1", "model": "Recommendation/NCF",
        "precision": "amp", "batch_per_gpu": "1048576", "notes": "NVIDIA DGX-1",
    }  # fmt: skip
    full, half = example_rows(
        [gathered(**cells, throughput="10.42"), gathered(**cells, throughput="21.84")]
    )
    assert (full.precision, half.precision) == ("fp32", "amp-fp16")
    assert full.step_s == pytest.approx(1048576 / 10.42e6)


def wide_and_deep(**cells: str) -> dict[str, str]:
    return gathered(**{
        "source": "NVIDIA DeepLearningExamples", "framework": "TensorFlow2", "gpus": "1",
        "gpu": "V100 16G", "gpu_canonical": "V100 16GB", "model": "Recommendation/WideAndDeep",
        "precision": "amp", "batch_per_gpu": "131072", "throughput": "361202",
        "notes": "Training performance: NVIDIA DGX-1 (8x V100 16GB) | XLA=No", **cells,
    })  # fmt: skip


def test_each_pair_of_wide_and_deep_on_v100_is_full_and_half_and_a_table_may_come_twice() -> None:
    """Passes of evaluation are no training, and XLA is a compiler."""
    pair = [wide_and_deep(), wide_and_deep(throughput="1091584")]
    rows = example_rows(2 * pair)
    assert [row.precision for row in rows] == ["fp32", "amp-fp16"] * 2
    assert all(row.usable and not row.compiled for row in rows)
    notes = pair[0]["notes"]
    compiled, evaluated = example_rows([
        wide_and_deep(notes=notes.replace("No", "Yes")),
        wide_and_deep(notes=notes.replace("Training", "Evaluation")),
    ])  # fmt: skip
    assert compiled.usable and compiled.compiled
    assert evaluated.unused_why.startswith("evaluation")


def test_dlperf_reads_its_headings() -> None:
    cells = {
        "source": "DLPerf", "model": "TensorFlow/bert", "gpu": "V100-SXM2-16GB", "gpus": "32",
        "precision": "amp", "throughput": "1000",
    }  # fmt: skip
    (row,) = dlperf_rows([gathered(**cells, notes="BERT-Base  FP32 > batch size=32 & with xla")])
    assert (row.precision, row.batch_size, row.job) == ("fp32", 32, "own:bert-base-pretrain")
    assert row.step_s == pytest.approx(32 * 32 / 1000)
    assert "xla" in row.implementation
    assert row.link_between == "100G"
    wrong = {**cells, "model": "OneFlow/Classification/ConvNets/resnet50v1.5"}
    (row,) = dlperf_rows([gathered(**wrong, batch_per_gpu="96")])
    assert row.unused_why.startswith("duplicate")


def test_mlperf_uses_checked_rows_only() -> None:
    cells = {
        "source": "MLPerf Training v2.0", "source_file": "NVIDIA/results/dgxa100_n8/resnet",
        "gpu": "NVIDIA A100-SXM4-80GB", "gpu_canonical": "A100 SXM 80GB", "gpus": "64",
        "gpus_per_node": "8", "model": "resnet", "global_batch": "26112", "throughput": "1",
        "step_time_s": "0.13",
    }  # fmt: skip
    (row,) = mlperf_rows([gathered(**cells, throughput_check="agrees with run average")])
    assert (row.job, row.batch_size, row.link_between) == ("timm:resnet50", 408, "1600G")
    assert row.usable
    asked = on_setting(row, 1.0)
    assert asked is not None
    assert (asked.compiled, asked.cuda_graphs) == (True, True)
    for check in ("", "unclear (ratio 0.80)"):
        (row,) = mlperf_rows([gathered(**cells, throughput_check=check)])
        assert row.unused_why.startswith("throughput_check")
    wide = {**cells, "source_file": "NVIDIA/results/tyche_ngpu512_ngc25.04_pytorch/retinanet",
            "gpu": "GB200", "gpu_canonical": "GB200", "gpus": "512", "gpus_per_node": "4",
            "model": "retinanet", "global_batch": "512"}  # fmt: skip
    (row,) = mlperf_rows([gathered(**wide, throughput_check="agrees with run average")])
    assert (row.per_machine, row.link_between) == (64, "25600G")
    newer = {**cells, "source": "MLPerf Training v3.1", "model": "bert", "gpus": "8",
             "gpu_canonical": "H100 SXM", "global_batch": "768"}  # fmt: skip
    (row,) = mlperf_rows([gathered(**newer, throughput_check="agrees with run average")])
    assert row.unused_why == "fp8 is not simulated"


def test_mlperf_takes_degrees_and_formats_that_a_log_states() -> None:
    cells = {
        "source": "MLPerf Training v5.1", "source_file": "x/results/n8/llama31_8b",
        "gpu": "NVIDIA B200", "gpu_canonical": "B200", "gpus": "64", "gpus_per_node": "8",
        "model": "llama31_8b", "global_batch": "32", "tp": "1", "pp": "1", "cp": "2",
        "step_time_s": "0.19", "notes": "network 8x400 Gb/s", "throughput_check": "stated",
    }  # fmt: skip
    (row,) = mlperf_rows([gathered(**cells, precision="FP8")])
    assert (row.job, row.batch_size, row.dp, row.cp) == ("own:llama3.1-8b", 1, 32, 2)
    assert (row.precision, row.link_between) == ("fp8", "3200G")
    (row,) = mlperf_rows([gathered(**cells)])
    assert (row.job, row.precision) == ("", "")


def test_stages_of_each_device_and_kinds_of_few_bits_stay_with_a_row() -> None:
    cells = {
        "source": "NVIDIA Megatron-Bridge", "date": "26.08 NeMo Container", "gpus": "256",
        "gpu": "GB300", "gpu_canonical": "GB300", "model": "DeepSeekV3", "task": "train",
        "batch_per_gpu": "1", "global_batch": "4096", "seq_len_or_res": "4096", "tp": "1",
        "pp": "2", "cp": "1", "ep": "32", "step_time_s": "10.4",
    }  # fmt: skip
    read = MEGATRON["NVIDIA Megatron-Bridge"]
    assert "mxfp8 vpp8" in read(gathered(**cells, precision="MXFP8", notes="VP=8")).implementation
    assert "vpp" not in read(gathered(**cells, precision="FP8", notes="VP=n/a")).implementation


def test_flagperf_uses_devices_of_the_catalogue() -> None:
    cells = {
        "source": "FlagPerf", "framework": "pytorch-1.8.0a0+52ea372", "gpu": "A100",
        "gpu_canonical": "A100", "gpus": "8", "gpus_per_node": "8", "model": "resnet50-pytorch",
        "precision": "fp32", "batch_per_gpu": "256", "throughput": "6105",
        "unit": "samples/s (p_core)",
    }  # fmt: skip
    (row,) = flagperf_rows([gathered(**cells, notes="vendor nvidia; bs=256; net 200Gb/s")])
    assert (row.precision, row.library, row.batch_size) == ("tf32", "torch1.8", 256)
    assert row.step_s == pytest.approx(8 * 256 / 6105)
    (row,) = flagperf_rows([gathered(**cells, notes="vendor metax; bs=256")])
    assert row.unused_why == "unknown device: A100"


def test_forward_passes_state_cast_layout_and_compilation() -> None:
    cells = {
        "source": "timm", "framework": "PyTorch 2.9.1 CUDA 13.0", "gpu": "pro6000maxq",
        "model": "old_name", "precision": "bf16", "batch_per_gpu": "1024",
        "seq_len_or_res": "224", "compile": "torch.compile", "step_time_s": "0.02",
        "source_file": "results/benchmark-infer-bf16-nhwc-pt291-cu130-pro6000maxq-dynamo.csv",
    }  # fmt: skip
    names = {"old_name": TimmName("timm:new_name", "resnet")}
    (row,) = forward_rows([gathered(**cells)], names)
    assert (row.job, row.device, row.precision) == ("timm:new_name", "RTXPRO6000-MaxQ", "bf16")
    assert (row.compiled, row.channels_last, row.library) == (True, True, "torch2.9")
    (row,) = forward_rows([gathered(**{**cells, "model": "gone"})], names)
    assert row.unused_why == "timm 1.0.31 no longer has the model"
    (row,) = forward_rows([gathered(**{**cells, "gpu": "i9_10940x"})], names)
    assert row.unused_why.startswith("CPU")


def test_an_unknown_source_is_refused() -> None:
    facts = Facts.of([], [], [])
    with pytest.raises(ConfigError, match="no reader knows the source 'elsewhere'"):
        training_rows([gathered(source="elsewhere")], facts)


def test_the_same_row_twice_is_used_once() -> None:
    facts = Facts.of([], [], [])
    cells = {
        "source": "DLPerf", "model": "TensorFlow/bert", "gpus": "8", "throughput": "1000",
        "notes": "BERT-Base FP16 > batch size=64",
    }  # fmt: skip
    rows = [gathered(**cells, row="1"), gathered(**cells, row="2"),
            gathered(**{**cells, "throughput": "1001"}, row="3")]  # fmt: skip
    first, second, third = training_rows(rows, facts)
    assert first.usable
    assert third.usable
    assert second.unused_why == "duplicate: of dlperf-00001"


@pytest.mark.parametrize(
    ("text", "word"),
    [("", "none"), ("No AC", "none"), ("&#x2718;", "none"), ("TRUE", "full"),
     ("Selective AC", "selective"), ("per op SAC", "selective")],
)  # fmt: skip
def test_spellings_of_checkpointing(text: str, word: str) -> None:
    assert checkpointing(text) == word


def test_machines_have_the_links_that_are_known() -> None:
    assert canonical_device("RTX 2080 Ti") == "2080Ti"
    assert canonical_device("nothing") == canonical_device("") == ""
    assert link_within("H100", 8) == "NVLink-H100"
    assert link_within("H100", 1) == ""
    assert link_within("3090", 2) == "PCIe4-host"  # no peer copies
    assert link_within("2080Ti", 2, bridged=True) == "NVLink-Turing"
    assert link_within("A100", 8, pcie=True) == "PCIe4"
    assert link_between("InfiniBand, 2x200 Gb/s") == "400G"
    assert link_between("network 400 Gbps") == "400G"
    assert link_between("none") == ""


def test_an_nvlink_domain_is_a_machine() -> None:
    assert devices_of_machine("H100", 64, 8) == 8
    assert devices_of_machine("H100", 4, 8) == 4
    assert devices_of_machine("V100-SXM3", 16, 8) == 8  # DGX-2 is stated as such
    assert devices_of_machine("GB200", 36, 4) == 36
    assert devices_of_machine("GB200", 72, 4) == 72
    assert devices_of_machine("GB200", 512, 4) == 64
    assert devices_of_machine("", 16, 8) == 8
