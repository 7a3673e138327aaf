"""What is worked out once: results on the meta device, and the update of 8-bit Adam."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from driple.graph.torch.eight_bit_adam import with_eight_bit_adam  # noqa: E402
from driple.graph.torch.remembered import RememberedResults  # noqa: E402
from driple.graph.torch.step import StepOptions, traced_step  # noqa: E402

ATEN = torch.ops.aten


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def test_an_equal_call_gives_the_same_form_in_new_memory() -> None:
    results, ops = RememberedResults(), ATEN.mul.Tensor
    pairs = [
        (meta(4, 3), meta(3)),
        (meta(4, 3).t(), meta(1)),
        (meta(4, 3, dtype=torch.bfloat16), meta(4, 3)),
    ]
    for pair in pairs:
        expected = ops(*pair)
        first, second = (results.run(ops, pair, {}) for _ in range(2))
        for result in (first, second):
            assert (result.shape, result.stride()) == (expected.shape, expected.stride())
            assert result.dtype is expected.dtype
        assert first.untyped_storage()._cdata != second.untyped_storage()._cdata


def test_views_and_writes_reach_the_memory_of_their_arguments() -> None:
    results = RememberedResults()
    for _ in range(2):
        tensor = meta(4, 3)
        memory = tensor.untyped_storage()._cdata
        for op, arguments in (
            (ATEN.view.default, (tensor, [12])),
            (ATEN._unsafe_view.default, (tensor, [12])),
            (ATEN.add_.Tensor, (tensor, tensor)),
        ):
            assert results.run(op, arguments, {}).untyped_storage()._cdata == memory


def test_numbers_of_other_types_are_other_calls() -> None:
    results, whole = RememberedResults(), meta(4, dtype=torch.int64)
    assert results.run(ATEN.mul.Tensor, (whole, 2), {}).dtype is torch.int64
    assert results.run(ATEN.mul.Tensor, (whole, 2.0), {}).dtype is torch.float32


def test_the_update_of_8_bit_adam_is_that_of_a_step_read_with_it() -> None:
    """Also where some parameters are frozen, as in LoRA."""
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8))
        model[0].weight.requires_grad_(False)
        batch = torch.zeros(16, 64)

    def step(optimizer: str):  # type: ignore[no-untyped-def]
        return traced_step(model, batch, torch.sum, StepOptions(optimizer=optimizer))

    derived = with_eight_bit_adam(step("adamw"))
    assert derived is not None
    assert derived.update == step("adam8bit").update
    assert derived.update.state_bytes == 2 * 4 * 512 + 2 * (4096 + 4 * 16) + 2 * 4 * 8
