"""Training on many devices, from texts of public repositories -> gathered rows.

    a page's tables, or the log of a run -> Raw, as the gathered tables have them

NVIDIA's pages of performance (Megatron-Bridge, dgxc-benchmarking), logs of MLPerf Training v5.1,
and three pages with few rows, of which the figures stand here. `SOURCES` says whence and when, and
which sources stay out of every fit and every choice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any

from scripts.published.rows.cells import Raw, number

__all__ = ["COLUMNS", "SOURCES", "Source", "bridge_rows", "dgxc_rows", "mlperf_row", "small_rows"]

COLUMNS = (
    "row", "gpu_canonical", "source", "source_file", "date", "framework", "gpu", "gpus",
    "gpus_per_node", "model", "task", "precision", "batch_per_gpu", "global_batch",
    "seq_len_or_res", "dp", "tp", "pp", "cp", "ep", "sharding", "grad_accum", "act_ckpt",
    "compile", "throughput", "unit", "per", "step_time_s", "peak_mem_gib", "notes",
    "throughput_check",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where rows come from.

    Attributes:
        name: of the source in the table.
        repository: owner/name on GitHub.
        commit: that was read.
        licence: of the repository.
        for_checks: whether its rows stay out of every fit and every choice.
    """

    name: str
    repository: str
    commit: str
    licence: str
    for_checks: bool = False


SOURCES: Mapping[str, Source] = MappingProxyType({
    "bridge": Source(name="NVIDIA Megatron-Bridge", repository="NVIDIA-NeMo/Megatron-Bridge",
                     commit="067f987df", licence="Apache-2.0"),
    "dgxc": Source(name="NVIDIA dgxc-benchmarking", repository="NVIDIA/dgxc-benchmarking",
                   commit="68eaf7e to 1f6d9f4", licence="MIT"),
    "mlperf": Source(name="MLPerf Training v5.1", repository="mlcommons/training_results_v5.1",
                     commit="441d65f4", licence="Apache-2.0", for_checks=True),
    "primus": Source(name="AMD Primus", repository="AMD-AGI/Primus", commit="fd1eeabb",
                     licence="MIT", for_checks=True),
    "torchtitan": Source(name="torchtitan", repository="pytorch/torchtitan", commit="b5bcd76c6",
                         licence="BSD-3-Clause"),
})  # fmt: skip
"""By the word that ids begin with."""

_GPU = re.compile(r"(GB300|GB200|B300|B200|H200|H100|MI355X|MI350X|MI325X|MI300X|RTX ?PRO ?6000)",
                  re.IGNORECASE)  # fmt: skip
_STEP = "Training step time"
_EPOCHS = {"retinanet": 1_170_301}  # samples of an epoch (OpenImages of MLPerf)
_AGREES = 0.1


def _raw(**cells: object) -> Raw:
    known = {name: str(value) for name, value in cells.items() if value not in (None, "")}
    unknown = known.keys() - set(COLUMNS)
    if unknown:
        raise ValueError(f"no column of a gathered row is called {', '.join(sorted(unknown))}")
    return {**dict.fromkeys(COLUMNS, ""), **known}


def _tables(text: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Tables of a page, each with the headings above it, joined by slashes."""
    headings: dict[int, str] = {}
    lines = [line.strip() for line in text.splitlines()]
    at = 0
    while at < len(lines):
        heading = re.match(r"(#+)\s*(.*)", lines[at]) or re.match(r"(\*\*)(.*?)\*\*:?$", lines[at])
        if heading:
            depth = 9 if heading[1] == "**" else len(heading[1])
            headings = {level: words for level, words in headings.items() if level < depth}
            headings[depth] = heading[2]
        if not lines[at].startswith("|"):
            at += 1
            continue
        end = next((i for i in range(at, len(lines)) if "|" not in lines[i]), len(lines))
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[at:end]]
        body = [row for row in cells[1:] if not set("".join(row)) <= set("-: ")]
        yield (
            "/".join(headings.values()),
            [dict(zip(cells[0], row, strict=False)) for row in body],
        )
        at = end


def bridge_rows(text: str, file: str) -> Iterator[Raw]:
    """Rows of Megatron-Bridge's pages on systems that the gathered tables lack (GB300, B300)."""
    for headings, rows in _tables(text):
        for row in rows:
            system = row.get("System") or headings
            device = re.search(r"DGX-(GB300|B300)", system)
            speed = number(row.get("Tokens / sec / GPU", "").split("(")[0])
            if device is None or not speed:
                continue
            named = re.search(r"Model: (\S.*)$", headings)
            passes, length = float(row["GBS"]) * float(row["Sequence Length"]), row["#-GPUs"]
            kind = "LoRA" if "LoRA" in headings else "SFT" if "SFT" in headings else "train"
            yield _raw(
                source=SOURCES["bridge"].name,
                source_file=file,
                date=_release(headings),
                framework=_release(headings),
                gpu=device[1],
                gpu_canonical=device[1],
                gpus=row["#-GPUs"],
                model=row.get("Model") or (named[1] if named else ""),
                task=kind,
                precision=row["Precision"].split("(")[0].strip(),
                batch_per_gpu=row["MBS"],
                global_batch=row["GBS"],
                seq_len_or_res=row["Sequence Length"],
                **{name: _degree(row[name.upper()]) for name in ("tp", "pp", "cp", "ep")},
                sharding=f"FSDP {row['FSDP']}" if row.get("FSDP") else "",
                throughput=speed,
                unit="tokens/s",
                per="gpu",
                step_time_s=f"{passes / (speed * float(length)):.6g}",
                notes=f"VP={row['VP']}",
            )


def _release(headings: str) -> str:
    match = re.search(r"\d\d\.\d\d(\.\d\d)? NeMo Container", headings)
    return match[0] if match else ""


def _degree(text: str) -> str:
    return text if text.strip().isdigit() else "1"


def dgxc_rows(pages: Sequence[tuple[str, str, str]]) -> Iterator[Raw]:
    """Rows of dgxc-benchmarking's pages; a time that a later release repeats counts once.

    Args:
        pages: folder of the workload, release, text.
    """
    seen: set[tuple[str, ...]] = set()
    for folder, release, text in pages:
        settings = [(headings, row) for headings, rows in _tables(text) for row in rows
                    if row.get("GPUs", "").isdigit() and "MBS" in row]  # fmt: skip
        for _, rows in _tables(text):
            for title, step in ((title, row) for row in rows for title in row):
                gpus = re.match(r"(\d+)x (\S+) GPUs(?: \(GBS=(\d+)\))?", title)
                first = next(iter(step))
                if gpus is None or not step[first].startswith(_STEP):
                    continue
                key = (first, title, step[title])
                fitting = [
                    row for headings, row in settings if _is_setting(row, headings, gpus, first)
                ]
                if key in seen or len(fitting) != 1:
                    continue
                seen.add(key)
                yield _dgxc_row((folder, release), first, gpus[2], fitting[0], step[title])


def _is_setting(row: Mapping[str, str], headings: str, gpus: re.Match[str], first: str) -> bool:
    """Whether a table of settings means the column of a table of times."""
    size = row.get("Size") or row.get("Model Size") or ""
    return (
        row["GPUs"] == gpus[1]
        and size.lower() in first.lower()
        and (gpus[2] in headings)
        and gpus[3] in (None, row["GBS"])
    )


def _dgxc_row(
    page: tuple[str, str], first: str, device: str, setting: Mapping[str, str], step: str
) -> Raw:
    folder, release = page
    expert_tensor = setting.get("ETP", "1")
    return _raw(
        source=SOURCES["dgxc"].name,
        source_file=f"{folder}/README.md",
        date=release,
        framework="NeMo",
        gpu=device,
        gpu_canonical={"H100": "H100 SXM"}.get(device, device),
        gpus=setting["GPUs"],
        model=re.sub(r"\s*(BF16|FP8).*", "", first).strip(),
        task="train",
        precision="FP8" if "FP8" in first else "BF16",
        batch_per_gpu=setting["MBS"],
        global_batch=setting["GBS"],
        seq_len_or_res=setting["SeqLen"],
        **{name: _degree(setting.get(name.upper(), "1")) for name in ("tp", "pp", "cp", "ep")},
        step_time_s=step,
        notes=f"VP={setting.get('VP', '')}"
        + (f" ETP={expert_tensor}" if expert_tensor not in ("1", "NA") else ""),
    )


def mlperf_row(folder: str, system: str, log: str) -> Raw | None:
    """The row of one result of MLPerf Training v5.1, from the log of a run; None without a time.

    Args:
        folder: of the results of a benchmark on a system.
        system: text of the system's JSON file.
        log: text of `result_1.txt`.
    """
    facts = json.loads(system)
    name = folder.rpartition("/")[2]
    logged, speeds, step_s = _logged(log)
    gpu = str(facts["accelerator_model_name"])
    device = _GPU.search(gpu)
    batch, passes = logged.get("global_batch_size"), logged.get("gradient_accumulation_steps", 1)
    if not step_s and speeds and batch:
        step_s = float(batch) / median(speeds[1:] or speeds)
    if not step_s or device is None:
        return None
    nodes, each = (int(str(facts[key]).split()[0]) for key in
                   ("number_of_nodes", "accelerators_per_node"))  # fmt: skip
    sizes = {key: _config(log, f"{word}_parallel_size") or "1" for key, word in
             (("tp", "tensor_model"), ("pp", "pipeline_model"), ("cp", "context"))}  # fmt: skip
    return _raw(
        source=SOURCES["mlperf"].name,
        source_file=folder,
        date="2025-11",
        framework=facts.get("framework", ""),
        gpu=gpu,
        gpu_canonical={"H100": "H100 SXM"}.get(device[1].upper(), device[1].upper()),
        gpus=nodes * each,
        gpus_per_node=each,
        model=name,
        task="train",
        precision=_low_precision(log),
        batch_per_gpu=_config(log, "micro_batch_size"),
        global_batch=batch,
        seq_len_or_res=logged.get("max_sequence_length", ""),
        grad_accum=int(float(passes)),
        step_time_s=f"{step_s:.6g}",
        notes=_adapters(str(facts.get("host_networking", ""))),
        throughput_check=_check(name, log, float(batch or 0) / step_s),
        **sizes,
    )


def _check(name: str, log: str, speed: float) -> str:
    """Whether samples a second agree with how long the run's epochs took, where it has epochs."""
    if name not in _EPOCHS:
        return "not in epochs"
    starts, stops = (
        map(int, re.findall(rf'"time_ms": (\d+), [^{{}}]*"key": "epoch_{end}"', log))
        for end in ("start", "stop")
    )
    pairs = zip(starts, stops, strict=False)
    whole = [1e-3 * (end - start) for start, end in pairs][:-1]  # the last one may be cut short
    if not whole:
        return "unclear: no whole epoch"
    ratio = speed * median(whole) / _EPOCHS[name]
    return "agrees with epochs" if abs(ratio - 1) < _AGREES else f"unclear (ratio {ratio:.2f})"


def _adapters(text: str) -> str:
    """Adapters of a node that carry its training, such as `8x400Gb/s`, without those of storage."""
    part = next((part for part in re.split(r"[,+]", text) if "Compute" in part), text)
    match = re.search(r"(\d+)x[^,]*?(\d+) ?Gb/s", part)
    return f"network {match[1]}x{match[2]} Gb/s" if match else ""


def _logged(log: str) -> tuple[dict[str, Any], list[float], float]:
    """Single values of a log, samples a second of its blocks, median seconds of a step."""
    values: dict[str, Any] = {}
    speeds, steps = [], []
    for line in re.findall(r":::MLLOG (\{.*\})", log):
        try:
            event = json.loads(line)
        except ValueError:
            continue  # another rank wrote into the line
        if event["key"] == "tracked_stats" and isinstance(event["value"], dict):
            speeds += [event["value"][key] for key in ("throughput",) if key in event["value"]]
            steps += [event["value"][key] for key in ("train_step_time",) if key in event["value"]]
        else:
            values.setdefault(event["key"], event["value"])
    return values, speeds, median(steps[1:] or steps) if steps else 0.0


def _config(log: str, name: str) -> str:
    """A whole number that a run's printed config has; empty where none is printed."""
    match = re.search(rf"(?m)^(?:\s*\d+:)?\s*{name}: (\d+)\s*$", log)
    return match[1] if match else ""


def _low_precision(log: str) -> str:
    """`NVFP4` or `FP8` where a run's printed config says so."""
    if re.search(r"(?m)\bfp4: true\b", log):
        return "NVFP4"
    return "FP8" if re.search(r"(?m)\bfp8: (true|e4m3|hybrid)\b", log) else ""


def small_rows() -> Iterator[Raw]:
    """Rows of AMD's Primus and of torchtitan, whose pages have few."""
    page = "docs_deprecated/tech_blogs/projection/projection.md"
    # Passes of a step, and blocks that are computed again, are those of examples/megatron/configs.
    sharded: dict[str, object] = {"sharding": "FSDP 64", "act_ckpt": "full"}
    staged: dict[str, object] = {"pp": 4, "ep": 8, "notes": "VP=2"}
    plain: dict[str, object] = {}
    for gpu, model, precision, micro, passes, more, speed in (
        ("MI325X", "Llama 3.1 8B", "FP8", 2, 4, plain, 16_186),
        ("MI325X", "Llama 3.1 70B", "FP8", 4, 4, sharded, 1_726),
        ("MI325X", "Llama 3.1 70B", "BF16", 1, 4, sharded, 1_174),
        ("MI355X", "Mixtral 8x22B", "BF16", 2, 32, staged, 3_534),
    ):
        whole = micro * passes * 64 // (4 if more is staged else 1)
        yield _raw(
            source=SOURCES["primus"].name, source_file=page, date="2026-03-30",
            framework="Primus", gpu=gpu, gpu_canonical=gpu, gpus=64, gpus_per_node=8,
            model=model, task="train", precision=precision, batch_per_gpu=micro,
            global_batch=whole, seq_len_or_res=8192, throughput=speed, unit="tokens/s",
            per="gpu", step_time_s=f"{whole * 8192 / (speed * 64):.6g}",
            **{"tp": 1, "pp": 1, "cp": 1, "ep": 1, **more},
        )  # fmt: skip
    for nodes, speed, gib in ((4, 10_938, 47.96), (8, 10_753, 46.97)):
        yield _raw(
            source=SOURCES["torchtitan"].name,
            source_file="benchmarks/llama3-8b_h200_202506_trainy-whitefiber.md", date="2025-06",
            framework="torchtitan", gpu="H200", gpu_canonical="H200", gpus=8 * nodes,
            gpus_per_node=8, model="Llama 3.1 8B", task="train",
            precision="float8 tensorwise", batch_per_gpu=2, global_batch=16 * nodes,
            seq_len_or_res=8192, tp=1, pp=1, cp=1, ep=1,
            sharding=f"FSDP {8 * nodes}", act_ckpt="selective", compile="True", throughput=speed,
            unit="tokens/s", per="gpu", step_time_s=f"{2 * 8192 / speed:.6g}", peak_mem_gib=gib,
            notes="network 8x400 Gb/s",
        )  # fmt: skip
