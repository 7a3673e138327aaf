"""A traced step takes batches and losses of every form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from driple.errors import ConfigError, GraphError
from driple.graph.torch.step import StepOptions, traced_step


class TwoInputs(nn.Module):
    """Returns its loss in one of the forms that models use."""

    def __init__(self, form: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.form = nn.Linear(4, 2), form

    def forward(self, first: Tensor, second: Tensor) -> Any:
        return self.form(self.layer(first + second).square().mean())


class Outputs:
    """As transformers returns them."""

    def __init__(self, loss: Tensor) -> None:
        self.loss = loss


FORMS: list[Callable[[Tensor], Any]] = [
    lambda loss: loss,
    lambda loss: {"loss": loss, "logits": loss[None]},
    lambda loss: (loss[None], loss),
    Outputs,
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("named", [False, True])
def test_a_batch_is_given_by_position_or_by_name(
    form: Callable[[Tensor], Any], named: bool
) -> None:
    with torch.device("meta"):
        model, one, two = TwoInputs(form), torch.zeros(3, 4), torch.zeros(3, 4)
    batch = {"first": one, "second": two} if named else (one, two)
    graph = traced_step(model, batch, None, StepOptions())
    assert sorted(graph.traffic.sent_bytes.tolist()) == [4 * 2, 4 * 8]


def test_a_model_without_a_loss_is_refused() -> None:
    with torch.device("meta"):
        model, images = nn.Linear(4, 2), torch.zeros(3, 4)
    with pytest.raises(GraphError, match="returns no loss"):
        traced_step(model, images, None, StepOptions())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": "fp4"}, "precision must be one of fp32, tf32"),
        ({"optimizer": "adamm"}, "optimizer must be one of sgd"),
        ({"grad_accumulation": 0}, "grad_accumulation"),
        ({"activation_checkpointing": "some"}, "activation_checkpointing"),
        ({"trace": "jit"}, "trace"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        StepOptions(**options)
