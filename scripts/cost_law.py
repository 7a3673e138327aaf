"""Compare what a cost law may add up, on families held out: errors of the iteration time.

    python scripts/cost_law.py [--settings CPU-P1w2/ho-200M,V100-P1w2/ho-PCIe]

Prints a table: for each choice the median error over all workloads and, after the semicolon, the
mean over families of the family's median, in percent. Without the network, which corrects the law.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from shipped import FIRST_SIMULATED, markdown, measured_folders, simulated_folders

from driple.dataset.example import Dataset
from driple.dataset.split import Split, family_splits
from driple.dataset.store import read_datasets
from driple.graph.opgraph import OpGraph
from driple.inputs import InputConfig
from driple.inputs.costs import cost_context
from driple.inputs.features import context_vector
from driple.inspector.law import LAW_NAMES
from driple.inspector.scaling import label_floor
from driple.opcost import CONVOLUTION_KINDS, PRODUCTS, cost_of_graph
from driple.training.costlaw import RIDGE_LABELS, fit_cost_law
from driple.training.metrics import time_errors_pct

SETTINGS = (*measured_folders(), FIRST_SIMULATED, "2080Ti-P2w2/he-40G")
NAMES = InputConfig(features="costs", context="costs").context_names
Names = tuple[tuple[str, ...], ...]

FLOPS = tuple((f"flops_{kind}",) for kind in PRODUCTS)
LEFT = tuple((f"left_elements_{kind}",) for kind in CONVOLUTION_KINDS)
MOVED = tuple((f"bytes_{kind}",) for kind in CONVOLUTION_KINDS)
# The law of decision 0014.
BEFORE: Names = (
    *FLOPS,
    ("bytes_normalisation",), ("bytes_pooling",), ("bytes_softmax",), ("bytes_elementwise",),
    tuple(f"executions_{kind}" for kind in CONVOLUTION_KINDS),
    ("executions_matmul",), ("executions_normalisation",), ("executions_elementwise",),
    ("executions_control",), ("executions_lists",),
    ("sent_bytes",), ("received_bytes",), ("sent_tensors",), ("received_tensors",),
    ("accumulated_bytes",), ("accumulators",),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A law to try."""

    words: str
    names: Names
    ridge_labels: float = RIDGE_LABELS


def without(names: Names, *entries: str) -> Names:
    """Sums but those that begin with these entries."""
    return tuple(some for some in names if some[0] not in entries)


BY_NODES: Names = (
    *without(BEFORE, "executions_control", "executions_lists"),
    *LEFT,
    ("num_nodes",),
    ("repeated_executions",),
)
CHOICES = (
    Choice(words="as in decision 0014", names=BEFORE, ridge_labels=30),
    Choice(words="and patches of convolutions", names=(*BEFORE, *LEFT), ridge_labels=30),
    Choice(
        words="and nodes, repetitions in place of control and lists",
        names=BY_NODES,
        ridge_labels=30,
    ),
    Choice(
        words="and bytes of convolutions",
        names=(*BY_NODES, *MOVED),
        ridge_labels=30,
    ),
    Choice(words="taken: FLOPs of convolutions together, ridge of 15", names=LAW_NAMES),
    Choice(words="taken, ridge of 8", names=LAW_NAMES, ridge_labels=8),
    Choice(words="taken, without patches", names=without(LAW_NAMES, *(one for (one,) in LEFT))),
    Choice(
        words="taken, FLOPs of convolutions apart",
        names=(*FLOPS[: len(CONVOLUTION_KINDS)], *without(LAW_NAMES, "flops_convolution")),
    ),
    Choice(words="taken, no matmul executions", names=without(LAW_NAMES, "executions_matmul")),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """A data set with its graphs' contexts."""

    dataset: Dataset
    contexts: npt.NDArray[np.float64]
    splits: Sequence[Split]

    @classmethod
    def of(cls, dataset: Dataset) -> Bench:
        """Read no more of the graphs than the law does; op types do not count."""
        contexts = [
            np.concatenate([context_vector(g, {}), cost_context(g, cost_of_graph(g))])
            for g in (example.graph for example in dataset.examples)
            if isinstance(g, OpGraph)
        ]
        splits = [split for _, split in family_splits(dataset.examples, 0)]
        return cls(dataset=dataset, contexts=np.array(contexts), splits=splits)

    def errors(self, choice: Choice) -> tuple[float, float]:
        """Median over workloads, and mean over families of their medians."""
        labels, times_s = self.dataset.targets(), self.dataset.iteration_times_s()
        found = []
        for split in self.splits:
            seen = labels[split.train]
            law = fit_cost_law(
                self.contexts[split.train],
                seen,
                label_floor(seen),
                NAMES,
                law_names=choice.names,
                ridge_labels=choice.ridge_labels,
            )
            told = np.exp(law.log_targets(self.contexts[split.test]))
            found.append(time_errors_pct(told, times_s[split.test]))
        middle = float(np.median(np.concatenate(found)))
        return middle, float(np.mean([np.median(errors) for errors in found]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--settings", default=",".join(SETTINGS), help="which, with commas")
    asked = parser.parse_args().settings.split(",")
    folders = {**measured_folders(), **simulated_folders()}
    if unknown := sorted(set(asked) - set(folders)):
        raise SystemExit(f"--settings: {unknown[0]} is none of {', '.join(folders)}")
    benches = [Bench.of(dataset) for dataset in read_datasets(folders[name] for name in asked)]
    rows = []
    for choice in CHOICES:
        errors = [bench.errors(choice) for bench in benches]
        cells = [f"{middle:.1f} ; {family:.1f}" for middle, family in errors]
        middle, family = np.mean(errors, axis=0)
        rows.append([choice.words, *cells, f"{middle:.1f} ; {family:.1f}"])
    print("\n".join(markdown(["the law adds up", *asked, "mean"], rows)))


if __name__ == "__main__":
    main()
