"""What edges, their direction and the number of groups are worth to preset `default`.

    python scripts/structure_variants.py [--setting CPU-P1w3/ho-200M] [--threads 1] [--variants ...]

Holds out each family of a measured setting in turn (seed 0), and prints a table of errors for
decision 0014. What is done stays in runs/, and the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from shipped import ROOT, markdown, measured_folders
from torch import Tensor, nn

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import Split, family_splits
from driple.dataset.store import read_dataset
from driple.inputs import Groupings, InputConfig
from driple.inspector.ensemble import make_inspector
from driple.training.config import PRESETS, Preset
from driple.training.fit import RunOptions, fit
from driple.training.metrics import time_errors_pct
from driple.training.prepare import Part, Prepared, prepare, preset_for

SEED = 0
RESULTS = ROOT / "runs" / "structure-variants.jsonl"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A change of the preset.

    Attributes:
        num_groups: M.
        edges: `undirected` as in the preset, `directed`, or `none`.
    """

    num_groups: int = PRESETS["default"].input.num_groups
    edges: str = "undirected"


VARIANTS = {
    "as it is: M = 50, undirected": Variant(),
    "no edges": Variant(edges="none"),
    "directed edges": Variant(edges="directed"),
    "M = 20": Variant(num_groups=20),
    "M = 100": Variant(num_groups=100),
    "M = 200": Variant(num_groups=200),
}


class DirectedGCN(nn.Module):
    """Means over the groups that an edge comes from and over those it goes to, each with weights.

    h' = D_in^-1 (A^T + I) h U^T + D_out^-1 (A + I) h V^T + b.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.into = nn.Linear(in_features, out_features)
        self.out = nn.Linear(in_features, out_features, bias=False)

    def prepare(self, adjacency: Tensor) -> Tensor:
        """Both normalised adjacencies, shape [2, B, M, M]."""
        looped = adjacency + torch.eye(adjacency.shape[1])
        both = torch.stack([looped.transpose(1, 2), looped])
        return both / both.sum(dim=3, keepdim=True)

    def forward(self, h: Tensor, structure: Tensor) -> Tensor:
        """Shape [B, M, F_in] to [B, M, F_out]."""
        into: Tensor = self.into(h)
        added = torch.bmm(structure[0], into) + torch.bmm(structure[1], self.out(h))
        return added


def directed(dataset: Dataset, config: InputConfig, groupings: Groupings) -> Callable[[Part], Part]:
    """Put the directed edges between groups into the adjacencies of a part."""
    graphs = {item.workload: item.graph for item in dataset.examples}

    def change(part: Part) -> Part:
        adjacency = torch.zeros_like(part.batch.adjacency)
        for i, name in enumerate(part.workloads):
            groups = groupings.of(graphs[name], config).groups
            pairs = groups[graphs[name].edges].reshape(-1, 2)
            pairs = pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
            adjacency[i, pairs[:, 0], pairs[:, 1]] = 1.0
        return replace(part, batch=replace(part.batch, adjacency=adjacency))

    return change


def without_edges(part: Part) -> Part:
    """No group is joined to another."""
    none = torch.zeros_like(part.batch.adjacency)
    return replace(part, batch=replace(part.batch, adjacency=none))


def make_model(made: Prepared, variant: Variant) -> nn.Module:
    """The preset's inspector; its convolutions are replaced if edges have a direction."""
    model = make_inspector(made.inspector, made.num_groups)
    if variant.edges == "directed":
        for member in model.members:
            for stage in filter(None, (member.first, member.shared)):
                weight = stage.conv.linear.weight
                stage.conv = DirectedGCN(weight.shape[1], weight.shape[0])
    return model


def held_out(
    dataset: Dataset, split: Split, variant: Variant, groupings: Groupings, threads: int
) -> dict[str, list[float] | float]:
    """Train without a family; SMAPE over its targets and errors of its iteration times."""
    preset = preset_of(dataset, variant)
    change: dict[str, Callable[[Part], Part]] = {
        "directed": directed(dataset, preset.input, groupings),
        "none": without_edges,
        "undirected": lambda part: part,
    }

    options = RunOptions(threads=threads)

    def inputs() -> Prepared:
        made = prepare(dataset, split, preset, progress=options.report_inputs, groupings=groupings)
        parts = {name: change[variant.edges](part) for name, part in made.parts.items()}
        return replace(made, parts=parts)

    with tempfile.TemporaryDirectory(prefix="driple-structure-") as folder:
        fitted = fit(
            Path(folder),
            {"variant": str(variant)},
            preset.train,
            options,
            prepare=inputs,
            make_model=lambda made: make_model(made, variant),
        )
    errors = time_errors_pct(fitted.predictions["test"], fitted.prepared.parts["test"].times_s)
    return {
        "smape_pct": fitted.scores["test"].mean_smape_pct,
        "time_errors_pct": errors.tolist(),
        "seconds": sum(record.seconds for record in fitted.history),
    }


def preset_of(dataset: Dataset, variant: Variant) -> Preset:
    """Preset `default`, changed."""
    base = PRESETS["default"]
    changed = replace(
        base,
        input=replace(base.input, num_groups=variant.num_groups),
        train=replace(base.train, residuals="none"),  # structures are compared
    )
    return preset_for(dataset, changed)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--setting", default="CPU-P1w3/ho-200M", choices=measured_folders())
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=VARIANTS)
    arguments = parser.parse_args()
    dataset = read_dataset(measured_folders()[arguments.setting])
    groupings, mark = Groupings(), fingerprint(dataset)
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    done = {line["key"]: line for line in map(json.loads, lines)}
    RESULTS.parent.mkdir(exist_ok=True)
    rows = []
    for name in arguments.variants:
        found = []
        for family, split in family_splits(dataset.examples, SEED):
            key = json.dumps([mark, preset_of(dataset, VARIANTS[name]).config_hash(), name, family])
            if key not in done:
                result = held_out(dataset, split, VARIANTS[name], groupings, arguments.threads)
                done[key] = {"key": key, **result}
                with RESULTS.open("a") as file:
                    file.write(json.dumps(done[key]) + "\n")
                print(f"{name}, {family}: {result['smape_pct']:.1f} %", flush=True)
            found.append(done[key])
        times = [error for row in found for error in row["time_errors_pct"]]
        rows.append(
            [
                name,
                f"{np.mean([row['smape_pct'] for row in found]):.1f} %",
                f"{np.mean(times):.1f} / {np.median(times):.1f} %",
                f"{np.median([row['seconds'] for row in found]):.0f}",
            ]
        )
    head = [f"{arguments.setting}, families held out", "SMAPE", "iteration time, mean / median",
            "seconds"]  # fmt: skip
    print("\n".join(markdown(head, rows)))


if __name__ == "__main__":
    main()
