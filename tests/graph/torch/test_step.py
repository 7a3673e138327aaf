"""A traced step takes batches and losses of every form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from driple.errors import ConfigError, GraphError
from driple.graph.cost import cost_of_graph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
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
        model, first, two = TwoInputs(form), torch.zeros(3, 4), torch.zeros(3, 4)
    batch = {"first": first, "second": two} if named else (first, two)
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


class Branches(nn.Module):
    """Decides by a value, as the message of a refusal advises."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.cond(inputs.sum() > 0, self.one, self.two, (inputs,)).sum()


def test_a_branch_by_torch_cond_is_read() -> None:
    """By shapes alone the first branch, on real inputs the one that they take."""
    with torch.device("meta"):
        model, inputs = Branches(), torch.zeros(3, 4)
    graph = traced_step(model, inputs, None, StepOptions())
    assert graph.parameters.gradients[:, 0].tolist() == [0, 1]
    real = traced_step(Branches(), -torch.ones(3, 4), None, StepOptions(trace="real"))
    assert real.parameters.gradients[:, 0].tolist() == [2, 3]


def test_a_loss_of_connectionist_temporal_classification_is_read() -> None:
    with torch.device("meta"):
        model, inputs = nn.Linear(4, 5), torch.zeros(7, 2, 4)
        targets = torch.zeros(2, 3, dtype=torch.int64)
        lengths = torch.tensor([7, 7]), torch.tensor([3, 3])

    def loss(outputs: Tensor) -> Tensor:
        return nn.functional.ctc_loss(outputs.log_softmax(-1), targets, *lengths)

    graph = traced_step(model, inputs, loss, StepOptions())
    assert "ctc_loss" in graph.kinds
    assert not cost_of_graph(graph).unknown


@pytest.mark.parametrize(
    ("model", "loss", "words"),
    [
        (lambda: nn.Linear(4, 2), lambda outputs: outputs, r"one number, got \[3, 2\]"),
        (lambda: nn.Linear(4, 2), lambda outputs: 0.5, "one number, got float"),
        (
            lambda: nn.Linear(4, 2),
            lambda outputs: outputs.detach().sum(),
            "the loss depends on none that is trained",
        ),
        (nn.Identity, lambda outputs: outputs.sum(), "no parameter has a gradient"),
        (lambda: nn.LazyLinear(2), lambda outputs: outputs.sum(), "LazyModule"),
    ],
)
def test_what_cannot_be_trained_is_refused(
    model: Callable[[], nn.Module], loss: Callable[[Any], Any], words: str
) -> None:
    with torch.device("meta"):
        module, inputs = model(), torch.zeros(3, 4)
    with pytest.raises((ConfigError, GraphError), match=words) as raised:
        traced_step(module, inputs, loss, StepOptions())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [  # 2 x output x window x channels in, and twice that backward if the inputs have a gradient
        (lambda: nn.ConvTranspose2d(6, 8, 3, stride=2), (2, 6, 9, 9), 2 * 2 * 81 * 9 * 6 * 8),
        (lambda: nn.ConvTranspose2d(6, 6, 3, groups=6), (2, 6, 9, 9), 2 * 2 * 81 * 9 * 6),
        (lambda: nn.Conv1d(6, 8, 3), (2, 6, 18), 2 * 2 * 16 * 3 * 6 * 8),
        (lambda: nn.Conv3d(6, 8, 3), (2, 6, 5, 5, 5), 2 * 2 * 27 * 27 * 6 * 8),
    ],
)
def test_convolutions_of_every_form_have_their_flops(
    make: Callable[[], nn.Module], shape: tuple[int, ...], expected: int
) -> None:
    with torch.device("meta"):
        model, images = make(), torch.zeros(shape, requires_grad=True)
    graph = traced_step(model, images, lambda outputs: outputs.sum(), StepOptions())
    flops = [
        one
        for one, kind in zip(cost_of_graph(graph).flops.tolist(), graph.kinds, strict=True)
        if family_of(kind) in PRODUCT_FAMILIES
    ]
    assert flops == [expected] * 3
