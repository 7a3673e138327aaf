"""Small programs whose kernels take next to no time, so that the host decides: tiny training steps.

    HostProgram (model, batch, precision, optimizer) -> step() -> seconds of the host

The same models are read as jobs (`driple.api.machine`), whose ops the simulator counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["PROGRAMS", "HostProgram", "op_modules", "step_of"]

_WIDTH, _HEADS, _TOKENS, _BATCH, _CLASSES = 16, 2, 8, 2, 10


class _Block(nn.Module):
    """A transformer's block."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
        self.qkv, self.out = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)
        self.up, self.down = nn.Linear(_WIDTH, 2 * _WIDTH), nn.Linear(2 * _WIDTH, _WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(self.first(x)).chunk(3, dim=-1)
        q, k, v = (one.view(batch, tokens, _HEADS, -1).transpose(1, 2) for one in parts)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        result: Tensor = x + self.down(nn.functional.gelu(self.up(self.second(x))))
        return result


class _Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(_Block() for _ in range(4)))
        self.head = nn.Linear(_WIDTH, _CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.blocks(x).mean(1))
        return result


class _Pointwise(nn.Module):
    """Element by element, without a module's call for each op."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(_CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(8):
            x = torch.sigmoid(x * self.scale) + x
            x = torch.relu(x - 0.5)
        return x


def _mlp() -> nn.Module:
    layers = [layer for _ in range(12) for layer in (nn.Linear(_WIDTH, _WIDTH), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(_WIDTH, _CLASSES))


def _convolutional() -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(6):
        layers += [nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, _CLASSES))


_MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (_mlp, (_WIDTH,)),
    "convolutional": (_convolutional, (4, 4, 4)),
    "transformer": (_Transformer, (_TOKENS, _WIDTH)),
    "pointwise": (_Pointwise, (_CLASSES,)),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class HostProgram:
    """A tiny step.

    Attributes:
        model: a key of the models of this module.
        trains: whether it is a training step, else a forward pass.
        precision: `fp32`, or `amp-bf16` for autocast.
        optimizer: `momentum` or `adamw`; of training.
    """

    model: str
    trains: bool
    precision: str = "fp32"
    optimizer: str = "momentum"

    @property
    def counts_without_gpu(self) -> bool:
        """Whether it shows the pace of a host whose tensors are its own.

        There convolutions take their time in oneDNN, and lists of tensors go one by one.
        """
        return self.model != "convolutional" and self.optimizer != "adamw"

    @property
    def name(self) -> str:
        """Such as `transformer, training, amp-bf16`."""
        parts = [self.model, "training" if self.trains else "forward"]
        parts += [self.precision] if self.precision != "fp32" else []
        return ", ".join([*parts, self.optimizer] if self.trains else parts)

    def module(self) -> nn.Module:
        """The model, with values."""
        return _MODELS[self.model][0]()

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the inputs."""
        return (_BATCH, *_MODELS[self.model][1])

    def batch(self) -> tuple[Tensor, Tensor]:
        """Inputs and labels."""
        return torch.zeros(self.batch_shape), torch.zeros(_BATCH, dtype=torch.long)


PROGRAMS = (
    *(HostProgram(model=name, trains=False) for name in _MODELS),
    *(HostProgram(model=name, trains=True) for name in _MODELS),
    HostProgram(model="mlp", trains=True, optimizer="adamw"),
    HostProgram(model="transformer", trains=True, optimizer="adamw"),
    HostProgram(model="transformer", trains=False, precision="amp-bf16"),
    HostProgram(model="mlp", trains=False, precision="amp-bf16"),
    HostProgram(model="transformer", trains=True, precision="amp-bf16"),
)


def step_of(program: HostProgram, device: torch.device) -> Callable[[], object]:
    """A function that runs one step, as people write it."""
    module = program.module().to(device)
    inputs, labels = (one.to(device) for one in program.batch())

    def cast() -> AbstractContextManager[object]:
        if program.precision == "fp32":
            return nullcontext()
        return torch.autocast(device.type, torch.bfloat16)

    if not program.trains:
        module.eval()

        def forward() -> object:
            with torch.no_grad(), cast():
                return module(inputs)

        return forward
    parameters = list(module.parameters())
    optimizer: torch.optim.Optimizer
    if program.optimizer == "adamw":
        optimizer = torch.optim.AdamW(parameters, lr=1e-4, foreach=True)
    else:
        optimizer = torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, foreach=True)

    def train() -> object:
        optimizer.zero_grad(set_to_none=True)
        with cast():
            loss = nn.functional.cross_entropy(module(inputs), labels)
        torch.autograd.backward(loss)
        return optimizer.step()

    return train


def op_modules() -> Iterator[tuple[str, nn.Module, tuple[int, ...]]]:
    """One module for each kind of op, with the shape of its input."""
    image, tokens = (_BATCH, 4, 4, 4), (_BATCH, _TOKENS, _WIDTH)
    yield "linear", nn.Linear(_WIDTH, _WIDTH), tokens
    yield "convolution", nn.Conv2d(4, 4, 3, padding=1), image
    yield "batch norm", nn.BatchNorm2d(4), image
    yield "layer norm", nn.LayerNorm(_WIDTH), tokens
    yield "activation", nn.GELU(), tokens
    yield "softmax", nn.Softmax(dim=-1), tokens
    yield "pooling", nn.MaxPool2d(2), image
    yield "dropout", nn.Dropout(0.1), tokens
    yield "recurrent layer", nn.LSTM(_WIDTH, _WIDTH, batch_first=True), tokens
