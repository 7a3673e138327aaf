"""Let models of transformers be followed by shapes: sequences are taken to be whole.

transformers looks at the values of attention masks and positions to see whether tokens are padding
or several texts share a row, and leaves the mask out of attention if not. Without values it cannot.
Here the answer is what a full batch gives: no padding, one text in each row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

__all__ = ["WHOLE_SEQUENCES", "whole_sequences"]

WHOLE_SEQUENCES = "all sequences are of full length, without padding, and one text in each row"
_MODULE = "transformers.masking_utils"


@contextmanager
def whole_sequences() -> Iterator[None]:
    """Within the block, transformers skips masks as for whole sequences, on the meta device only.

    Nothing changes if transformers is not imported.
    """
    module = sys.modules.get(_MODULE)
    with ExitStack() as stack:
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
        yield


def _is_meta(value: Any) -> bool:
    return getattr(getattr(value, "device", None), "type", "") == "meta"


def _without_padding(known: Callable[..., bool]) -> Callable[..., bool]:
    """The question whether a mask can be left out, asked for a mask without padding."""

    def asked(padding_mask: Any = None, *args: Any, **kwargs: Any) -> bool:
        mask = None if _is_meta(padding_mask) else padding_mask
        return known(mask, *args, **kwargs)

    return asked


def _unpacked(known: Callable[..., Any]) -> Callable[..., Any]:
    """No boundaries of texts within a row, which is what None means there."""

    def asked(position_ids: Any) -> Any:
        return None if _is_meta(position_ids) else known(position_ids)

    return asked
