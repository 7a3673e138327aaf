"""Lists of workloads: the paper's catalogue, and what is measured on CPU settings.

    paper_workloads() -> 832 workloads of Table 2        cpu_workloads() -> narrow ones for a CPU

Both are always the same, in an order that mixes models: any beginning of a list covers them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product, zip_longest
from typing import Any

from driple.jobs.workload import DATA_FORMATS, DATA_SETS, OPTIMIZERS, PRECISIONS, Workload

__all__ = ["cpu_workloads", "paper_workloads"]

_CIFAR_MODELS = (
    "alexnet",
    *(f"resnet{depth}{suffix}" for depth in (20, 32, 44, 56, 110) for suffix in ("", "_v2")),
    "densenet40_k12",
    "densenet100_k12",
    "densenet100_k24",
)
_IMAGENET_MODELS = (
    "alexnet",
    "googlenet",
    "inception3",
    "inception4",
    *(f"resnet{depth}{suffix}" for depth in (50, 101, 152) for suffix in ("", "_v2")),
    "vgg11",
    "vgg16",
    "vgg19",
    "overfeat",
)
_TEXT_MODELS = (
    "nmt_small", "nmt_medium", "nmt_big", "transformer", "transformer_aan", "transformer_big",
)  # fmt: skip
_IMAGE_BATCHES = (32, 64, 128, 256, 512)
_TEXT_BATCHES = (16, 32, 64, 128)
# The largest batch of a model whose activations fill a GPU of 16 GB sooner than the others'.
_LARGEST_BATCH = {
    "inception3": 128, "inception4": 64, "resnet50": 128, "resnet50_v2": 128, "resnet101": 64,
    "resnet101_v2": 64, "resnet152": 64, "resnet152_v2": 64, "vgg16": 128, "vgg19": 128,
    "densenet100_k12": 256, "densenet100_k24": 128, "nmt_big": 64, "transformer_big": 64,
}  # fmt: skip
# 28 pairs of an image model and a data set, and 6 text models, make the paper's 832 (section 2.4).
_PER_IMAGE_MODEL = 25
_PER_TEXT_MODEL = 22


def paper_workloads() -> tuple[Workload, ...]:
    """The 832 workloads of the paper's size: every model of Table 2, every hyper-parameter.

    The paper does not list its combinations. Here each model gets those in which every value of
    every hyper-parameter, and every pair of values, comes up about equally often.
    """
    pairs = [
        *((model, "cifar10") for model in _CIFAR_MODELS),
        *((model, "imagenet") for model in _IMAGENET_MODELS),
        *((model, "europarl") for model in _TEXT_MODELS),
    ]
    rounds = zip_longest(*(_balanced(model, data, i) for i, (model, data) in enumerate(pairs)))
    return tuple(workload for part in rounds for workload in part if workload is not None)


def _balanced(model: str, data_set: str, turn: int) -> list[Workload]:
    """Combinations for one model, chosen one by one: the one whose values came up least so far.

    Among equals the first is taken; `turn` turns each list of values, so that models begin apart.
    """
    image = DATA_SETS[data_set].image_size > 0
    largest = _LARGEST_BATCH.get(model, _IMAGE_BATCHES[-1])
    values: tuple[Sequence[Any], ...] = (
        [size for size in (_IMAGE_BATCHES if image else _TEXT_BATCHES) if size <= largest],
        OPTIMIZERS,
        (True, False),
        PRECISIONS,
        DATA_FORMATS if image else DATA_FORMATS[:1],
    )
    turned = (_turned(tuple(choices), turn + i) for i, choices in enumerate(values))
    left = [tuple(enumerate(choice)) for choice in product(*turned)]
    used: Counter[object] = Counter()
    chosen = []
    for _ in range(_PER_IMAGE_MODEL if image else _PER_TEXT_MODEL):
        best = min(left, key=lambda choice: sum(used[mark] for mark in _marks(choice)))
        left.remove(best)
        used.update(_marks(best))
        batch_size, optimizer, sync, precision, data_format = (value for _, value in best)
        chosen.append(
            Workload(
                model=model,
                data_set=data_set,
                batch_size=batch_size,
                optimizer=optimizer,
                sync=sync,
                precision=precision,
                data_format=data_format,
            )
        )
    return chosen


def _turned(values: tuple[Any, ...], by: int) -> tuple[Any, ...]:
    return values[by % len(values) :] + values[: by % len(values)]


def _marks(choice: tuple[tuple[int, object], ...]) -> list[object]:
    """What a combination uses up: its values, and its pairs of values."""
    return [*choice, *((a, b) for i, a in enumerate(choice) for b in choice[:i])]


# Model, data set, width and batch sizes whose steps take a few tenths of a second on 0.4 of a core
# behind 200 Mbit/s.
_CPU_GRID: tuple[tuple[str, str, float, tuple[int, ...]], ...] = (
    ("alexnet", "cifar10", 0.5, (32, 64)),
    ("alexnet", "cifar10", 0.25, (64, 96, 128)),
    ("alexnet", "imagenet64", 0.25, (8, 16, 32)),
    ("lenet", "mnist", 0.5, (64, 128, 256)),
    ("lenet", "mnist", 0.25, (128, 256, 512)),
    ("lenet", "cifar10", 0.25, (128, 256, 384)),
    ("vgg11", "imagenet64", 0.125, (32, 64, 96)),
    ("vgg11", "cifar10", 0.125, (64, 128, 256)),
    ("vgg16", "cifar10", 0.125, (64, 128, 192)),
    ("vgg19", "cifar10", 0.125, (32, 64, 128)),
    ("overfeat", "imagenet64", 0.0625, (16, 32, 64)),
    ("overfeat", "cifar10", 0.125, (64, 96, 128)),
    ("googlenet", "imagenet64", 0.25, (4, 6, 8)),
    ("googlenet", "cifar10", 0.25, (16, 24, 32)),
    ("googlenet", "cifar10", 0.125, (16, 32, 64)),
    ("inception3", "imagenet64", 0.125, (8, 16, 32)),
    ("inception3", "cifar10", 0.125, (16, 32, 64)),
    ("inception4", "imagenet64", 0.0625, (8, 16, 32)),
    ("inception4", "cifar10", 0.0625, (16, 32, 64)),
    ("resnet20", "cifar10", 1.0, (8, 16, 24)),
    ("resnet32", "cifar10", 1.0, (8, 12, 16)),
    ("resnet44", "cifar10", 0.5, (8, 16, 24)),
    ("resnet56", "cifar10", 0.5, (8, 12, 16)),
    ("resnet110", "cifar10", 0.25, (4, 8, 16)),
    ("resnet50", "imagenet64", 0.125, (16, 32, 48)),
    ("resnet101", "imagenet64", 0.0625, (16, 32)),
    ("resnet152", "imagenet64", 0.0625, (8, 16)),
    ("resnet20_v2", "cifar10", 1.0, (8, 16, 24)),
    ("resnet32_v2", "cifar10", 1.0, (8, 12, 16)),
    ("resnet44_v2", "cifar10", 0.5, (8, 16, 24)),
    ("resnet56_v2", "cifar10", 0.5, (8, 12, 16)),
    ("resnet50_v2", "imagenet64", 0.125, (16, 32, 48)),
    ("resnet101_v2", "cifar10", 0.0625, (16, 32, 64)),
    ("densenet40_k12", "cifar10", 0.5, (4, 6, 8)),
    ("densenet100_k12", "cifar10", 0.25, (1, 2)),
    ("transformer", "europarl-short", 0.125, (16, 32)),
    ("transformer", "europarl-short", 0.0625, (32, 64, 128)),
    ("transformer_aan", "europarl-short", 0.0625, (32, 64, 128)),
    ("transformer_big", "europarl-short", 0.0625, (16, 32)),
    ("nmt_small", "europarl-short", 0.125, (32, 64)),
    ("nmt_medium", "europarl-short", 0.0625, (32, 64, 128)),
    ("nmt_big", "europarl-short", 0.0625, (32, 64)),
)
_PER_MODEL = 8


def cpu_workloads() -> tuple[Workload, ...]:
    """The workloads measured on CPU settings, in an order that mixes families and sizes.

    Each row of the grid takes `_PER_MODEL` of its combinations of batch size, optimizer and
    synchronisation, such that each value of each factor comes up about equally often.
    """
    rounds: list[list[Workload]] = [[] for _ in range(_PER_MODEL)]
    for row, (model, data_set, width, batch_sizes) in enumerate(_CPU_GRID):
        for i in range(_PER_MODEL):
            rounds[i].append(
                Workload(
                    model=model,
                    data_set=data_set,
                    batch_size=batch_sizes[(i + row) % len(batch_sizes)],
                    optimizer=OPTIMIZERS[(i + row) % len(OPTIMIZERS)],
                    sync=(i // len(OPTIMIZERS) + i + row // 2) % 2 == 0,
                    width=width,
                )
            )
    return tuple(workload for part in rounds for workload in part)
