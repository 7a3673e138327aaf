"""Convert a data set and a split to tensors, once before the first epoch.

    training graphs -> op-type table        all graphs -> inputs -> scaled, padded, stacked
    training labels -> target scaler        all labels -> scaled

Table and scalers are fitted to the training part only. An op type outside of it is encoded as 0, as
for a user's graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset, Example
from driple.dataset.split import Split
from driple.errors import DatasetError
from driple.features import (
    GroupedGraph,
    Groupings,
    InspectorInput,
    build_input,
    fit_op_type_table,
    proportional_num_groups,
)
from driple.features.config import InputConfig
from driple.inspector.batch import GroupBatch, make_batch
from driple.inspector.config import InspectorConfig
from driple.inspector.cost_prior import CostPrior
from driple.inspector.scaling import InputScaler, TargetScaler, label_floor
from driple.training.config import Preset
from driple.training.cost_prior import fit_cost_law

FloatArray = npt.NDArray[np.float64]

__all__ = [
    "PARTS",
    "Encoding",
    "PreparedData",
    "PreparedPart",
    "input_config_for",
    "prepare",
    "preset_for",
    "select",
    "split_examples",
]

PARTS = ("train", "validation", "test")


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedPart:
    """One part of the split, ready for the model.

    Attributes:
        workloads: names, in the order of all rows below.
        batch: all graphs of the part.
        scaled: shape [n, 12], float32, scaled targets.
        contexts: shape [n, C], float64, contexts of the graphs, unscaled.
        base: shape [n, 12], float64, logarithms of the cost prior; None without one.
        labels: shape [n, 12], float64, targets in their units.
        times_s: shape [n], float64, seconds per iteration.
        facts: statistics of each graph (`features.graph_stats`).
        num_ops: number of ops of each graph.
        unknown_op_types: number of ops of each type that the table lacks, of each graph.
    """

    workloads: tuple[str, ...]
    batch: GroupBatch
    scaled: Tensor
    contexts: FloatArray
    base: FloatArray | None
    labels: FloatArray
    times_s: FloatArray
    facts: tuple[dict[str, float], ...]
    num_ops: tuple[int, ...]
    unknown_op_types: tuple[dict[str, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """Scaling and encoding of a trained inspector's inputs.

    Attributes:
        op_type_table: encoding of each op type.
        law: cost prior; None if the outputs are no ratios.
        input_scaler: scale of features and context.
    """

    op_type_table: dict[str, float]
    law: CostPrior | None
    input_scaler: InputScaler


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedData:
    """Tensors for the loop, and the parts for the checkpoint.

    Attributes:
        parts: parts by name, in the order of `PARTS`; a part without workloads is left out.
        op_type_table: encoding of each op type.
        law: cost prior; None if the outputs are no ratios.
        input_scaler: scale of features and context.
        target_scaler: scale of the targets.
        inspector: the preset's, with the lengths of features and context filled in.
        num_groups: M of the inspector; under the policy `proportional` the largest.
    """

    parts: dict[str, PreparedPart]
    op_type_table: dict[str, float]
    law: CostPrior | None
    input_scaler: InputScaler
    target_scaler: TargetScaler
    inspector: InspectorConfig
    num_groups: int

    def with_law(self, law: CostPrior) -> PreparedData:
        """The same with targets as ratios to another cost prior; the inputs stay."""
        bases = {name: law.log_targets(part.contexts) for name, part in self.parts.items()}
        scaler = TargetScaler.fit(
            self.parts["train"].labels, self.target_scaler.kind, bases["train"]
        )
        parts = {
            name: replace(part, base=bases[name], scaled=_scaled(scaler, part.labels, bases[name]))
            for name, part in self.parts.items()
        }
        return replace(self, parts=parts, law=law, target_scaler=scaler)


def prepare(
    dataset: Dataset,
    split: Split,
    preset: Preset,
    *,
    progress: Callable[[int, int], None],
    groupings: Groupings | None = None,
    encoding: Encoding | None = None,
) -> PreparedData:
    """Build and scale all inputs and targets.

    Args:
        dataset: examples of one setting.
        split: rows of the parts.
        preset: grouping, scaling and model.
        progress: called with (graphs built, graphs in all).
        groupings: cache of groupings, shared by splits of the data set.
        encoding: encoding of the source of a transfer; fitted to the training part by default.

    Raises:
        DatasetError: no training or no validation workloads.
        GraphError: a graph without nodes.
    """
    examples = {name: part for name, part in split_examples(dataset, split).items() if part}
    for name in ("train", "validation"):
        if name not in examples:
            raise DatasetError(f"the {name} part of the split is empty; add workloads")
    table = _op_type_table(examples["train"]) if encoding is None else encoding.op_type_table
    inputs = _build_inputs(examples, table, preset, progress, groupings or Groupings())
    contexts = {name: _contexts(some) for name, some in inputs.items()}
    if encoding is not None:
        law = encoding.law
    elif preset.train.base == "costs":
        labels = _labels(examples["train"])
        names = preset.input.context_names
        law = fit_cost_law(contexts["train"], labels, label_floor(labels), names)
    else:
        law = None
    bases = {name: None if law is None else law.log_targets(contexts[name]) for name in inputs}
    if law is not None:
        inputs = {name: [law.join(item) for item in some] for name, some in inputs.items()}
    target_scaler = TargetScaler.fit(
        _labels(examples["train"]), preset.train.target_scaling, bases["train"]
    )
    if encoding is not None:
        input_scaler = encoding.input_scaler
    elif preset.train.input_scaling == "standard":
        input_scaler = InputScaler.fit(inputs["train"])
    else:
        input_scaler = InputScaler.identity()
    sizes = [item.num_groups for item in inputs["train"]]
    uniform = preset.input.policy == "uniform"
    return PreparedData(
        parts={
            name: _part(
                examples[name],
                inputs[name],
                contexts=contexts[name],
                base=bases[name],
                input_scaler=input_scaler,
                target_scaler=target_scaler,
            )
            for name in examples
        },
        op_type_table=table,
        law=law,
        input_scaler=input_scaler,
        target_scaler=target_scaler,
        inspector=replace(
            preset.inspector,
            num_features=len(preset.input.feature_names),
            num_context=len(inputs["train"][0].context),
        ),
        num_groups=preset.input.num_groups if uniform else max(sizes),
    )


def preset_for(dataset: Dataset, preset: Preset) -> Preset:
    """The preset, restricted to what the data set supports.

    Pregrouped graphs have no context and no costs, hence no cost prior and no distance.
    """
    preset = replace(preset, input=input_config_for(dataset, preset.input))
    groups = [item.graph for item in dataset.examples if isinstance(item.graph, GroupedGraph)]
    if not groups:
        return preset
    most = max(len(graph.features) for graph in groups)
    features = preset.input.features
    return replace(
        preset,
        input=replace(
            preset.input,
            context="none",
            features="log" if features == "costs" else features,
            num_groups=most,
        ),
        train=replace(preset.train, base="none", residuals="none"),
    )


def input_config_for(dataset: Dataset, config: InputConfig) -> InputConfig:
    """The configuration with the number of servers of the data set's setting."""
    return replace(config, num_servers=max(Setting.parse(dataset.setting).num_servers, 1))


def split_examples(dataset: Dataset, split: Split) -> dict[str, list[Example]]:
    """Examples of each part, sorted by workload name, independent of the order of rows."""
    return {
        name: sorted(
            (dataset.examples[i] for i in getattr(split, name)),
            key=lambda example: example.workload,
        )
        for name in PARTS
    }


def select(batch: GroupBatch, rows: Tensor) -> GroupBatch:
    """Some rows of a batch."""
    return GroupBatch(
        x=batch.x[rows],
        adjacency=batch.adjacency[rows],
        mask=batch.mask[rows],
        context=batch.context[rows],
    )


def _op_type_table(examples: Sequence[Example]) -> dict[str, float]:
    """Encoding of each op type; empty if graphs have none."""
    graphs = [item.graph for item in examples if not isinstance(item.graph, GroupedGraph)]
    return fit_op_type_table(graphs) if graphs else {}


def _build_inputs(
    examples: dict[str, list[Example]],
    table: dict[str, float],
    preset: Preset,
    progress: Callable[[int, int], None],
    groupings: Groupings,
) -> dict[str, list[InspectorInput]]:
    """Inputs of every part; a graph shared by several workloads is built once."""
    total = sum(len(part) for part in examples.values())
    built: dict[tuple[int, int | None], InspectorInput] = {}
    inputs: dict[str, list[InspectorInput]] = {}
    done = 0
    for name, part in examples.items():
        inputs[name] = []
        for example, num_groups in zip(part, _num_groups(name, part, preset), strict=True):
            key = (id(example.graph), num_groups)
            if key not in built:
                built[key] = build_input(
                    example.graph,
                    table,
                    preset.input,
                    num_groups=num_groups,
                    groupings=groupings,
                )
            inputs[name].append(built[key])
            done += 1
            progress(done, total)
    return inputs


def _contexts(inputs: Sequence[InspectorInput]) -> FloatArray:
    return np.stack([item.context for item in inputs]).astype(np.float64)


def _num_groups(name: str, examples: Sequence[Example], preset: Preset) -> list[int | None]:
    """Batch-wise M of each training graph under the policy `proportional`.

    The paper sorts the training graphs by size into batches, and M follows from the batch. Other
    graphs come one at a time, as a user's do, and their M follows from the graph.
    """
    if preset.input.policy == "uniform" or name != "train":
        return [None] * len(examples)
    sizes = [example.graph.num_nodes for example in examples]
    return [int(m) for m in proportional_num_groups(sizes, preset.train.batch_size)]


def _part(
    examples: Sequence[Example],
    inputs: Sequence[InspectorInput],
    *,
    contexts: FloatArray,
    base: FloatArray | None,
    input_scaler: InputScaler,
    target_scaler: TargetScaler,
) -> PreparedPart:
    labels = _labels(examples)
    return PreparedPart(
        workloads=tuple(example.workload for example in examples),
        batch=make_batch([input_scaler.transform(item) for item in inputs]),
        scaled=_scaled(target_scaler, labels, base),
        contexts=contexts,
        base=base,
        labels=labels,
        times_s=np.array([example.iteration_time_s for example in examples]),
        facts=tuple(item.facts for item in inputs),
        num_ops=tuple(item.num_ops for item in inputs),
        unknown_op_types=tuple(item.unknown_op_types for item in inputs),
    )


def _labels(examples: Sequence[Example]) -> npt.NDArray[np.float64]:
    return np.array([example.targets.flat for example in examples], dtype=np.float64)


def _scaled(scaler: TargetScaler, labels: FloatArray, base: FloatArray | None) -> Tensor:
    return torch.from_numpy(scaler.transform(labels, base).astype(np.float32))
