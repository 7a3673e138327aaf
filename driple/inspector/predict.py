"""PREDICT: graph + checkpoint -> the twelve targets and the iteration time. NumPy only.

    OpGraph --build_input--> InspectorInput --scaler, inspector, scaler--> Targets -> Prediction

Entry points: `predict` for one graph, `Predictor` for inputs that are built already. Nothing is
clamped: what a checkpoint says is reported as it is, and what is no number is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import CheckpointError, ConfigError
from driple.graph.opgraph import OpGraph
from driple.inputs.builder import InspectorInput, build_input
from driple.inspector.checkpoint import Checkpoint
from driple.inspector.forward import run_inspector
from driple.targets import FIGURES, NUM_TARGETS, RESOURCES, UNITS, Targets

__all__ = ["Prediction", "Predictor", "predict"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """What a checkpoint says about one graph, and where it knows it from.

    Attributes:
        setting: cluster setting that the prediction holds for.
        targets: the twelve targets.
        iteration_time_s: seconds of one training iteration.
        num_nodes: nodes of the graph.
        num_edges: edges of the graph.
        num_groups: groups that the inspector saw.
        unknown_op_types: op types the checkpoint has never seen, and how often they occur.
        provenance: `measured`, `simulated` or `published` labels.
        trained_on: data set and its size, as the checkpoint records them.
        metrics: errors on the test split, as the checkpoint records them.
    """

    setting: str
    targets: Targets
    iteration_time_s: float
    num_nodes: int
    num_edges: int
    num_groups: int
    unknown_op_types: dict[str, int]
    provenance: str
    trained_on: dict[str, object]
    metrics: dict[str, float]

    def to_json_dict(self) -> dict[str, object]:
        """The object that `driple predict --json` prints."""
        return {
            "setting": self.setting,
            "targets": self.targets.to_dict(),
            "units": dict(UNITS),
            "iteration_time_s": self.iteration_time_s,
            "graph": {
                "nodes": self.num_nodes,
                "edges": self.num_edges,
                "groups": self.num_groups,
                "unknown_op_types": dict(self.unknown_op_types),
            },
            "checkpoint": {
                "setting": self.setting,
                "provenance": self.provenance,
                "trained_on": dict(self.trained_on),
                "metrics": dict(self.metrics),
            },
        }


class Predictor:
    """A checkpoint made ready for many predictions."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def predict_inputs(self, inputs: Sequence[InspectorInput]) -> npt.NDArray[np.float64]:
        """Targets of each input, shape [n, 12], in the order of `TARGET_NAMES`, in their units.

        Each graph is computed on its own, so the others change nothing.

        Raises:
            CheckpointError: the inspector gives something that is no finite number.
            ConfigError: an input that was built with another configuration.
        """
        checkpoint = self._checkpoint
        needed = (checkpoint.config.num_features, checkpoint.config.num_context)
        for item in inputs:
            found = (item.features.shape[1], len(item.context))
            if found != needed:
                raise ConfigError(
                    f"an input with (features, context) of lengths {found}, the checkpoint takes "
                    f"{needed}; build it with the checkpoint's input_config"
                )
        scaled = np.zeros((len(inputs), NUM_TARGETS), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # found and reported below
            for i, item in enumerate(inputs):
                scaled[i] = run_inspector(
                    checkpoint.weights,
                    checkpoint.config,
                    checkpoint.num_groups,
                    checkpoint.input_scaler.transform(item),
                    checkpoint.num_tuned,
                )
        values = checkpoint.target_scaler.inverse(scaled)
        if not np.isfinite(values).all():
            raise CheckpointError(
                f"the checkpoint for {checkpoint.setting} gives no finite number for this graph; "
                "use another checkpoint, or train it anew"
            )
        return values


def predict(graph: OpGraph, checkpoint: Checkpoint) -> Prediction:
    """Predict how the training job of the graph will use the cluster.

    Raises:
        GraphError: the graph has no nodes.
        CheckpointError: the inspector gives something that is no finite number.
    """
    item = build_input(graph, checkpoint.op_type_table, checkpoint.input_config)
    values = Predictor(checkpoint).predict_inputs([item])[0]
    targets = Targets(values.reshape(len(RESOURCES), len(FIGURES)))
    return Prediction(
        setting=checkpoint.setting,
        targets=targets,
        iteration_time_s=targets.iteration_time_s,
        num_nodes=item.num_nodes,
        num_edges=item.num_edges,
        num_groups=item.num_groups,
        unknown_op_types=item.unknown_op_types,
        provenance=checkpoint.provenance,
        trained_on=checkpoint.trained_on,
        metrics=checkpoint.metrics,
    )
