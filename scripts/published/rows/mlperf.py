"""mlcommons/training_results v1.1 to v5.0: logs of tuned runs on 1 to 11,616 GPUs.

    benchmark, release, system -> PublishedRun

A row is used where the logged throughput agrees with the run's own average (`throughput_check`) and
the model has one definition: ResNet-50 (MXNet), RetinaNet (`ssd` from v2.0 on), BERT, Mask
R-CNN, RNN-T and 3D U-Net. Submissions use CUDA graphs, fused kernels and large networks. BERT
computes on the real tokens alone, about 232 of 512, in fp8 on Hopper and newer from v3.0 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from driple.runs.published_runs import PublishedRun
from scripts.published.rows.cells import Raw, number, whole, whole_or
from scripts.published.rows.draft import Draft
from scripts.published.rows.machines import (
    canonical_device,
    devices_of_machine,
    is_card,
    link_between,
    link_within,
)

__all__ = ["SOURCE", "mlperf_rows"]

SOURCE = "MLPerf Training"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Benchmark:
    job: str
    size: int | None
    optimizer: str
    framework: str
    images: bool = True
    half: str = "amp-fp16"  # `fp16`: weights in half precision, a copy in single


_BENCHMARKS: Mapping[str, _Benchmark] = MappingProxyType({
    "resnet": _Benchmark(
        job="timm:resnet50", size=224, optimizer="lars", framework="mxnet", half="fp16"),
    "ssd": _Benchmark(job="own:retinanet", size=800, optimizer="adam-fused", framework="torch"),
    "retinanet": _Benchmark(
        job="own:retinanet", size=800, optimizer="adam-fused", framework="torch"),
    "maskrcnn": _Benchmark(job="own:maskrcnn", size=800, optimizer="momentum", framework="torch"),
    "bert": _Benchmark(job="own:bert-large-mlperf", size=232, optimizer="lamb",
                       framework="torch", images=False, half="fp16"),
    "unet3d": _Benchmark(
        job="own:unet3d", size=128, optimizer="momentum", framework="mxnet", half="fp16"),
    "rnnt": _Benchmark(job="own:rnnt", size=None, optimizer="lamb", framework="torch",
                       images=False),
})  # fmt: skip
_SSD_2021 = _Benchmark(job="", size=300, optimizer="momentum", framework="mxnet")  # ResNet-34
_NO_MODEL = MappingProxyType({
    "dlrm": "model cannot be built: HugeCTR splits its tables over devices",
    "dlrm_dcnv2": "model cannot be built: HugeCTR splits its tables over devices",
    "gnn": "model cannot be built: samples of a graph have no fixed shape",
    "rgat": "model cannot be built: samples of a graph have no fixed shape",
    "minigo": "model cannot be built: games have no fixed length",
    "stable_diffusion": "model cannot be built",
    "gpt3": "tensor, pipeline, context or expert parallelism is not simulated",
    "llama31_405b": "tensor, pipeline, context or expert parallelism is not simulated",
    "llama2_70b_lora": "tensor, pipeline, context or expert parallelism is not simulated",
})  # fmt: skip
# Where a run's log states tensor and context parallelism and the format of its products.
_STATED = MappingProxyType({
    "llama31_8b": _Benchmark(job="own:llama3.1-8b", size=8192, optimizer="adamw-fused",
                             framework="nemo", images=False),
    "llama2_70b_lora": _Benchmark(job="own:llama2-70b+lora", size=8192, optimizer="adamw-fused",
                                  framework="nemo", images=False),
})  # fmt: skip
_UNSTATED_FROM = "v5.1"
_FP8_FROM, _FP8_DEVICES = "v3.0", frozenset({"H100", "H100-PCIe", "H200", "B200", "GB200"})
# Gbit/s of a node's adapters by the name of the system: `host_networking` of its JSON file, without
# those of storage and management.
_NETWORKS = (
    (r"dgx-?_?h100|\beos|coreweave_hgxh100|nd_?h100|xe9680|bm\.gpu\.[hb]\d00|nbr-lcc", 3200),
    (r"dgx-?_?a100|nd96a|xd670|8_node_64_a100|\btyche|\bcarina|nbo_\d", 1600),
    (r"xl675d|r5500g5|l40s_n\d", 800),
    (r"xe8545", 400),
    (r"2opa", 200),
    (r"1opa|r750", 100),
)


def mlperf_rows(raw: Iterable[Raw]) -> Iterator[PublishedRun]:
    """Rows of the source, from the gathered ones."""
    return map(_row, raw)


def _row(row: Raw) -> PublishedRun:
    name, release = row["model"], row["source"].rpartition(" ")[2]
    device = canonical_device(row["gpu_canonical"])
    devices = whole_or(row["gpus"], 1)
    card = is_card(row["gpu"])
    node = whole_or(row["gpus_per_node"], 8)
    per_machine = devices_of_machine(device, devices, node)
    benchmark = _BENCHMARKS.get(name)
    if name == "ssd" and release == "v1.1":
        benchmark = _SSD_2021
    stated = {"FP8": "fp8", "NVFP4": "fp4"}.get(row["precision"], "")
    if stated:
        benchmark = _STATED.get(name)
    tp, pp, cp = (whole_or(row[kind], 1) for kind in ("tp", "pp", "cp"))
    samples, passes = whole(row["global_batch"]), whole_or(row["grad_accum"], 1)
    batch = None
    replicas = max(1, devices // (tp * pp * cp))
    if samples and samples % (replicas * passes) == 0:
        batch = samples // (replicas * passes)
    check = row["throughput_check"]
    fp8 = name == "bert" and device in _FP8_DEVICES and release >= _FP8_FROM
    draft = Draft(
        raw=row,
        prefix="mlperf",
        library=f"{benchmark.framework if benchmark else ''}-mlperf{release}".lstrip("-"),
        device=device,
        num_devices=devices,
        per_machine=per_machine,
        link_within=link_within(device, per_machine, pcie=card),
        link_between=_between(row["source_file"], max(1, per_machine // node))
        or link_between(row["notes"], nodes=max(1, per_machine // node)),
        tp=tp,
        pp=pp,
        cp=cp,
        job=benchmark.job if benchmark else "",
        batch_size=batch,
        size=benchmark.size if benchmark else None,
        precision=stated or _half(release, benchmark, fp8=fp8),
        optimizer=benchmark.optimizer if benchmark else "",
        grad_accumulation=passes,
        channels_last=benchmark is not None and benchmark.images,
        compiled=benchmark is not None,
        implementation="cuda-graphs fused",
        data="real",
        step_s=number(row["step_time_s"]),
    )
    draft.why = _reason("" if stated else name, check, samples, batch)
    return draft.row()


def _half(release: str, benchmark: _Benchmark | None, *, fp8: bool) -> str:
    if benchmark is None:  # language models of later rounds run in 8 or 4 bits, which none states
        return "" if release >= _UNSTATED_FROM else "amp-fp16"
    return "fp8" if fp8 else benchmark.half


def _reason(name: str, check: str, samples: int | None, batch: int | None) -> str:
    if not check:
        return "throughput_check: throughput could not be checked"
    if "unclear" in check:
        return "throughput_check: throughput does not agree with the run"
    if name in _NO_MODEL:
        return _NO_MODEL[name]
    if samples and batch is None:
        return "batch of a step is no multiple of the devices"
    return ""


def _between(system: str, nodes: int) -> str:
    """Network of a machine, by the system's name, all adapters of its nodes together."""
    for pattern, rate_gbps in _NETWORKS:
        if re.search(pattern, system, re.IGNORECASE):
            return f"{rate_gbps * nodes}G"
    return ""
