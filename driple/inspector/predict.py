"""PREDICT: graph + checkpoint -> the twelve targets and the iteration time. NumPy only.

    OpGraph --build_input--> InspectorInput --scaler, inspector, scaler--> Targets -> Prediction

Entry points: `predict` for one graph, `Predictor` for inputs that are built already. No number is
clamped: `Predictor` reports what a checkpoint gives, and `predict` refuses what no job can have.
Intervals hold values that can be measured, so that those of a GPU's utilisation end at 100 %.
`driple.answers.checked` compares the step time of a prediction with a closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.cluster.setting import Setting
from driple.codec import to_dict, to_json
from driple.errors import CheckpointError, ConfigError, PredictionError
from driple.features.builder import InspectorInput, build_input
from driple.graph.cost import GraphCost
from driple.graph.opgraph import OpGraph
from driple.inspector.checkpoint import Checkpoint
from driple.inspector.forward import run_inspector
from driple.inspector.intervals import Intervals
from driple.inspector.outdated import outdated_remark
from driple.inspector.trained_on import TrainedOn
from driple.inspector.variants import torch_runner
from driple.remarks import Remark, remark
from driple.trace.targets import (
    FIGURES,
    NUM_TARGETS,
    RESOURCES,
    UNITS,
    Targets,
    impossible_numbers,
)

__all__ = ["TIMES", "Prediction", "Predictor", "beyond_training", "predict"]

FloatArray = npt.NDArray[np.float64]

_MOST_PCT = 100.0
_SHARES = [i * len(FIGURES) + FIGURES.index("burst_amount") for i, name in enumerate(RESOURCES)
           if UNITS[name] == "%"]  # fmt: skip
_DEFAULT = "default"
TIMES = [
    *(i * len(FIGURES) + k for i in range(len(RESOURCES)) for k, name in enumerate(FIGURES)
      if name != "burst_amount"),
    NUM_TARGETS,
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """Prediction of a checkpoint for one graph, with its provenance.

    Attributes:
        setting: cluster setting that the prediction holds for.
        targets: the twelve targets.
        iteration_time_s: seconds of one training iteration.
        num_nodes: nodes of the graph.
        num_edges: edges of the graph.
        num_groups: groups that the inspector saw.
        unknown_op_types: op types that the checkpoint lacks, with their number of ops.
        provenance: `measured`, `simulated` or `published` labels.
        trained_on: data set and its size, as the checkpoint records them.
        metrics: errors on the test split, as the checkpoint records them.
        level: share of true values that the intervals hold; None without intervals, and where
            they are extrapolated.
        ends: shape [13, 2], lower and upper end of each target and of the iteration time; None if
            the checkpoint was not calibrated, or the graph is too far outside of its range. Those
            of a GPU's utilisation are at most 100 %, also where the predicted value exceeds it.
        strange: how the graph is outside the range of the training graphs.
        outdated: that the checkpoint was trained with another version of the reader or of the
            features; empty if it was not.
        closed_form_s: step time by a closed form, to compare with; None if there is none.
        contradiction: that the step time contradicts the closed form; empty if it does not.
    """

    setting: str
    targets: Targets
    iteration_time_s: float
    num_nodes: int
    num_edges: int
    num_groups: int
    unknown_op_types: dict[str, int]
    provenance: str
    trained_on: TrainedOn
    metrics: dict[str, float]
    level: float | None
    ends: FloatArray | None
    strange: tuple[Remark, ...]
    outdated: Remark | None = None
    closed_form_s: float | None = None
    contradiction: Remark | None = None

    @property
    def numbers(self) -> FloatArray:
        """Shape [13], the twelve targets and the step time, as `ends` has them."""
        return np.append(self.targets.flat, self.iteration_time_s)

    @property
    def warnings(self) -> tuple[Remark, ...]:
        """Reasons why this is a guess: a contradiction or, without a comparison, strangeness.

        A graph can be unlike all that was learned and the answer still right, so that the closed
        form decides where there is one.
        """
        if self.closed_form_s is None:
            return self.strange
        return (self.contradiction,) if self.contradiction else ()

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Further remarks: strangeness that is no warning, and impossible amounts."""
        remarks = () if self.closed_form_s is None else self.strange
        if Setting.parse(self.setting).on_cpu:  # 100 % is one core of several
            return remarks
        return remarks + tuple(
            remark(
                "impossible_share",
                resource=resource,
                predicted_pct=figures["burst_amount"],
                most_pct=_MOST_PCT,
            )
            for resource, figures in self.targets.to_dict().items()
            if UNITS[resource] == "%" and figures["burst_amount"] > _MOST_PCT
        )

    def compared(self, closed_form_s: float, contradiction: Remark | None) -> Prediction:
        """The prediction with the step time of a closed form beside it.

        Where the two contradict each other no share of true values is claimed any more, and the
        intervals of all times reach to the closed form at least.

        Args:
            closed_form_s: seconds of a step.
            contradiction: if the step time contradicts it; else None.
        """
        prediction = replace(self, closed_form_s=closed_form_s, contradiction=contradiction)
        if contradiction is None or self.ends is None:
            return prediction
        values = self.numbers[TIMES]
        apart = abs(np.log(closed_form_s / self.iteration_time_s))
        ends = self.ends.copy()
        ends[TIMES, 0] = np.minimum(ends[TIMES, 0], values * np.exp(-apart))
        ends[TIMES, 1] = np.maximum(ends[TIMES, 1], values * np.exp(apart))
        ends[-1] = min(ends[-1, 0], closed_form_s), max(ends[-1, 1], closed_form_s)  # rounding
        return replace(prediction, ends=ends, level=None)

    @property
    def target_ends(self) -> FloatArray | None:
        """Ends by resource and figure, shape [4, 3, 2]; None if it was not calibrated."""
        if self.ends is None:
            return None
        return self.ends[:NUM_TARGETS].reshape(len(RESOURCES), len(FIGURES), 2)

    def to_json_dict(self) -> dict[str, object]:
        """The object that `driple predict --json` prints."""
        return {
            "setting": self.setting,
            "targets": self.targets.to_dict(),
            "units": dict(UNITS),
            "iteration_time_s": self.iteration_time_s,
            "interval": self._interval_json(),
            "warnings": [to_json(warning) for warning in self.warnings],
            "remarks": [to_json(other) for other in self.remarks],
            "closed_form_s": self.closed_form_s,
            "graph": {
                "nodes": self.num_nodes,
                "edges": self.num_edges,
                "groups": self.num_groups,
                "unknown_op_types": dict(self.unknown_op_types),
            },
            "checkpoint": {
                "setting": self.setting,
                "provenance": self.provenance,
                # The simulator's error on such clusters is over all networks, not of this graph.
                "trained_on": to_dict(replace(self.trained_on, label_error=None)),
                "metrics": dict(self.metrics),
                "outdated": to_json(self.outdated),
            },
        }

    def _interval_json(self) -> dict[str, object] | None:
        """Lower and upper end of each number, in the shape of the numbers themselves."""
        if self.ends is None or self.target_ends is None:
            return None
        pairs = self.target_ends.tolist()
        return {
            "level": self.level,
            "targets": {
                resource: dict(zip(FIGURES, row, strict=True))
                for resource, row in zip(RESOURCES, pairs, strict=True)
            },
            "iteration_time_s": self.ends[NUM_TARGETS].tolist(),
        }


class Predictor:
    """A checkpoint made ready for many predictions."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def predict_inputs(self, inputs: Sequence[InspectorInput]) -> FloatArray:
        """Targets of each input, shape [n, 12], in the order of `TARGET_NAMES`, in their units.

        Each graph is computed on its own, so the others change nothing.

        Raises:
            CheckpointError: the inspector gives something that is no finite number.
            ConfigError: an input that was built with another configuration.
            MissingExtraError: it needs torch (`variants`), which is not installed.
        """
        return self.read_and_predict(inputs)[1]

    def read_and_predict(
        self, inputs: Sequence[InspectorInput]
    ) -> tuple[list[InspectorInput], FloatArray]:
        """The scaled inputs of the inspector, and the targets of `predict_inputs`.

        The inputs include the outputs of the cost prior and are scaled.
        """
        checkpoint, law = self._checkpoint, self._checkpoint.law
        told_by_law = 0 if law is None else NUM_TARGETS
        needed = (checkpoint.config.num_features, checkpoint.config.num_context - told_by_law)
        for graph_input in inputs:
            widths = (graph_input.features.shape[1], len(graph_input.context))
            if widths != needed:
                raise ConfigError(
                    f"an input with (features, context) of lengths {widths}, the checkpoint takes "
                    f"{needed}; build it with the checkpoint's input_config"
                )
        base, joined = None, list(inputs)
        if law is not None and inputs:
            bases, joined = map(list, zip(*map(law.read_and_join, inputs), strict=True))
            base = np.stack(bases)
        read = [checkpoint.input_scaler.transform(item) for item in joined]
        run = _runner(checkpoint)
        scaled = np.zeros((len(inputs), NUM_TARGETS), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # found and reported below
            for i, graph_input in enumerate(read):
                scaled[i] = run(graph_input)
            if checkpoint.residuals is not None and read:
                scaled += checkpoint.residuals.at([item.context for item in read])
        values = checkpoint.target_scaler.inverse(scaled, base)
        if not np.isfinite(values).all():
            raise CheckpointError(
                f"the checkpoint for {checkpoint.setting} gives no finite number for this graph; "
                "use another checkpoint, or train it anew"
            )
        return read, values


def _runner(checkpoint: Checkpoint) -> Callable[[InspectorInput], npt.NDArray[np.float32]]:
    """Function from one scaled input to its scaled targets: by NumPy, or by torch if needed."""
    weights, config, num_groups = checkpoint.weights, checkpoint.config, checkpoint.num_groups
    if config.needs_torch:
        return torch_runner(weights, config, num_groups, checkpoint.num_tuned)
    return lambda item: run_inspector(weights, config, num_groups, item, checkpoint.num_tuned)


def predict(graph: OpGraph, checkpoint: Checkpoint, *, cost: GraphCost | None = None) -> Prediction:
    """Predict how the training job of the graph will use the cluster.

    Args:
        graph: graph of one worker's step.
        checkpoint: the inspector.
        cost: costs of this graph, where it is known already.

    Raises:
        GraphError: the graph has no nodes.
        CheckpointError: the inspector gives something that is no finite number.
        PredictionError: it gives a negative amount or duration, or a step that takes no time.
    """
    graph_input = build_input(graph, checkpoint.op_type_table, checkpoint.input_config, cost=cost)
    read, rows = Predictor(checkpoint).read_and_predict([graph_input])
    values = rows[0]
    targets = Targets(values.reshape(len(RESOURCES), len(FIGURES)))
    _refuse_impossible(targets, checkpoint)
    intervals, ends = checkpoint.intervals, None
    distance = 0.0 if intervals is None else intervals.distance(read[0].context)
    strange = beyond_training(
        checkpoint.trained_on,
        intervals,
        graph_input.facts,
        graph_input.unknown_op_types,
        distance,
        num_ops=graph_input.num_ops,
    )
    outdated = outdated_remark(checkpoint)
    level = None if intervals is None or intervals.is_beyond(distance) else intervals.level
    if intervals is not None:
        numbers = np.append(values, targets.iteration_time_s)
        with np.errstate(over="ignore"):
            ends = _possible(
                intervals.around(numbers, distance, warned=bool(strange)), checkpoint.setting
            )
        if not np.isfinite(ends).all():  # so far off that nothing is known
            ends = None
    return Prediction(
        setting=checkpoint.setting,
        targets=targets,
        iteration_time_s=targets.iteration_time_s,
        num_nodes=graph_input.num_nodes,
        num_edges=graph_input.num_edges,
        num_groups=graph_input.num_groups,
        unknown_op_types=graph_input.unknown_op_types,
        provenance=checkpoint.provenance,
        trained_on=checkpoint.trained_on,
        metrics=checkpoint.metrics,
        level=None if outdated else level,
        ends=ends,
        strange=tuple(strange),
        outdated=outdated,
    )


def _possible(ends: FloatArray, setting: str) -> FloatArray:
    """Ends, shape [13, 2], that a counter can show: no GPU is in use for over 100 % of a time.

    On a processor 100 % is one core of several, and nothing bounds the amount.
    """
    if Setting.parse(setting).on_cpu:
        return ends
    bounded = ends.copy()
    bounded[_SHARES] = np.minimum(ends[_SHARES], _MOST_PCT)
    return bounded


def _refuse_impossible(targets: Targets, checkpoint: Checkpoint) -> None:
    """Raise PredictionError where the numbers are outside of what any job can have."""
    impossible = impossible_numbers(targets)
    if not impossible:
        return
    instead = "" if checkpoint.preset == _DEFAULT else f"--set preset={_DEFAULT}, or "
    raise PredictionError(
        f"the inspector of preset {checkpoint.preset} for {checkpoint.setting} has no answer for "
        f"this graph: it gives {impossible[0]}"
        f"{f' and {len(impossible) - 1} more impossible numbers' if len(impossible) > 1 else ''}, "
        f"where 0 is the least; use {instead}driple predict JOB --method simulator --setting "
        f"{checkpoint.setting}"
    )


def beyond_training(
    trained_on: TrainedOn,
    intervals: Intervals | None,
    facts: Mapping[str, float],
    unknown_op_types: Mapping[str, int],
    distance: float,
    *,
    num_ops: int,
) -> list[Remark]:
    """How a graph lies outside of the range that an inspector has learned from.

    Args:
        trained_on: what the checkpoint records of its training graphs.
        intervals: intervals of the checkpoint.
        facts: statistics of the graph (`inputs.facts`).
        unknown_op_types: how many ops there are of each type that the checkpoint lacks.
        distance: distance of the graph to the nearest training graph (`Intervals.distance`).
        num_ops: ops among which the unknown ones were counted.
    """
    remarks = []
    for name, (least, most) in trained_on.range.items():
        value = facts.get(name)
        if value is not None and not least <= value <= most:
            remarks.append(
                remark("fact_beyond_training", fact=name, value=value, least=least, most=most)
            )
    if unknown_op_types:
        most_often = sorted(unknown_op_types, key=lambda name: -unknown_op_types[name])[:5]
        remarks.append(
            remark(
                "op_types_never_seen",
                num_op_types=len(unknown_op_types),
                num_ops=sum(unknown_op_types.values()),
                num_all=num_ops,
                op_types=tuple(most_often),
            )
        )
    if intervals is not None and intervals.is_far(distance):
        remarks.append(
            remark(
                "unlike_training_graphs",
                distance=float(distance),
                threshold=float(intervals.threshold),
                reach=float(intervals.reach) if intervals.is_beyond(distance) else None,
            )
        )
    return remarks
