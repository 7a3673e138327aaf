"""Page from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.studies.chips.run import RESULTS, WAYS
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import markdown

KINDS = ("products", "narrow products", "experts", "attention")
_LEAST = (256, 1024, 4096)


def parts() -> Parts:
    """Tables of the page."""
    rows = read_results(RESULTS)
    held = pick(rows, part="held_out")
    return {
        "own": _own(pick(rows, part="own")),
        **{kind.replace(" ", "_"): _held_out(pick(held, kind=kind)) for kind in KINDS},
        "formats": _formats(pick(rows, part="formats")),
        "networks": _networks(pick(rows, part="networks")),
    }


def _sizes(errors: Sequence[float]) -> str:
    """Median; 90th percentile (signed median)."""
    return f"{errors[0]:.1f}; {errors[1]:.0f} ({errors[2]:+.0f})"


def _errors(ratios: Sequence[float]) -> str:
    away = 100 * (np.array(ratios) - 1)
    sizes = np.abs(away)
    return _sizes((np.median(sizes), np.quantile(sizes, 0.9), np.median(away)))


def _own(rows: Sequence[Row]) -> list[str]:
    lines = []
    for device in dict.fromkeys(row["device"] for row in rows):
        for kind in ("matmul", "attention"):
            for task in ("train", "forward"):
                some = pick(rows, device=device, kind=kind, task=task)
                if not some:
                    continue
                ways = [
                    _errors([row[name] / row["measured_s"] for row in some])
                    for name in ("inference_s", "today_s")
                ]
                what = "products" if kind == "matmul" else kind
                lines.append([f"{device}, {what}, {task}", str(len(some)), *ways])
    head = ["steps of", "steps", "kernels of inference builds", "Driple's model of kernels"]
    return markdown(head, lines, right=True)


def _held_out(rows: Sequence[Row]) -> list[str]:
    lines = [
        [row["device"], str(row["count"]), _sizes(row["shipped"]), *(_sizes(row[w]) for w in WAYS)]
        for row in rows
    ]
    means = [
        np.mean([row[way][:2] for row in rows], axis=0) for way in ("shipped", *WAYS)
    ]  # of medians and 90th percentiles
    lines.append(["mean of devices", "", *(f"{one[0]:.1f}; {one[1]:.0f}" for one in means)])
    head = ["chip left out", "kernels", "today, nothing left out", *WAYS]
    return markdown(head, lines, right=True)


def _formats(rows: Sequence[Row]) -> list[str]:
    lines = []
    for device in dict.fromkeys(row["device"] for row in rows):
        cells = []
        for name in ("fp8", "fp8-block", "nvfp4"):
            medians = [
                max((row["median"] for row in pick(rows, device=device, format=name, least=least)),
                    default=None)
                for least in _LEAST
            ]  # fmt: skip
            cells.append(" / ".join("" if one is None else f"{one:.2f}" for one in medians))
        lines.append([device, *(cell if cell.strip(" /") else "" for cell in cells)])
    return markdown(["device", "FP8", "FP8 by blocks", "NVFP4"], lines, right=True)


def _networks(rows: Sequence[Row]) -> list[str]:
    whats = ["before", "fitted", "ranks left out", "sizes left out", "device left out"]
    lines = []
    for link in dict.fromkeys(row["link"] for row in rows):
        known = {row["what"]: _sizes(row["errors"]) for row in pick(rows, link=link)}
        lines.append([link, *(known.get(what, "") for what in whats)])
    return markdown(["link", *whats], lines, right=True)
