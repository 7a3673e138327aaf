"""Speed of simulated answers about one job: one setting, 1,024 GPUs, and 1,000 settings.

    python -m scripts.bench.sweep [--settings 1000] [--repeats 5] [--ops 3000]

The job is the stored published training step whose number of ops is nearest to `--ops`, so neither
PyTorch nor timm is needed. Every answer is that of `driple predict --method simulator`: step time,
the twelve targets, and the stated error. Settings are all combinations of batch size, device,
number of devices, links and scheme, evenly thinned out. Times are seconds of user CPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from resource import RUSAGE_SELF, getrusage

import numpy as np

import driple
from driple.cluster.setting import Setting
from driple.graph.opgraph import OpGraph
from driple.runs.step_store import StepStore, StoredStep
from driple.runs.validation.shipped import STEPS
from scripts.pages.accuracy import PUBLISHED

BATCHES = (4, 8, 16, 32)
# Devices with the links that join them within a machine.
DEVICES = {
    "V100-SXM2": ("NVLink-V100", "PCIe3"),
    "T4": ("PCIe3",),
    "A100": ("NVLink-A100", "PCIe4"),
    "A100-80G": ("NVLink-A100",),
    "A10": ("PCIe4",),
    "3090": ("PCIe4",),
    "4090": ("PCIe4",),
    "H100": ("NVLink-H100", "PCIe5"),
    "H200": ("NVLink-H100",),
    "B200": ("NVLink-B200",),
}
MACHINES, EACH = (1, 2, 4, 16, 64, 128), (1, 2, 4, 8)
BETWEEN = ("25G", "100G", "InfiniBand-HDR", "InfiniBand-NDR")
SCHEMES = ("", "@zero1", "@zero2", "@fsdp", "@hsdp")
LARGE = (
    "128x8xA100/NVLink-A100+200G",
    "128x8xA100/NVLink-A100+200G@fsdp",
    "128x8xH100/NVLink-H100+InfiniBand-NDR@hsdp",
    "128x8xH100/NVLink-H100+InfiniBand-NDR@zero1",
)


def user_s(work: Callable[[], object], repeats: int) -> float:
    """Median seconds of user CPU of some calls."""
    taken = []
    for _ in range(repeats):
        begin = getrusage(RUSAGE_SELF).ru_utime
        work()
        taken.append(getrusage(RUSAGE_SELF).ru_utime - begin)
    return statistics.median(taken)


def step_of(num_ops: int) -> StoredStep:
    """The stored training step with the number of ops that is nearest."""
    store = StepStore.open(PUBLISHED / STEPS)
    keys = [key for key in store.stored if key.task == "train" and not key.accumulates]
    return min((store.step(key) for key in keys), key=lambda step: abs(step.num_nodes - num_ops))


def setting_names() -> list[str]:
    """All clusters, without those that have one device and a scheme for several."""
    names = []
    for (device, links), machines, each, scheme in product(
        DEVICES.items(), MACHINES, EACH, SCHEMES
    ):
        if machines * each == 1:
            names += [] if scheme else [f"1x{device}"]
            continue
        if scheme == "@hsdp" and (machines == 1 or each == 1):
            continue
        within = links if each > 1 else ("",)
        between = BETWEEN if machines > 1 else ("",)
        for inner, other in product(within, between):
            joined = "+".join(filter(None, (inner, other)))
            many = f"{machines}x" if machines > 1 else ""
            names.append(f"{many}{each}x{device}/{joined}{scheme}")
    return names


def sweep(graphs: Sequence[OpGraph], settings: Sequence[Sequence[Setting]]) -> int:
    """Ask for all settings of each graph; the number of answers."""
    return sum(
        len(driple.predict(graph, list(some), method="simulator").answers)
        for graph, some in zip(graphs, settings, strict=True)
        if some
    )


def thinned(count: int) -> list[list[Setting]]:
    """So many settings, spread evenly over all combinations with a batch size; by batch size."""
    pairs = list(product(range(len(BATCHES)), setting_names()))
    places = np.unique(np.linspace(0, len(pairs) - 1, count).round().astype(int))
    by_batch: list[list[Setting]] = [[] for _ in BATCHES]
    for place in places.tolist():
        batch, name = pairs[place]
        by_batch[batch].append(Setting.parse(name))
    return by_batch


def main() -> None:
    """Print a line for each of the three."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--settings", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ops", type=int, default=3000)
    given = parser.parse_args()
    step = step_of(given.ops)
    graphs = [step.graph(batch) for batch in BATCHES]
    print(f"{step.key.job}, {step.num_nodes} ops; load {os.getloadavg()[0]:.1f}")
    ask = partial(driple.predict, graphs[0], method="simulator")
    ask("1xA100")  # loads what it needs
    for name in ("1xA100", "8xA100", *LARGE):
        print(f"{name:<46} {user_s(partial(ask, name), given.repeats):6.3f} s")
    settings = thinned(given.settings)
    count = sum(map(len, settings))
    seconds = user_s(partial(sweep, graphs, settings), max(given.repeats // 5, 1))
    print(f"{f'{count} settings and batch sizes':<46} {seconds:6.1f} s in one process")


if __name__ == "__main__":
    main()
