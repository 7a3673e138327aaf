"""A copy of the parameters in fp32: what it adds to the state, time and memory of an update."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from driple.graph.torch.options import StepOptions  # noqa: E402
from driple.graph.torch.update import update_of  # noqa: E402

_ELEMENTS = 1000 * 100


def _update(precision: str, dtype: torch.dtype, optimizer: str = "adamw-fused"):  # type: ignore[no-untyped-def]
    parameter = torch.nn.Parameter(torch.empty(1000, 100, dtype=dtype, device="meta"))
    return update_of([parameter], StepOptions(precision=precision, optimizer=optimizer))  # type: ignore[arg-type]


def test_a_copy_in_fp32_has_states_in_fp32() -> None:
    """AdamW: 4 bytes a parameter in bfloat16 alone; 8 of states and 4 of the copy with masters."""
    whole = _update("bf16", torch.bfloat16)
    mixed = _update("bf16-mixed", torch.bfloat16)
    full = _update("fp32", torch.float32)
    assert whole.state_bytes == 4 * _ELEMENTS
    assert mixed.state_bytes == 12 * _ELEMENTS == full.state_bytes + 4 * _ELEMENTS
    assert mixed.temporary_bytes == full.temporary_bytes + 4 * _ELEMENTS


def test_gradients_are_copied_to_fp32_and_parameters_back() -> None:
    """6 bytes a parameter each, by a kernel each, on top of the update in fp32."""
    mixed = _update("bf16-mixed", torch.bfloat16)
    full = _update("fp32", torch.float32)
    assert mixed.moved_bytes == full.moved_bytes + 12 * _ELEMENTS
    assert mixed.num_kernels == full.num_kernels + 2


def test_fp16_unscales_gradients_besides() -> None:
    assert _update("fp16-mixed", torch.float16).num_kernels == (
        _update("bf16-mixed", torch.bfloat16).num_kernels + 1
    )


def test_parameters_in_fp32_need_no_copy() -> None:
    assert _update("bf16-mixed", torch.float32) == _update("fp32", torch.float32)
