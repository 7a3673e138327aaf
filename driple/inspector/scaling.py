"""Scales of what goes into an inspector and of what comes out; both travel in the checkpoint.

targets [n, 12]  --TargetScaler.transform-->  what is learned  --inverse-->  targets
InspectorInput   --InputScaler.transform-->   InspectorInput of the same shapes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from driple.codec import Json, from_json, to_dict
from driple.errors import ConfigError
from driple.features.builder import InspectorInput
from driple.trace.targets import NUM_TARGETS

__all__ = ["InputScaler", "TargetScaler", "label_floor"]

FloatArray = npt.NDArray[np.float64]
TargetScale = Literal["max", "log"]
InputScale = Literal["identity", "standard"]

# With the scale `log`, labels below this share of the largest label count as this share: a label
# may be 0, and has no logarithm.
LOG_FLOOR_SHARE = 1e-4


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetScaler:
    """Scaling of the 12 targets for learning.

    `max` (paper): divided by the largest label of the training split. What the model gives is
    multiplied by it again, negative or not. `log`: logarithm, then mean 0 and standard deviation 1;
    what the model gives becomes a positive number. With a base (`law.py`) the logarithm is of the
    ratio to it, on the scale of the labels themselves.

    Attributes:
        kind: `max` or `log`.
        offset: shape [12]; 0 for `max`, mean of the logarithms for `log`.
        scale: shape [12], above 0; the largest label, or the standard deviation of the logarithms.
        floor: shape [12]; for `log` the smallest label that is distinguished, in the target's unit.
    """

    kind: TargetScale
    offset: FloatArray
    scale: FloatArray
    floor: FloatArray

    def __post_init__(self) -> None:
        if self.kind not in get_args(TargetScale):
            raise ConfigError(f"target scale is {self.kind!r}; choose max or log")
        for name in ("offset", "scale", "floor"):
            _check_vector(f"target {name}", getattr(self, name), NUM_TARGETS)
        if (self.scale <= 0).any() or (self.kind == "log" and (self.floor <= 0).any()):
            raise ConfigError("a target scale is 0 or negative; fit the scaler on labels")

    @classmethod
    def fit(
        cls, values: npt.ArrayLike, kind: TargetScale, base: FloatArray | None = None
    ) -> TargetScaler:
        """Fit to the labels of the training split, shape [n, 12], n >= 1, finite, none negative.

        Args:
            values: the labels.
            kind: `max` or `log`.
            base: shape [n, 12], for `log`: logarithms of what is known without the model.

        Raises:
            ConfigError: other shapes or values.
        """
        labels = np.asarray(values, dtype=np.float64)
        if labels.ndim != 2 or labels.shape[1] != NUM_TARGETS or len(labels) == 0:
            raise ConfigError(f"labels have shape {labels.shape}; needed is [n, {NUM_TARGETS}]")
        if not np.isfinite(labels).all() or (labels < 0).any():
            raise ConfigError("labels hold negative or non-finite values; check the data set")
        largest = np.where(labels.max(axis=0) > 0, labels.max(axis=0), 1.0)
        if kind == "max":
            zeros = np.zeros(NUM_TARGETS)
            return cls(kind=kind, offset=zeros, scale=largest, floor=zeros)
        floor = label_floor(labels)
        logs = np.log(np.maximum(labels, floor))
        std = logs.std(axis=0)
        return cls(
            kind=kind,
            offset=(logs if base is None else logs - base).mean(axis=0),
            scale=np.where(std > 1e-9, std, 1.0),
            floor=floor,
        )

    def transform(self, values: npt.ArrayLike, base: FloatArray | None = None) -> FloatArray:
        """Labels, shape [n, 12], to what is learned; `base` as in `fit`."""
        labels = np.asarray(values, dtype=np.float64)
        if self.kind == "log":
            labels = np.log(np.maximum(labels, self.floor))
        if base is not None:
            labels = labels - base
        scaled: FloatArray = (labels - self.offset) / self.scale
        return scaled

    def inverse(self, scaled: npt.ArrayLike, base: FloatArray | None = None) -> FloatArray:
        """Outputs of the model, shape [n, 12], as targets; nothing is clamped."""
        values: FloatArray = np.asarray(scaled, dtype=np.float64) * self.scale + self.offset
        if base is not None:
            values = values + base
        if self.kind == "max":
            return values
        with np.errstate(over="ignore"):  # the caller finds the infinity, not a warning
            return np.exp(values)

    def to_dict(self) -> dict[str, Json]:
        """Kind and arrays as lists, for the checkpoint."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> TargetScaler:
        """The inverse of `to_dict`; raises ConfigError on odd fields."""
        return from_json(cls, dict(fields), where="a target scaler")


@dataclass(frozen=True, kw_only=True, slots=True)
class InputScaler:
    """Scaling of features and context: none (paper), or to mean 0 and deviation 1.

    Attributes:
        kind: `identity` or `standard`.
        feature_mean: shape [F]; empty for `identity`, as are the others.
        feature_std: shape [F], above 0.
        context_mean: shape [C].
        context_std: shape [C], above 0.
    """

    kind: InputScale
    feature_mean: FloatArray
    feature_std: FloatArray
    context_mean: FloatArray
    context_std: FloatArray

    def __post_init__(self) -> None:
        if self.kind not in get_args(InputScale):
            raise ConfigError(f"input scale is {self.kind!r}; choose identity or standard")
        for part in ("feature", "context"):
            mean, std = getattr(self, f"{part}_mean"), getattr(self, f"{part}_std")
            _check_vector(f"{part} mean", mean, len(mean))
            _check_vector(f"{part} deviation", std, len(mean))
            if (std <= 0).any():
                raise ConfigError(f"a {part} deviation is 0 or negative; fit the scaler anew")

    @classmethod
    def identity(cls) -> InputScaler:
        """The scaler that changes nothing (preset `paper`)."""
        none = np.zeros(0)
        return cls(
            kind="identity",
            feature_mean=none,
            feature_std=none,
            context_mean=none,
            context_std=none,
        )

    @classmethod
    def fit(cls, inputs: Sequence[InspectorInput]) -> InputScaler:
        """Fit to the inputs of the training split, over all their groups.

        Raises:
            ConfigError: no inputs.
        """
        if not inputs:
            raise ConfigError("an input scaler fitted on no graphs; give at least one")
        features = np.concatenate([item.features for item in inputs]).astype(np.float64)
        context = np.stack([item.context for item in inputs]).astype(np.float64)
        return cls(
            kind="standard",
            feature_mean=features.mean(axis=0),
            feature_std=_positive_std(features),
            context_mean=context.mean(axis=0),
            context_std=_positive_std(context),
        )

    def transform(self, graph_input: InspectorInput) -> InspectorInput:
        """The input with features and context scaled.

        Raises:
            ConfigError: the input has other numbers of features or context values.
        """
        if self.kind == "identity":
            return graph_input
        widths = (graph_input.features.shape[1], len(graph_input.context))
        if widths != (len(self.feature_mean), len(self.context_mean)):
            raise ConfigError(
                f"an input with (features, context) of lengths {widths}, the scaler was fitted on "
                f"{(len(self.feature_mean), len(self.context_mean))}; build both alike"
            )
        features = (graph_input.features - self.feature_mean) / self.feature_std
        context = (graph_input.context - self.context_mean) / self.context_std
        return replace(
            graph_input, features=features.astype(np.float32), context=context.astype(np.float32)
        )

    def to_dict(self) -> dict[str, Json]:
        """Kind and arrays as lists, for the checkpoint."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> InputScaler:
        """The inverse of `to_dict`; raises ConfigError on odd fields."""
        return from_json(cls, dict(fields), where="an input scaler")


def label_floor(labels: FloatArray) -> FloatArray:
    """Smallest label of each target that a logarithm distinguishes, shape [12], above 0."""
    largest = labels.max(axis=0)
    return LOG_FLOOR_SHARE * np.where(largest > 0, largest, 1.0)


def _positive_std(values: FloatArray) -> FloatArray:
    """Standard deviation of each column; 1 for a column that does not vary."""
    std = values.std(axis=0)
    return np.where(std > 1e-9, std, 1.0)


def _check_vector(name: str, values: FloatArray, length: int) -> None:
    if values.shape != (length,) or not np.isfinite(values).all():
        raise ConfigError(f"{name} is no list of {length} finite numbers; fit the scaler anew")
