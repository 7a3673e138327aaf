"""Page from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.fits.measured_kernels import PARTS, REST, UPDATE
from scripts.studies.gpu_time.run import OWN, RESULTS
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import markdown

_SHORTEST_S = 3e-5  # shorter parts measure how kernels are launched
_LEAST = 5  # steps of a line
_CLOSE = 0.2
_KINDS = {
    "cifar_resnet56": "ResNet for CIFAR", "crnn": "convolutions, LSTM and CTC (CRNN)",
    "dlrm": "recommender with embedding bags", "lstm_lm": "LSTM language model",
    "convlstm": "convolutional LSTM", "wavenet": "dilated convolutions in one dimension",
    "unet": "U-Net", "pointnet": "PointNet", "dcgan": "GAN", "gpt_char": "small GPT",
    "tv_googlenet": "Inception", "inception_v4": "Inception", "ese_vovnet39b": "dense VoVNet",
    "starnet_s3": "depthwise convolutions (bfloat16)",
    "repvit_m1": "depthwise convolutions (float16)", "pit_s_224": "small vision transformers",
    "coat_lite_small": "small vision transformers", "tv_maxvit_t": "convolutions and attention",
    "whisper-small": "speech transformer", "t5-small": "T5, learned bias of attention",
    "roberta-base": "encoder of text", "mixtral-tiny": "mixture of experts",
    "qwen3-0.6b": "decoder of text", "bloom-560m": "decoder of text",
}  # fmt: skip


def cell(ratios: Sequence[float]) -> str:
    """Median ratio; median and 90th percentile of the errors."""
    values = np.array(ratios)
    middle, far = np.quantile(100 * np.abs(values - 1), [0.5, 0.9])
    return f"{np.median(values):.2f}; {middle:.0f}, {far:.0f}"


def totals(rows: Sequence[Row], name: str) -> list[float]:
    """Predicted over measured time of all kernels."""
    return [sum(row[name].values()) / row["busy_s"] for row in rows]


def by_part(rows: Sequence[Row]) -> list[str]:
    """A line for each kind of kernel."""
    lines = []
    for part in PARTS:
        known = [
            row for row in rows
            if row["measured_s"].get(part, 0.0) > _SHORTEST_S and row["now_s"].get(part, 0.0) > 0
        ]  # fmt: skip
        if part == UPDATE or len(known) < 2:
            continue
        share = np.mean([row["measured_s"].get(part, 0.0) / row["busy_s"] for row in rows])
        cells = [
            cell([row[name][part] / row["measured_s"][part] for row in known])
            for name in ("before_s", "now_s")
        ]
        called = "element-wise, copies, sums, updates" if part == REST else part.replace("_", " ")
        lines.append([called, str(len(known)), f"{share:.0%}", *cells])
    return markdown(["kernels", "steps", "of the time", "before", "now"], lines, right=True)


def by_most(rows: Sequence[Row]) -> list[str]:
    """A line for each kind of kernel that takes most of a step."""
    lines = []
    most = [max(row["measured_s"], key=row["measured_s"].get) for row in rows]
    for part in PARTS:
        mine = [row for row, one in zip(rows, most, strict=True) if one == part]
        if len(mine) >= _LEAST:
            cells = [cell(totals(mine, name)) for name in ("before_s", "now_s")]
            called = "element-wise and others" if part == REST else part.replace("_", " ")
            lines.append([called, str(len(mine)), *cells])
    return markdown(["most of the step is", "steps", "before", "now"], lines, right=True)


def own(rows: Sequence[Row]) -> list[str]:
    """A line for each kind of job."""
    kinds = [_KINDS[row["job"].rpartition(":")[2]] for row in rows]
    lines = []
    for kind in sorted(set(kinds)):
        mine = [row for row, one in zip(rows, kinds, strict=True) if one == kind]
        before, now = (totals(mine, name) for name in ("before_s", "now_s"))
        shown = [" ".join(f"{one:.2f}" for one in values) for values in (before, now)]
        close = abs(float(np.median(now)) - 1) <= _CLOSE
        lines.append([kind, str(len(mine)), *shown, "" if close else "no"])
    return markdown(["job", "steps", "before", "now", "within 20 %"], lines, right=True)


def parts() -> Parts:
    """Tables of the page."""
    rows = read_results(RESULTS)
    measured = [row for row in rows if row["where"] != OWN]
    jobs = pick(rows, where=OWN)
    tables = {"parts": by_part(measured), "most": by_most(measured), "own": own(jobs)}
    lines = []
    for where in ("H100", "H200"):
        for task in ("train", "forward"):
            mine = pick(rows, where=where, task=task)
            cells = [cell(totals(mine, name)) for name in ("before_s", "now_s")]
            lines.append([f"{where}, {task}", str(len(mine)), *cells])
    cells = [cell(totals(jobs, name)) for name in ("before_s", "now_s")]
    lines.append([OWN, str(len(jobs)), *cells])
    return {**tables, "totals": markdown(["steps of", "steps", "before", "now"], lines, right=True)}
