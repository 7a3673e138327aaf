"""What to rent, in page.md: simulated epochs of the paper's models, and its findings.

Nobody here has these machines: a PyTorch model's training step is read as a graph
(driple.stalls.traced), and simulated on every instance of the catalogue, alone and in pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from pathlib import Path

import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from driple.simulate.device import Calibration, shipped_calibration
from driple.simulate.job import Job
from driple.stalls.cost import Offer, recommendation, simulated_offer
from driple.stalls.instances import Instance, read_instances
from driple.stalls.traced import graph_of_workload
from driple.stalls.workloads import MACRO, workload_named
from scripts.studies.kit.pictures import plain, save
from scripts.studies.kit.tables import markdown

__all__ = ["rented_section"]

BERT, LARGE, SMALL = "bert-large", ("resnet50", "vgg11", "bert-large"), "shufflenet"
COLOURS = {"p2": "#9aa5b1", "g4dn": "#e0a458", "p3": "#3b6ea8", "p4": "#1f3a5f", "p5": "#b5542d"}
PICTURE = "stalls/rented.png"

Offers = Mapping[str, Offer]  # of a model, by instance


def offers_of(
    model: str,
    calibration: Calibration,
    known: Mapping[str, Instance],
    *,
    batch_size: int | None = None,
) -> Offers:
    """Epochs of a model on every instance, alone and in pairs, at the newest prices."""
    workload = workload_named(model)
    size = batch_size or workload.batch_size
    job = Job(graph_of_workload(workload, size))
    found = {}
    for item in known.values():
        for count in (1, 2) if item.devices > 1 else (1,):
            offer = simulated_offer(
                job, item, calibration, batch_size=size, samples=workload.samples, machines=count
            )
            found[offer.name] = offer
    return found


def rented_section(docs: Path, models: tuple[str, ...] = MACRO) -> list[str]:
    """Tables, the picture, and what the paper found beside what comes out here."""
    calibration, known = shipped_calibration(), read_instances()
    offers = {model: offers_of(model, calibration, known) for model in models}
    save(picture(offers), docs / PICTURE)
    names = sorted(offers[models[0]], key=lambda name: sum(
        np.log(offers[model][name].epoch_cost or np.nan) for model in models
    ))  # fmt: skip
    lines = [
        "## Which instance to rent (sections V-A to V-C)", "",
        "Simulated: nobody here has these machines. `driple stalls cost MODEL --machines 1,2` "
        "prints the same for each, with what is assumed (precision, optimizer, batch per device, "
        "samples per epoch) and, for each row, the error on published runs like it: same scheme, "
        "device, number of devices, precision and kind of network, or \"not checked\" where there "
        "are none, as for BERT. Here: float32, SGD with momentum, batches of 32 images of 224 "
        "pixels, or of 4 texts of 128 tokens for BERT, on each device; no stalls of CPU and disk. "
        "An instance is refused if parameters, gradients, optimizer states and the largest tensor "
        "exceed a device's memory; one that is not refused may still be too small. A model that "
        "uses `torch.autocast` is priced in the precision of each op. Of two instances (`*2`) the "
        "network is the slowest link.",
        "", f"![time and cost of an epoch]({PICTURE})", "",
    ]  # fmt: skip
    for title, cell in (
        ("$ of an epoch, cheapest instances first", lambda offer: f"{offer.epoch_cost:.2f}"),
        ("Hours of an epoch", lambda offer: f"{offer.epoch_s / 3600:.3g}"),
        ("What the exchange of gradients adds to an iteration",
         lambda offer: f"{offer.communication_pct:.0f} %"),
    ):  # fmt: skip
        rows = [[name, *(cell(offers[model][name]) for model in models)] for name in names]
        lines += [f"**{title}**", "", *markdown(["instance", *models], rows), ""]
    lines += ["**What `driple stalls cost` recommends**", ""]
    for model, found in offers.items():
        lines.append(f"- {model}: {recommendation([*found.values()])}")
    if set(models) == set(MACRO):
        lines += ["", *findings(offers, offers_of(BERT, calibration, known, batch_size=8))]
    return [*lines, ""]


def findings(offers: Mapping[str, Offers], double: Offers) -> list[str]:
    """What the paper says of its measurements, beside the simulation.

    Args:
        offers: of all models.
        double: BERT with twice the batch.
    """
    small = [model for model in offers if model not in LARGE]

    def cost(model: str, name: str) -> float:
        return offers[model][name].epoch_cost or np.nan

    def adds(model: str, name: str) -> float:
        return offers[model][name].communication_pct or 0.0

    def cheapest(model: str, family: str) -> str:
        return min((name for name in offers[model] if name.startswith(family)),
                   key=lambda name: cost(model, name))  # fmt: skip

    def of(some: Sized, models: Sized) -> str:
        return f"{len(some)} of {len(models)} models"

    def count(models: list[str], family: str, name: str) -> str:
        right = [model for model in models if cheapest(model, family) == name]
        return of(right, models)

    waits = {
        model: 100 * (found["p3.8xlarge*2"].iteration_s / found["p3.8xlarge"].iteration_s - 1)
        for model, found in offers.items()
    }
    most = max(waits, key=lambda model: waits[model])
    others = max(wait for model, wait in waits.items() if model != "alexnet")
    slower = [
        model
        for model in small
        if offers[model]["p2.16xlarge"].epoch_s > offers[model]["p2.8xlarge*2"].epoch_s
    ]
    less = [model for model in offers if adds(model, "p3.16xlarge") < adds(model, "p3.8xlarge")]
    on_p2 = [
        model
        for model in offers
        if cost(model, cheapest(model, "p2")) < cost(model, cheapest(model, "p3"))
    ]
    same = np.median([found["p3dn.24xlarge"].epoch_s / found["p3.16xlarge"].epoch_s
                      for found in offers.values()])  # fmt: skip
    bert, larger = offers[BERT]["p3.16xlarge"], double["p3dn.24xlarge"]
    rows = [
        ["V-A", "p2.xlarge is the cheapest P2 of the small models", "all",
         count(small, "p2", "p2.xlarge")],
        ["V-A", "p2.16xlarge is slower than two p2.8xlarge", "all small models",
         of(slower, small)],
        ["V-A", "ResNet50 on P2: what the interconnect adds", "750 %",
         f"{adds('resnet50', 'p2.16xlarge'):.0f} %"],
        ["V-A", "ResNet50 on P2: an epoch", "$41", f"${cost('resnet50', 'p2.16xlarge'):.1f}"],
        ["V-B", "p3.2xlarge is the cheapest P3", "all", count([*offers], "p3", "p3.2xlarge")],
        ["V-B", "p3.16xlarge has lower interconnect stalls than p3.8xlarge",
         "most, the small ones above all", of(less, offers)],
        ["V-B", "two p3.8xlarge: network stall, the largest", "500 %",
         f"{waits[most]:.0f} % ({most})"],
        ["V-B", "time on p3dn.24xlarge over that on p3.16xlarge", "about 1", f"{same:.2f}"],
        ["V-B", "BERT-large on p3.16xlarge, an epoch in batches of 4", "$2.1",
         f"${bert.epoch_cost:.2f}"],
        ["V-B", "the same on p3dn.24xlarge in batches of 8", "$2.37",
         f"${larger.epoch_cost:.2f}"],
        ["V-B", "and how much less time that takes", "12.8 %",
         f"{100 * (1 - larger.epoch_s / bert.epoch_s):.1f} %"],
        ["V-C", "cheaper on P2 than on P3", f"{SMALL} and the like", ", ".join(on_p2) or "none"],
    ]  # fmt: skip
    return ["**What the paper found, and what the simulation says of it**", "",
            *markdown(["section", "finding", "paper", "simulated"], rows), "",
            "Where they differ: the K80 of P2 share PCIe, a p3.8xlarge may be given half of a "
            "crossbar, and no published ring tells the simulator of either. The paper's AlexNet "
            f"has 9.63 million parameters (Table II), ours {parameters('alexnet') / 1e6:.1f}; "
            f"without it the largest network stall is {others:.0f} %, with four devices on each "
            "side of a link of 10 Gbit/s. It tells neither the length of BERT's texts nor its "
            f"precision (here {workload_named(BERT).length} tokens, single)."]  # fmt: skip


def parameters(model: str) -> int:
    """How many a model has."""
    with torch.device("meta"):
        return sum(one.numel() for one in workload_named(model).build().parameters())


def picture(offers: Mapping[str, Offers]) -> Figure:
    """Time and cost of an epoch for each model; a point is an instance, a ring two of them."""
    figure, axes = plt.subplots(2, 4, figsize=(11, 5.6), squeeze=False)
    for axis, (model, found) in zip(axes.flat, offers.items(), strict=False):
        for name, offer in found.items():
            family = next(key for key in COLOURS if name.startswith(key))
            axis.plot(offer.epoch_s / 3600, offer.epoch_cost, "o", color=COLOURS[family],
                      markersize=4.5, fillstyle="none" if "*" in name else "full")  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        for scale, marks in ((axis.xaxis, (1.0,)), (axis.yaxis, (1.0, 2.0, 5.0))):
            scale.set_major_locator(LogLocator(subs=marks))
            scale.set_major_formatter(FormatStrFormatter("%g"))
            scale.set_minor_formatter(NullFormatter())
        for best, above in (
            (min(found.values(), key=lambda offer: offer.epoch_cost or np.inf), -9),
            (min(found.values(), key=lambda offer: offer.epoch_s), 6),
        ):
            axis.annotate(best.name, (best.epoch_s / 3600, best.epoch_cost or np.nan),
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
