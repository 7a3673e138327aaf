"""Compare ways to know kernels of a chip that nobody here owns; writes results.json.

    python -m scripts.studies.chips.run
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.catalog import DEVICES, device_named
from driple.simulate.calibration import GpuModel
from scripts.fits import nccl
from scripts.measured_kernels import wide_table
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

RESULTS = Path(__file__).parent / "results.json"
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
    found: BoolArray = np.isfinite(kernels.us[device])
    return found


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
            own, measured = features[name][mine], kernels.us[name][mine]
            said = {
                "today": kernel_us(kernels.ops, name, model)[mine],
                "formula": formula_us(weights, own),
                "trees": trees_us(trees[_ALL], own, weights, _ALL),
                "trees, shapes alone": trees_us(trees[_SHAPE], own, weights, _SHAPE),
            }
            shipped = errors(kernel_us(kernels.ops, name)[mine], measured)
            found = {way: errors(us, measured) for way, us in said.items()}
            rows.append({
                "kind": kind, "device": name, "count": len(measured), "shipped": shipped, **found,
            })  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def reached(kernels: Kernels) -> dict[str, dict[str, float]]:
    """What large products and weight-bound ones reach of each device's peaks."""
    found = {}
    for name in CHIPS:
        device, us = device_named(name), kernels.us[name]
        rate = kernels.ops.flops / us * 1e6 / device.half_flops
        bytes_share = kernels.ops.moved / us * 1e6 / device.bytes_per_s
        sides = kernels.ops.sides[:, :3]
        large = np.isfinite(us) & (sides.min(axis=1) >= 4096)
        thin = np.isfinite(us) & (sides[:, 0] <= 16) & (sides[:, 1:].min(axis=1) >= 8192)
        found[name] = {
            "large": round(float(np.median(rate[large])), 3) if large.any() else np.nan,
            "thin": round(float(np.median(bytes_share[thin])), 3) if thin.any() else np.nan,
        }
    return found


def formats() -> list[dict[str, Any]]:
    """How many times as fast as in bfloat16 products in other formats are, casts included."""
    wide = wide_table("products")
    shape = ["m", "n", "k"]
    base = wide.query("format == 'bf16' and software == 'sglang'").set_index(shape)
    rows = []
    for (name, software), part in wide.query("format != 'bf16'").groupby(["format", "software"]):
        part = part.set_index(shape)
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


def networks() -> dict[str, Any]:
    """Errors of collectives before and after, as fitted and left out."""
    rows = nccl.collectives()
    us, before = rows["us"].to_numpy(), nccl.seconds(rows, nccl.BEFORE.__getitem__)
    fits = {link: nccl.fit_link(rows.iloc[some]) for link, some in _by_link(rows).items()}
    after = nccl.seconds(rows, fits.__getitem__)
    tables: dict[str, Any] = {"fits": {link: asdict(fit) for link, fit in fits.items()}}
    tables["devices"] = {
        name: {
            "before": nccl.errors(before[some], us[some]),
            "after": nccl.errors(after[some], us[some]),
            "count": len(some),
        }
        for name, some in rows.groupby("device").indices.items()
    }
    parts: dict[tuple[str, str], list[tuple[FloatArray, FloatArray]]] = {}
    for link, what, out in nccl.folds(rows):
        fitted = nccl.fit_link(rows[(rows["link"] == link).to_numpy() & ~out])
        said = nccl.seconds(rows[out], {link: fitted}.__getitem__)
        parts.setdefault((link, what), []).append((said, us[out]))
    tables["left out"] = [
        {"link": link, "what": what, "errors": nccl.errors(*map(np.concatenate, zip(*found)))}  # noqa: B905
        for (link, what), found in parts.items()
    ]
    return tables


def _by_link(rows: Any) -> Mapping[str, FloatArray]:
    found: Mapping[str, FloatArray] = rows.groupby("link").indices
    return found


def main() -> None:
    """Run all comparisons."""
    results: dict[str, Any] = {"own": [asdict(step) for step in own_steps()]}
    tables = _tables()
    results["held_out"] = [row for kind, rows in tables.items() for row in held_out(kind, rows)]
    wide = wide_table("products").query("format == 'bf16' and software == 'sglang'")
    every = Kernels(product_ops(wide), {name: wide[name].to_numpy() for name in CHIPS})
    results["reached"] = reached(every)
    results["formats"] = formats()
    results["networks"] = networks()
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
