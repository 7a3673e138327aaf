"""Training steps on the processor's cores: networks of the sizes that people train there.

Clock -> (ProcessorProgram, seconds of a step) ...

The same networks are read as jobs, whose ops the simulator prices by three numbers of the cores:
multiply-adds, bytes and starts (`driple.simulate.processor`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from driple.measure.machine.clock import Clock

__all__ = ["PROGRAMS", "ProcessorProgram", "WordModel", "mlp", "step_seconds", "threads",
           "transformer"]  # fmt: skip

_CLASSES = 10


class WordModel(nn.Module):
    """Words through a core of layers, to the next word."""

    def __init__(self, core: nn.Module, vocabulary: int, width: int) -> None:
        super().__init__()
        self.table, self.core = nn.Embedding(vocabulary, width), core
        self.head = nn.Linear(width, vocabulary)

    def forward(self, words: Tensor) -> Tensor:
        """Logits of the next word, a row for each word."""
        output = self.core(self.table(words))
        hidden = output[0] if isinstance(output, tuple) else output
        logits: Tensor = self.head(hidden)
        return logits.flatten(0, 1)


def mlp(inputs: int, width: int, depth: int, act: type[nn.Module] = nn.ReLU) -> nn.Module:
    """Hidden layers of one width, each with an activation, and a layer of classes."""
    layers: list[nn.Module] = [nn.Linear(inputs, width), act()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), act()]
    return nn.Sequential(*layers, nn.Linear(width, _CLASSES))


def _convolutional(channels: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = []
    for number in range(depth):
        layers += [nn.Conv2d(channels if number else 3, channels, 3, padding=1)]
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, _CLASSES)
    )


def transformer(width: int, layers: int, heads: int, vocabulary: int) -> nn.Module:
    """Blocks of attention and an MLP four times as wide, over words."""
    blocks = [
        nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True, dropout=0.0)
        for _ in range(layers)
    ]
    return WordModel(nn.Sequential(*blocks), vocabulary, width)


def _recurrent(width: int, vocabulary: int) -> nn.Module:
    return WordModel(nn.LSTM(width, width, batch_first=True), vocabulary, width)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorProgram:
    """A training step with momentum.

    Attributes:
        name: such as `transformer 256`.
        module: makes the network.
        shape: of its inputs, the batch first.
        vocabulary: of words; 0 where the inputs are numbers.
    """

    name: str
    module: Callable[[], nn.Module]
    shape: tuple[int, ...]
    vocabulary: int = 0

    def batch(self) -> tuple[Tensor, Tensor]:
        """Inputs and labels."""
        if self.vocabulary:
            words = torch.randint(self.vocabulary, self.shape)
            return words, torch.randint(self.vocabulary, (words.numel(),))
        return torch.rand(self.shape), torch.randint(_CLASSES, self.shape[:1])


PROGRAMS = (
    ProcessorProgram(name="mlp 96", module=lambda: mlp(96, 96, 10), shape=(256, 96)),
    ProcessorProgram(name="mlp 300", module=lambda: mlp(300, 300, 5), shape=(100, 300)),
    ProcessorProgram(name="mlp 512", module=lambda: mlp(784, 512, 2), shape=(128, 784)),
    ProcessorProgram(name="mlp 768", module=lambda: mlp(256, 768, 6), shape=(32, 256)),
    ProcessorProgram(name="mlp 2048", module=lambda: mlp(512, 2048, 2), shape=(64, 512)),
    ProcessorProgram(
        name="convolutions 16", module=lambda: _convolutional(16, 4), shape=(16, 3, 32, 32)
    ),
    ProcessorProgram(
        name="convolutions 64", module=lambda: _convolutional(64, 3), shape=(16, 3, 16, 16)
    ),
    ProcessorProgram(
        name="convolutions 128", module=lambda: _convolutional(128, 3), shape=(4, 3, 16, 16)
    ),
    ProcessorProgram(
        name="transformer 64",
        module=lambda: transformer(64, 2, 2, 500),
        shape=(16, 32),
        vocabulary=500,
    ),
    ProcessorProgram(
        name="transformer 256",
        module=lambda: transformer(256, 2, 4, 1000),
        shape=(8, 32),
        vocabulary=1000,
    ),
    ProcessorProgram(
        name="recurrent 96",
        module=lambda: _recurrent(96, 2000),
        shape=(32, 16),
        vocabulary=2000,
    ),
)


def step_seconds(
    clock: Clock,
    progress: Callable[[str], None] = lambda _: None,
    programs: Sequence[ProcessorProgram] = PROGRAMS,
) -> list[tuple[ProcessorProgram, float]]:
    """Seconds of a step of each program, with as many threads as PyTorch has here.

    Args:
        clock: of the processor.
        progress: called before each.
        programs: that are timed.
    """
    timed = []
    for program in programs:
        progress(f"processor: {program.name}")
        timed.append((program, clock.step_s(_step(program))))
    return timed


def threads() -> int:
    """Threads that compute a step here."""
    return torch.get_num_threads()


def _step(program: ProcessorProgram) -> Callable[[], object]:
    module = program.module()
    inputs, labels = program.batch()
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9)

    def train() -> object:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(inputs), labels)
        torch.autograd.backward(loss)
        return optimizer.step()

    return train
