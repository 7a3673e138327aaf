"""Forty-two training steps of PyTorch on one core: networks of many sizes and kinds.

name -> Program (network, batch, optimizer) -> seconds of a step
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from driple.measure.machine.clock import Clock
from driple.measure.machine.processor import WordModel, mlp, transformer

__all__ = ["Program", "programs", "seconds_of"]

Batch = tuple[Tensor, Tensor]


class _Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers = [(nn.Conv1d(32, 32, 5, padding=2), nn.ReLU()) for _ in range(4)]
        self.core = nn.Sequential(*(each for pair in layers for each in pair))
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.core(x).mean(-1))
        return logits


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A training step.

    Attributes:
        name: kind and sizes.
        make: the network.
        draw: inputs and labels.
        optimizer: `momentum` or `adamw`.
    """

    name: str
    make: Callable[[], nn.Module]
    draw: Callable[[], Batch]
    optimizer: str


def _normed() -> nn.Module:
    layers = [(nn.Linear(256, 256), nn.LayerNorm(256), nn.ReLU()) for _ in range(6)]
    return nn.Sequential(*(each for three in layers for each in three), nn.Linear(256, 10))


def _cnn(channels: int, depth: int, *, kernel: int = 3, norm: bool = True, pool: bool = False,
         stride: int = 1, depthwise: bool = False) -> nn.Module:  # fmt: skip
    layers: list[nn.Module] = []
    for number in range(depth):
        layers += [
            nn.Conv2d(
                channels if number else 3,
                channels,
                kernel,
                padding=kernel // 2,
                stride=stride if number == 1 else 1,
                groups=channels if depthwise and number else 1,
            )
        ]
        layers += [nn.BatchNorm2d(channels)] if norm else []
        layers += [nn.ReLU(), *([nn.MaxPool2d(2)] if pool and number == 1 else [])]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def _images(batch: int, side: int) -> Callable[[], Batch]:
    return lambda: (torch.randn(batch, 3, side, side), torch.randint(10, (batch,)))


def _numbers(*shape: int) -> Callable[[], Batch]:
    return lambda: (torch.randn(shape), torch.randint(10, shape[:1]))


def _text(batch: int, length: int, vocabulary: int) -> Callable[[], Batch]:
    def draw() -> Batch:
        words = torch.randint(vocabulary, (batch, length + 1))
        return words[:, :-1].contiguous(), words[:, 1:].flatten()

    return draw


_Made = tuple[str, Callable[[], nn.Module], Callable[[], Batch]]


def _mlps() -> Iterator[_Made]:
    for width, depth, batch, inputs in (
        (64, 2, 8, 64), (128, 3, 64, 256), (256, 4, 32, 784), (512, 2, 128, 784),
        (768, 6, 32, 256), (1024, 2, 16, 1024), (2048, 2, 64, 512), (4096, 1, 8, 784),
        (300, 5, 100, 300), (96, 10, 256, 96),
    ):  # fmt: skip
        yield (
            f"mlp {inputs}-{width}x{depth} b{batch}",
            lambda w=width, d=depth, i=inputs: mlp(i, w, d),  # type: ignore[misc]
            _numbers(batch, inputs),
        )
    yield "mlp gelu 512x4 b64", lambda: mlp(512, 512, 4, nn.GELU), _numbers(64, 512)
    yield "mlp tanh 256x6 b64", lambda: mlp(256, 256, 6, nn.Tanh), _numbers(64, 256)
    yield "layer norms 256x6 b128", _normed, _numbers(128, 256)
    yield "convolutions over sequences b16", _Sequence, _numbers(16, 32, 128)


def _cnns() -> Iterator[_Made]:
    for channels, depth, batch, side, more in (
        (8, 3, 16, 28, {}), (16, 4, 32, 32, {}), (24, 6, 8, 32, {}), (48, 4, 8, 24, {}),
        (64, 3, 16, 16, {}), (64, 5, 4, 32, {}), (96, 3, 8, 16, {}), (128, 3, 4, 16, {}),
        (32, 4, 16, 32, {"norm": False}), (32, 4, 16, 32, {"pool": True}),
        (64, 4, 8, 32, {"stride": 2}), (32, 5, 8, 32, {"kernel": 5}), (64, 4, 8, 32, {"kernel": 1}),
        (48, 5, 8, 32, {"depthwise": True}), (32, 2, 4, 64, {}), (16, 3, 2, 112, {}),
    ):  # fmt: skip
        words = "".join(f" {key} {value}" for key, value in more.items())
        yield (
            f"cnn {channels}x{depth} b{batch} {side}x{side}{words}",
            lambda c=channels, d=depth, m=more: _cnn(c, d, **m),  # type: ignore[misc]
            _images(batch, side),
        )


def _texts() -> Iterator[_Made]:
    for width, layers, heads, batch, length, vocabulary in (
        (64, 2, 2, 16, 32, 500), (128, 4, 4, 8, 64, 2000), (256, 2, 4, 8, 32, 1000),
        (256, 3, 8, 4, 128, 300), (384, 2, 6, 4, 64, 5000), (96, 6, 3, 32, 16, 100),
        (512, 1, 8, 2, 64, 1000),
    ):  # fmt: skip
        yield (
            f"transformer {width}x{layers} b{batch} {length} words of {vocabulary}",
            lambda w=width, n=layers, h=heads, v=vocabulary: transformer(w, n, h, v),  # type: ignore[misc]
            _text(batch, length, vocabulary),
        )
    for kind, vocabulary, width, batch, length, layers in (
        (nn.LSTM, 500, 64, 16, 32, 1), (nn.LSTM, 1000, 256, 8, 32, 1),
        (nn.LSTM, 2000, 96, 32, 16, 2), (nn.GRU, 1000, 128, 16, 48, 1),
        (nn.GRU, 200, 192, 4, 64, 2),
    ):  # fmt: skip
        yield (
            f"{kind.__name__.lower()} {width}x{layers} b{batch} {length} words of {vocabulary}",
            lambda k=kind, v=vocabulary, w=width, n=layers: WordModel(  # type: ignore[misc]
                k(w, w, n, batch_first=True), v, w
            ),
            _text(batch, length, vocabulary),
        )


def programs() -> Iterator[Program]:
    """All of them; every third trains with AdamW."""
    programs_of_kinds = [*_mlps(), *_cnns(), *_texts()]
    for number, (name, make, draw) in enumerate(programs_of_kinds):
        yield Program(
            name=name, make=make, draw=draw, optimizer="momentum" if number % 3 else "adamw"
        )


def seconds_of(program: Program) -> float:
    """Processor seconds of a step on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = program.make()
    inputs, labels = program.draw()
    optimizer: torch.optim.Optimizer
    if program.optimizer == "adamw":
        optimizer = torch.optim.AdamW(network.parameters())
    else:
        optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)

    def step() -> object:
        torch.autograd.backward(nn.functional.cross_entropy(network(inputs), labels))
        optimizer.step()
        return optimizer.zero_grad()

    return Clock.of("cpu").step_s(step)
