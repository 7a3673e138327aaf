"""Simulate an epoch of the paper's models on every instance of the catalogue: writes rented.csv.

    python -m scripts.studies.stalls.rented

Nobody here has these machines: a PyTorch model's training step is read as a graph
(driple.graph.torch.torch_graph), and simulated on every instance, alone and in pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from driple.api.planning import plan
from driple.jobs.pytorch.workloads import MACRO, pytorch_workload_named
from scripts.studies.kit.pictures import plain
from scripts.studies.kit.tables import least, read_rows, write_rows

# Instances of the paper, and their successors.
FAMILIES = ("p4d", "p3", "p3dn", "p2", "p4de", "p5", "p5en", "g4dn.2xlarge", "g4dn.12xlarge")
FILE = Path(__file__).parent / "rented.csv"
COLOURS = {"p2": "#9aa5b1", "g4dn": "#e0a458", "p3": "#3b6ea8", "p4": "#1f3a5f", "p5": "#b5542d"}

# Cost in $, hours, and percent that the exchange of gradients adds, by model and instance.
Offers = Mapping[str, Mapping[str, tuple[float, float, float]]]


def offer_rows(models: Iterable[str]) -> list[dict[str, object]]:
    """Epochs of models on every instance, alone and in pairs, at the newest prices."""
    rows: list[dict[str, object]] = []
    for model in models:
        workload = pytorch_workload_named(model)
        result = plan(
            model, samples=workload.samples, instances=FAMILIES, machines=(1, 2), schemes=("ddp",),
            vary=(),
        )  # fmt: skip
        for offer in sorted(result.offers, key=lambda one: one.name):
            if offer.instance is None or (offer.machines > 1 and offer.instance.num_devices == 1):
                continue
            name = offer.instance.name
            rows.append(
                {
                    "instance": name if offer.machines == 1 else f"{name}*{offer.machines}",
                    "model": model,
                    "epoch_cost": f"{offer.cost:.6g}" if offer.cost else "",
                    "epoch_h": f"{offer.training_s / 3600:.6g}",
                    "exchange_pct": f"{offer.communication_pct or 0.0:.4g}",
                }
            )
    return rows


def read_offers() -> Offers:
    """Stored epochs, by model and instance."""
    offers: dict[str, dict[str, tuple[float, float, float]]] = {}
    for row in read_rows(FILE):
        values = (float(row[name] or "nan") for name in ("epoch_cost", "epoch_h", "exchange_pct"))
        cost, hours, adds = values
        offers.setdefault(row["model"], {})[row["instance"]] = (cost, hours, adds)
    return offers


def cheapest_first(offers: Offers) -> list[str]:
    """Instances by their cost, geometric mean over the models."""
    names = next(iter(offers.values()))
    return sorted(names, key=lambda name: sum(np.log(found[name][0]) for found in offers.values()))


def picture(offers: Offers) -> Figure:
    """Time and cost of an epoch for each model; a point is an instance, a ring two of them."""
    figure, axes = plt.subplots(2, 4, figsize=(11, 5.6), squeeze=False)
    for axis, (model, instances) in zip(axes.flat, offers.items(), strict=False):
        for name, (cost, hours, _) in instances.items():
            family = next(key for key in COLOURS if name.startswith(key))
            axis.plot(hours, cost, "o", color=COLOURS[family],
                      markersize=4.5, fillstyle="none" if "*" in name else "full")  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        for scale, marks in ((axis.xaxis, (1.0,)), (axis.yaxis, (1.0, 2.0, 5.0))):
            scale.set_major_locator(LogLocator(subs=marks))
            scale.set_major_formatter(FormatStrFormatter("%g"))
            scale.set_minor_formatter(NullFormatter())
        for best, above in (
            (least({name: offer[0] for name, offer in instances.items()}), -9),
            (least({name: offer[1] for name, offer in instances.items()}), 6),
        ):
            axis.annotate(best, (instances[best][1], instances[best][0]),
                          xytext=(0, above), textcoords="offset points", fontsize=6)  # fmt: skip
        axis.set_title(model, fontsize=9)
        axis.margins(0.12)
        plain(axis)
    for axis in axes[-1]:
        axis.set_xlabel("hours of an epoch", fontsize=8)
    for axis in axes[:, 0]:
        axis.set_ylabel("$ of an epoch", fontsize=8)
    for family, colour in COLOURS.items():
        axes[0, 0].plot([], [], "o", color=colour, markersize=4.5, label=family)
    axes[0, 0].plot([], [], "o", color="black", markersize=4.5, fillstyle="none", label="two of it")
    figure.legend(fontsize=8, frameon=False, ncols=len(COLOURS) + 1, loc="upper center")
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    return figure


def main() -> None:
    """Simulate all."""
    write_rows(FILE, offer_rows(MACRO))


if __name__ == "__main__":
    main()
