"""Compare ways to know kernels of a chip that nobody here owns; writes results.json.

python -m scripts.studies.chips.run
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.catalog import DEVICES
from scripts.fits import nccl
from scripts.published.kernels import wide_table
from scripts.studies.chips.held_out import (
    Kernels,
    errors,
    fit_formula,
    fit_trees,
    formula_us,
    trees_us,
)
from scripts.studies.chips.own import own_steps
from scripts.studies.chips.today import (
    CHIPS,
    attention_ops,
    chip_of,
    expert_ops,
    kernel_us,
    model_without,
    product_ops,
)
from scripts.studies.kit.results import add_result, read_results

RESULTS = Path(__file__).parent / "results.jsonl"
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
_LEAST_SIDE = 256  # of products as in training
_SHAPE, _ALL = range(2, 8), range(2, 11)  # features of the shape alone, and with the chip's
WAYS = ("today", "formula", "trees", "trees, shapes alone")


def _chip_names() -> Mapping[str, list[str]]:
    """All devices of the catalogue that are the chip of a device in the tables."""
    named: dict[str, list[str]] = {}
    for device, chip in CHIPS.items():
        own = DEVICES[device]
        named.setdefault(chip, []).extend(
            name
            for name, other in DEVICES.items()
            if not other.is_cpu
            and other.generation == own.generation
            and other.find("multiprocessors") == own.find("multiprocessors")
        )
    return {chip: sorted(set(names)) for chip, names in named.items()}


def _tables() -> Mapping[str, Kernels]:
    """Measured kernels by kind, in bfloat16."""
    products = wide_table("products").query("format == 'bf16' and software == 'sglang'")
    attention = wide_table("attention").query("format == 'bf16' and software == 'vllm'")
    experts = wide_table("experts").query(
        "format == 'bf16' and software == 'trtllm' and expert_parallel == 1"
        " and routing == 'balanced' and tokens * topk >= 16 * experts"
    )
    large = products[["m", "n", "k"]].min(axis=1) >= _LEAST_SIDE
    parts = {
        "products": (product_ops, products[large]),
        "narrow products": (product_ops, products[~large]),
        "attention": (attention_ops, attention),
        "experts": (expert_ops, experts),
    }
    return {
        kind: Kernels(ops(rows), {name: rows[name].to_numpy() for name in CHIPS})
        for kind, (ops, rows) in parts.items()
    }


def _known(kernels: Kernels, device: str) -> BoolArray:
    known: BoolArray = np.isfinite(kernels.us[device])
    return known


def held_out(kind: str, kernels: Kernels) -> list[dict[str, Any]]:
    """Errors on each device by each way, its chip left out."""
    features = {name: kernels.features(name) for name in CHIPS}
    rows = []
    for chip, names in _chip_names().items():
        others = [name for name in CHIPS if chip_of(name) != chip]
        known = {name: _known(kernels, name) for name in CHIPS}
        x = np.concatenate([features[name][known[name]] for name in others])
        us = np.concatenate([kernels.us[name][known[name]] for name in others])
        weights = fit_formula(x, us)
        trees = {what: fit_trees(x, us, weights, what) for what in (_SHAPE, _ALL)}
        model = model_without(names)
        for name in (name for name in CHIPS if chip_of(name) == chip):
            mine = known[name]
            if not mine.any():
                continue
            own, measured = features[name][mine], kernels.us[name][mine]
            said = {
                "today": kernel_us(kernels.ops, name, model)[mine],
                "formula": formula_us(weights, own),
                "trees": trees_us(trees[_ALL], own, weights, _ALL),
                "trees, shapes alone": trees_us(trees[_SHAPE], own, weights, _SHAPE),
            }
            shipped = errors(kernel_us(kernels.ops, name)[mine], measured)
            errors_of = {way: errors(us, measured) for way, us in said.items()}
            rows.append({"kind": kind, "device": name, "count": len(measured), "shipped": shipped,
                         **errors_of})  # fmt: skip
    return rows


def formats() -> list[dict[str, Any]]:
    """How many times as fast as in bfloat16 products in other formats are, casts included."""
    wide = wide_table("products")
    shape = ["m", "n", "k"]
    base = wide.query("format == 'bf16' and software == 'sglang'").set_index(shape)
    rows = []
    others = wide.query("format != 'bf16'").groupby(["format", "software"])
    for (name, software), timed in others:
        part = timed.set_index(shape)
        part = part[part.index.isin(base.index)]
        least = part.index.to_frame().min(axis=1)
        for low, high in ((256, 1024), (1024, 4096), (4096, 1 << 20)):
            some = part[(least >= low) & (least < high)]
            for device in CHIPS:
                gain = (base.loc[some.index, device] / some[device]).dropna()
                if len(gain):
                    rows.append({
                        "format": name, "software": software, "device": device, "least": low,
                        "count": len(gain), "median": round(float(gain.median()), 3),
                    })  # fmt: skip
    return rows


def networks() -> list[dict[str, Any]]:
    """Errors of collectives before and after, as fitted and left out."""
    rows = nccl.collectives()
    us, before = rows["us"].to_numpy(), nccl.seconds(rows, nccl.BEFORE.__getitem__)
    results: list[dict[str, Any]] = []
    for link, some in rows.groupby("link").indices.items():
        fitted = nccl.fit_link(rows.iloc[some])
        after = nccl.seconds(rows.iloc[some], {link: fitted}.__getitem__)
        results.append({"link": link, "what": "before", "count": len(some),
                      "errors": nccl.errors(before[some], us[some])})  # fmt: skip
        results.append({"link": link, "what": "fitted", "count": len(some),
                      "errors": nccl.errors(after, us[some])})  # fmt: skip
    parts: dict[tuple[str, str], list[tuple[FloatArray, FloatArray]]] = {}
    for link, what, out in nccl.folds(rows):
        fitted = nccl.fit_link(rows[(rows["link"] == link).to_numpy() & ~out])
        said = nccl.seconds(rows[out], {link: fitted}.__getitem__)
        parts.setdefault((link, what), []).append((said, us[out]))
    for (link, what), pieces in parts.items():
        said, measured = (np.concatenate(piece) for piece in zip(*pieces, strict=True))
        results.append({"link": link, "what": f"{what} left out", "count": len(said),
                      "errors": nccl.errors(said, measured)})  # fmt: skip
    return results


def main() -> None:
    """Run the parts that the results lack."""
    done = {(row["part"], row.get("kind")) for row in read_results(RESULTS)}

    def add(part: str, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            add_result(RESULTS, {"part": part, **row})

    tables = _tables()
    for kind, kernels in tables.items():
        if ("held_out", kind) not in done:
            add("held_out", held_out(kind, kernels))
    others: Mapping[str, Callable[[], Iterable[dict[str, Any]]]] = {
        "own": lambda: map(asdict, own_steps()),
        "formats": formats,
        "networks": networks,
    }
    known = {part for part, _ in done}
    for part, make in others.items():
        if part not in known:
            add(part, make())


if __name__ == "__main__":
    main()
