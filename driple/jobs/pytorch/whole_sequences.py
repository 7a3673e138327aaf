"""Let models of transformers be followed by shapes: sequences are whole, and experts share evenly.

transformers looks at the values of attention masks and positions to see whether tokens are padding
or several texts share a row, and leaves the mask out of attention if not. Without values it cannot.
Here the answer is what a full batch gives: no padding, one text in each row. Likewise the tokens of
each expert of a mixture are counted at run time; here each gets the same number.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

from driple.graph.torch.batch_tensors import tensors_of
from driple.graph.torch.turns import few_turns
from driple.remarks import Remark, remark

__all__ = [
    "WHOLE_SEQUENCES",
    "assumptions_of_transformers",
    "by_values",
    "whole_sequences",
]

WHOLE_SEQUENCES = remark("whole_sequences")
# Functions of transformers' models that stand in for kernels of other packages.
_OTHERS_KERNELS = (
    "causal_conv1d_fn", "selective_scan_fn", "mamba_inner_fn", "mamba_chunk_scan_combined",
    "chunk_gated_delta_rule", "torch_chunk_gated_delta_rule",
)  # fmt: skip
_EVEN_EXPERTS = remark("even_experts")
_FEW_TURNS = remark("four_turns_of_loops")
_MODULE, _EXPERTS = "transformers.masking_utils", "transformers.integrations.moe"


@contextmanager
def whole_sequences(batch: Any = None) -> Iterator[list[Remark]]:
    """Within the block, sequences are whole, on the meta device only.

    transformers skips masks, and sequences of PyTorch are packed at their full length. Of its loops
    over tokens a few turns are followed.

    Args:
        batch: whose tokens are counted.

    Yields:
        What was assumed of packed sequences: empty until one is packed.
    """
    module = sys.modules.get(_MODULE)
    packed_once: list[Remark] = []
    with ExitStack() as stack:
        functions: Any = vars(rnn)["_VF"]  # calls PyTorch's kernels
        known_pack = functions._pack_padded_sequence
        stack.enter_context(
            patch.object(
                functions, "_pack_padded_sequence", _at_full_length(known_pack, packed_once),
                create=True,
            )
        )  # fmt: skip
        if module is not None:
            for name in ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa"):
                known = getattr(module, name, None)
                if known is not None:
                    stack.enter_context(patch.object(module, name, _without_padding(known)))
            packed = getattr(module, "find_packed_sequence_indices", None)
            if packed is not None:
                stack.enter_context(
                    patch.object(module, "find_packed_sequence_indices", _unpacked(packed))
                )
        lengths = {int(one.shape[1]) for one in tensors_of(batch) if one.dim() > 1}
        counted = few_turns(lengths, partial(_note_once, packed_once, _FEW_TURNS))
        for part in _models():
            stack.enter_context(patch.object(part, "range", counted, create=True))
        experts = sys.modules.get(_EXPERTS)
        grouped = getattr(experts, "_grouped_mm", None)
        if grouped is not None:
            stack.enter_context(patch.object(experts, "_grouped_mm", _evenly(grouped)))
        if module is not None:  # checks of values, which transformers lets a program leave out
            stack.enter_context(patch.dict(os.environ, {"TRANSFORMERS_DISABLE_TORCH_CHECK": "1"}))
        for losses in _modules_with("linear_sum_assignment"):
            known = losses.linear_sum_assignment
            stack.enter_context(patch.object(losses, "linear_sum_assignment", _in_order(known)))
        yield packed_once


def assumptions_of_transformers(module: nn.Module, *, tokens: bool) -> tuple[Remark, ...]:
    """What is assumed of a model of transformers, or with parts of it; nothing of another.

    Args:
        module: the model.
        tokens: whether it reads sequences of tokens.
    """
    owners = {type(one).__module__.partition(".")[0] for one in module.modules()}
    if "transformers" not in owners:
        return ()
    whole = (WHOLE_SEQUENCES,) if tokens else ()
    experts = (_EVEN_EXPERTS,) if _has_experts(module) else ()
    return (*whole, *experts, *_slow_layers(module))


def by_values(places: Sequence[str]) -> tuple[Remark, ...]:
    """A remark on what libraries' models decide by values of tensors; nothing if they do not.

    Args:
        places: lines of libraries that do.
    """
    if not places:
        return ()
    return (remark("decided_by_values", places=tuple(places)),)


def _has_experts(module: nn.Module) -> bool:
    """Whether a model of transformers is a mixture of experts."""
    return any(type(one).__name__.endswith("Experts") for one in module.modules())


def _slow_layers(module: nn.Module) -> tuple[Remark, ...]:
    """A remark on layers that transformers computes by kernels of other packages, if it has them.

    They are read as it runs them without: state-space models token by token.
    """
    homes = {sys.modules.get(type(one).__module__) for one in module.modules()}
    if not any(hasattr(home, name) for home in homes for name in _OTHERS_KERNELS):
        return ()
    return (remark("slow_layers"),)


def _is_meta(value: Any) -> bool:
    return getattr(getattr(value, "device", None), "type", "") == "meta"


def _without_padding(known: Callable[..., bool]) -> Callable[..., bool]:
    """The question whether a mask can be left out, asked for a mask without padding."""

    def asked(padding_mask: Any = None, *args: Any, **kwargs: Any) -> bool:
        mask = None if _is_meta(padding_mask) else padding_mask
        return known(mask, *args, **kwargs)

    return asked


def _at_full_length(known: Callable[..., Any], assumed: list[Remark]) -> Callable[..., Any]:
    """Packing of padded sequences whose lengths have no values: each is as long as the longest."""

    def packed(values: Tensor, lengths: Tensor, batch_first: bool) -> Any:
        if not _is_meta(lengths):
            return known(values, lengths, batch_first)
        _note_once(assumed, WHOLE_SEQUENCES)
        first, second = values.shape[:2]
        samples, steps = (first, second) if batch_first else (second, first)
        rows = values.transpose(0, 1) if batch_first else values
        whole = rows.reshape(samples * steps, *values.shape[2:])
        return whole, torch.full((steps,), samples, dtype=torch.int64, device="cpu")

    return packed


def _unpacked(known: Callable[..., Any]) -> Callable[..., Any]:
    """No boundaries of texts within a row, which is what None means there."""

    def asked(position_ids: Any) -> Any:
        return None if _is_meta(position_ids) else known(position_ids)

    return asked


def _note_once(notes: list[Remark], new: Remark) -> None:
    if new not in notes:
        notes.append(new)


def _models() -> list[Any]:
    """Modules of transformers with models; only those that are imported."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("transformers.models.") and ".modeling_" in name
    ]


def _modules_with(function: str) -> list[Any]:
    """Modules of transformers that have a function; only those that are imported."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("transformers.") and function in vars(module)
    ]


def _in_order(known: Callable[..., Any]) -> Callable[..., Any]:
    """The assignment of queries to objects, which has an entry for each of the fewer."""

    def assigned(costs: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_meta(costs):
            return known(costs, *args, **kwargs)
        few = np.arange(min(costs.shape))
        return few, few

    return assigned


def _evenly(known: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A product of groups of rows with a matrix each, in groups of equal size."""

    def product(rows: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
        if not _is_meta(rows):
            return known(rows, weight, offs)
        groups, num_rows = weight.shape[0], rows.shape[0]
        share = -(-num_rows // groups)
        padded = nn.functional.pad(rows, (0, 0, 0, share * groups - num_rows))
        product_of_groups = torch.bmm(padded.view(groups, share, -1).to(weight.dtype), weight)
        return product_of_groups.view(groups * share, -1)[:num_rows]

    return product
