"""The cost prior: each target as a non-negative linear model of step costs (ours).

    context (log(1 + x) of sums) -> sums -> rates @ sums, one line for each target -> log [12]

The network predicts the ratio to this prior, which limits its error on unseen models, since time
grows with FLOPs, bytes, ops and traffic. No rate is negative. A transfer may refit the prior; the
input of the inspector stays the prior of the pre-trained setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from driple.codec import Json, from_json, json_field, to_dict
from driple.errors import ConfigError
from driple.features.builder import InspectorInput
from driple.graph.opkind import CONVOLUTION_FAMILIES
from driple.trace.targets import NUM_TARGETS

__all__ = ["LAW_NAMES", "CostPrior"]

FloatArray = npt.NDArray[np.float64]

# What the law adds up, by the names of the context; a constant comes last. Few, so that a hundred
# labels fix them: finer kinds of ops fit better and foretell unseen families worse (decision 0016).
LAW_NAMES: tuple[tuple[str, ...], ...] = (
    tuple(f"flops_{kind}" for kind in CONVOLUTION_FAMILIES),
    ("flops_matmul",),
    *((f"left_elements_{kind}",) for kind in CONVOLUTION_FAMILIES),
    *((f"bytes_{kind}",) for kind in CONVOLUTION_FAMILIES),
    ("bytes_normalisation",),
    ("bytes_pooling",),
    ("bytes_elementwise", "bytes_softmax", "bytes_lists"),
    tuple(f"executions_{kind}" for kind in CONVOLUTION_FAMILIES),
    ("executions_matmul",),
    ("executions_normalisation",),
    ("executions_elementwise",),
    ("num_nodes",),
    ("repeated_executions",),
    ("sent_bytes",),
    ("fullest_server_bytes",),
    ("sent_tensors",),
    ("received_tensors",),
    ("accumulated_bytes",),
    ("accumulators",),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CostPrior:
    """Rates of one setting.

    Attributes:
        columns: for each sum, which entries of the context it adds up.
        rates: shape [12, len(columns) + 1], not negative, in each target's unit; the last column
            is the constant.
        floor: shape [12], above 0; no target is predicted to be less.
        read: after a transfer, the law that the inspector was trained to read, of the same columns;
            None where it is this one.
    """

    columns: tuple[tuple[int, ...], ...]
    rates: FloatArray
    floor: FloatArray
    # Laws from before transfers fitted them anew lack it.
    read: CostPrior | None = field(default=None, metadata=json_field(may_lack=True))

    def __post_init__(self) -> None:
        if self.rates.shape != (NUM_TARGETS, len(self.columns) + 1):
            raise ConfigError(f"rates of a cost law have shape {self.rates.shape}; train anew")
        if self.floor.shape != (NUM_TARGETS,):
            raise ConfigError(f"floors of a cost law have shape {self.floor.shape}; train anew")
        if not np.isfinite(self.rates).all() or (self.rates < 0).any():
            raise ConfigError("a cost law has a negative or non-finite rate; train anew")
        if not np.isfinite(self.floor).all() or (self.floor <= 0).any():
            raise ConfigError("a cost law has a floor that is not above 0; train anew")
        if self.read is not None and (self.read.columns != self.columns or self.read.read):
            raise ConfigError("a cost law and the one that is read add up other sums; train anew")

    def log_targets(self, contexts: npt.ArrayLike) -> FloatArray:
        """Logarithms of the twelve targets, shape [n, 12], of contexts [n, C]."""
        return self._log(sums_of(np.asarray(contexts, dtype=np.float64), self.columns))

    def join(self, graph_input: InspectorInput) -> InspectorInput:
        """The input with the prior's outputs appended to its context."""
        return self.read_and_join(graph_input)[1]

    def read_and_join(self, graph_input: InspectorInput) -> tuple[FloatArray, InspectorInput]:
        """`log_targets` of one input, shape [12], and `join`: both from the same sums."""
        sums = sums_of(np.asarray(graph_input.context[None, :], dtype=np.float64), self.columns)
        own = self._log(sums)[0]
        prior_logs = own if self.read is None else self.read._log(sums)[0]
        context = np.concatenate([graph_input.context, prior_logs]).astype(np.float32)
        return own, replace(graph_input, context=context)

    def _log(self, sums: FloatArray) -> FloatArray:
        """Logarithms of the twelve targets, shape [n, 12], of sums [n, len(columns) + 1]."""
        return np.log(np.maximum(sums @ self.rates.T, self.floor))

    def to_dict(self) -> dict[str, Json]:
        """All fields as lists, for the checkpoint."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, object], num_context: int) -> CostPrior:
        """The inverse of `to_dict`; raises ConfigError on odd fields.

        Args:
            fields: as stored.
            num_context: length of the context that it reads.
        """
        law = from_json(cls, dict(fields), where="a cost law")
        if not all(0 <= entry < num_context for entries in law.columns for entry in entries):
            raise ConfigError(f"columns of a cost law are no lists of entries below {num_context}")
        return law


def columns_of(
    context_names: Sequence[str], law_names: Sequence[Sequence[str]] = LAW_NAMES
) -> tuple[tuple[int, ...], ...]:
    """Positions of the sums of the law in a context.

    Args:
        context_names: entries of the context.
        law_names: names of the entries that each sum adds up.

    Raises:
        ConfigError: the context lacks some of them.
    """
    place = {name: i for i, name in enumerate(context_names)}
    missing = sorted({name for names in law_names for name in names} - set(place))
    if missing:
        raise ConfigError(
            f"a cost law needs {missing[0]} in the context ({len(missing)} are missing); "
            "set the input's context to costs"
        )
    return tuple(tuple(place[name] for name in names) for names in law_names)


def sums_of(contexts: FloatArray, columns: tuple[tuple[int, ...], ...]) -> FloatArray:
    """Sums in their units and a constant 1, shape [n, len(columns) + 1], of contexts [n, C]."""
    sums = np.ones((len(contexts), len(columns) + 1))
    amounts = np.expm1(contexts)
    for i, entries in enumerate(columns):
        sums[:, i] = amounts[:, list(entries)].sum(axis=1)
    return sums
