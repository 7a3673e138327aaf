"""Numbers in the sentences of docs/accuracy.md, from its tables.

tables, lines, Coverage, ... --sentences--> {place of the page: text}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from driple.estimate import LEVEL
from scripts.fits.coverage import Coverage
from scripts.fits.hosts import known_hosts
from scripts.pages.accuracy_lines import Line
from scripts.pages.accuracy_tables import KINDS, SPLIT_WORDS, beyond_chance
from scripts.studies.kit.tables import read_rows
from scripts.studies.kit.written import Table

__all__ = ["sentences"]

_OLD_GPU = "K80"  # the only generation of which no other device has rows
_LSTM_FAMILY = "gnmt, single"  # whose steps are LSTM layers, where others have a few
_SOURCE_TASKS = {
    "forward_source": "one GPU, vision, forward pass (three GPUs)",
    "ddp_source": "DDP, 2 to 320 GPUs",
    "mlperf_source": "DDP, MLPerf, 8 to 3,456 GPUs",
}


def sentences(
    tables: Mapping[str, Table],
    lines: Sequence[Line],
    covered: Sequence[Coverage],
    low_rows: Path,
) -> dict[str, str]:
    """Text for each place of the page's sentences.

    Args:
        tables: of the CSV files, by name.
        lines: of the page's table.
        covered: how intervals hold, by group.
        low_rows: rows in 8 and 4 bits with their simulated times.
    """
    judged = [miss for line in lines if line.aims_pct is not None for miss in line.misses]
    sweep = _row(tables["sweeps"], left_out="model family", source="all sources")
    idle = _row(tables["utilisation"], runs="runs below 90 %")
    smape = [int(row["smape_pct"]) for row in _rows(tables["preset_paper"])]
    old = next(
        group
        for group in covered
        if (group.by, group.group, group.held_out) == ("device", _OLD_GPU, "device")
    )
    hosts = known_hosts().factors.values()
    doubt = _row(tables["doubts"], task="train", left_out="model family")
    return {
        "aims": str(len(judged)),
        "aims_kept": str(judged.count(False)),
        "forward_inside": _inside(tables, "forward"),
        "train_inside": _inside(tables, "train"),
        "too_few": _beyond(covered, low=True),
        "too_many": _beyond(covered, low=False),
        "sweeps": sweep["sweeps"],
        "sweeps_kept": sweep["kept"],
        "idle_runs": idle["number"],
        "idle_measured": idle["measured_pct"],
        "idle_simulated": idle["simulated_pct"],
        "paper_smape": f"{min(smape)} to {max(smape)}",
        "old_gpu": _OLD_GPU,
        "old_gpu_inside": str(old.inside),
        "old_gpu_runs": str(old.runs),
        "doubt_area": doubt["area"],
        "lstm_ratio": _lstm_ratio(tables),
        "host_ratio": f"{max(hosts) / min(hosts):.1f}",
        "low_split_ratio": _low_split_ratio(low_rows),
        **{place: _source(tables, task) for place, task in _SOURCE_TASKS.items()},
    }


def _rows(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.head, cells, strict=True)) for cells in table.rows]


def _row(table: Table, **fields: str) -> dict[str, str]:
    """The only row whose cells are these."""
    (row,) = [row for row in _rows(table) if fields.items() <= row.items()]
    return row


def _inside(tables: Mapping[str, Table], task: str) -> str:
    return _row(tables["intervals"], task=task, left_out="model family")["inside_pct"]


def _source(tables: Mapping[str, Table], task: str) -> str:
    """Median and 90th percentile with a whole source left out."""
    row = _row(tables["tasks"], task=task, left_out="source")
    return f"{float(row['median_pct']):.0f} and {float(row['p90_pct']):.0f} %"


def _lstm_ratio(tables: Mapping[str, Table]) -> str:
    """Simulated over published time of steps of LSTM layers, without their family in the fit."""
    row = _row(tables["families"], family=_LSTM_FAMILY)
    return f"{1 + float(row['signed_median_pct']) / 100:.1f}"


def _beyond(covered: Sequence[Coverage], *, low: bool) -> str:
    """Schemes and devices whose share inside chance does not allow, with too few or too many."""
    texts = []
    for split in ("model", "size", "device"):
        _, groups = beyond_chance(covered, split)
        names = [
            f"{_name(group)} {100 * group.inside / group.runs:.0f} %"
            for group in groups
            if (group.inside < LEVEL * group.runs) == low
        ]
        if names:
            texts.append(f"{', '.join(names)} ({SPLIT_WORDS[split]} left out)")
    return "; ".join(texts) or "none"


def _name(group: Coverage) -> str:
    """The device, or task and scheme."""
    if group.by == "device":
        return group.group
    task = "training" if group.task == "train" else group.task
    return f"{task} on {KINDS[group.group]}"


def _low_split_ratio(low_rows: Path) -> str:
    """Simulated over published time of rows in 8 bits with tensor or pipeline parallelism."""
    ratios = [
        float(row["simulated_s"]) / float(row["published_s"])
        for row in read_rows(low_rows)
        if re.search(r"@.*\b[tp]p\d", row["setting"]) and row["precision"].startswith("fp8")
    ]
    return f"{np.median(ratios):.1f}"
