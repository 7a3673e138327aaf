"""What the inputs allow without a network: trees on pooled group features, and labels of 0.

    python -m scripts.studies.paper_inspector.bounds     # a minute of processor time

Appends to results.jsonl. Same split, inputs and targets as the network of the preset.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor

from driple.dataset.store import read_datasets
from driple.inspector.batch import GroupBatch
from driple.training.metrics import smape_pct
from driple.training.prepare import PreparedData
from scripts.settings.shipped import measured_folders, simulated_folders
from scripts.studies.kit.results import Row, add_result
from scripts.studies.paper_inspector.run import (
    RESULTS,
    SETTINGS,
    log_median,
    prepared_for,
    scaled_paper,
)

QUANTILES = (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1)
WORST_PCT = 200  # SMAPE of a positive answer to a label of 0
FloatArray = npt.NDArray[np.float64]


def pooled(batch: GroupBatch) -> FloatArray:
    """Statistics of each graph's groups, shape [n, 68].

    Of a group: its features, neighbours, and the neighbours' mean features.
    """
    rows = []
    for x, adjacency, mask in zip(batch.x, batch.adjacency, batch.mask, strict=True):
        degree = adjacency.sum(dim=1, keepdim=True)
        around = adjacency @ x / degree.clamp(min=1)
        groups = np.concatenate([x, degree, around], axis=1)[mask.numpy() > 0]
        groups = groups.astype(np.float64)
        rows.append(
            np.concatenate(
                [
                    groups.mean(axis=0),
                    groups.std(axis=0),
                    np.quantile(groups, QUANTILES, axis=0).ravel(),
                    np.exp(groups[:, : x.shape[1]]).sum(axis=0),
                    [len(groups), float(adjacency.sum())],
                ]
            )
        )
    return np.array(rows)


def boosted(x: FloatArray, y: FloatArray, wanted: FloatArray) -> FloatArray:
    """Gradient boosting, a model for each target."""
    columns = []
    for target in y.T:
        model = HistGradientBoostingRegressor(
            max_iter=300, learning_rate=0.05, min_samples_leaf=5, max_leaf_nodes=8, random_state=0
        )
        columns.append(model.fit(x, target).predict(wanted))
    return np.stack(columns, axis=1)


def extra_trees(x: FloatArray, y: FloatArray, wanted: FloatArray) -> FloatArray:
    """Extremely randomised trees for all targets."""
    model = ExtraTreesRegressor(500, max_features=0.5, random_state=0)
    return cast(FloatArray, model.fit(x, y).predict(wanted))


def bounds(setting: str, prepared: PreparedData) -> list[Row]:
    """Errors of both kinds of trees, and by target; errors of the median label and zeros."""
    train, test = prepared.parts["train"], prepared.parts["test"]
    inputs = {name: pooled(part.batch) for name, part in prepared.parts.items()}
    median = np.broadcast_to(log_median(train.labels), test.labels.shape)
    zeros = (test.labels == 0).mean(axis=0)
    rows: list[Row] = [
        {
            "what": "targets",
            "setting": setting,
            "zero_pct": (100 * zeros).tolist(),
            "median_pct": smape_pct(median, test.labels).tolist(),
            "zeros_cost_pct": float(WORST_PCT * zeros.mean()),
        }
    ]
    scaled = train.scaled.numpy().astype(np.float64)
    for name, method in (("gradient boosting", boosted), ("extra trees", extra_trees)):
        row: Row = {"what": "trees", "setting": setting, "variant": name}
        for part_name, part in prepared.parts.items():
            outputs = method(inputs["train"], scaled, inputs[part_name])
            errors = smape_pct(prepared.target_scaler.inverse(outputs), part.labels)
            row[f"{part_name}_pct"] = float(errors.mean())
        rows.append({**row, "targets_pct": errors.tolist()})
    return rows


def main() -> None:
    """Write the results."""
    folders = measured_folders() | simulated_folders()
    for setting in SETTINGS:
        dataset = read_datasets([folders[setting]])[0]
        for row in bounds(setting, prepared_for(dataset, scaled_paper(1))):
            add_result(RESULTS, row)


if __name__ == "__main__":
    main()
