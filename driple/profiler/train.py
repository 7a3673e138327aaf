"""The training script of the built-in workloads; also what `driple.profiler.profile` runs.

    driple profile run -- -m driple.profiler.train resnet18 --image-size 64 --batch-size 16
    torchrun --nproc-per-node 2 -m driple.profiler.train resnet18 --data images/ --epochs 1

Plain synchronous data-parallel training: DistributedDataParallel, one process per device, NCCL on
GPUs and Gloo on CPUs, SGD with momentum. The script does not use the profiler.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from driple.errors import ConfigError, DripleError
from driple.jobs.import_path import function_named
from driple.jobs.pytorch.samples import ImageFolder, RandomSamples, TokenFile
from driple.jobs.pytorch.workloads import WORKLOADS, PyTorchWorkload, pytorch_workload_named

__all__ = ["main"]

_VOCABULARY = 30_522


def main(arguments: Sequence[str]) -> int:
    """Train; exit status."""
    options = _parser().parse_args(arguments)
    try:
        model, dataset, loss = _parts(options)
    except DripleError as error:
        print(f"driple: {error}", file=sys.stderr)
        return 2
    _train(options, model, dataset, loss)
    return 0


def _parts(options: argparse.Namespace) -> tuple[nn.Module, Dataset[Any], Callable[..., Tensor]]:
    """Model, data and loss as requested."""
    torch.manual_seed(0)
    if options.model is None:
        if options.workload is None:
            raise ConfigError(f"name a workload, one of {', '.join(WORKLOADS)}")
        workload = pytorch_workload_named(options.workload)
        dataset, num_classes = _data_of(workload, options)
        return workload.build(num_classes), dataset, workload.loss()
    chosen: Callable[..., Tensor] = (
        nn.CrossEntropyLoss() if options.loss is None else function_named(options.loss)
    )
    return function_named(options.model)(), function_named(options.dataset)(), chosen


def _data_of(workload: PyTorchWorkload, options: argparse.Namespace) -> tuple[Dataset[Any], int]:
    """The workload's data, and its number of classes."""
    if workload.kind == "tokens":
        if options.data is not None:
            return TokenFile(options.data), 0
        shape = (options.length,)
        return RandomSamples(options.samples, shape, _VOCABULARY, tokens=True), 0
    size = options.image_size or workload.image_size
    if size < workload.least_size:
        raise ConfigError(
            f"{workload.name} takes images from {workload.least_size} pixels on, got {size}"
        )
    if options.data is None:
        return RandomSamples(options.samples, (3, size, size), options.classes), options.classes
    images = ImageFolder(options.data, size)
    return images, max(options.classes, images.num_classes)


def _train(
    options: argparse.Namespace,
    model: nn.Module,
    dataset: Dataset[Any],
    loss: Callable[..., Tensor],
) -> None:
    """Some epochs of synchronous data-parallel training."""
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if gpu else "cpu"
    if gpu:
        torch.cuda.set_device(device)
    alone = "RANK" not in os.environ
    if alone:
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": "29500"}  # fmt: skip
    distributed.init_process_group("nccl" if gpu else "gloo")
    ready = DistributedDataParallel(model.to(device), bucket_cap_mb=options.bucket_mb)
    optimizer = torch.optim.SGD(ready.parameters(), lr=0.01, momentum=0.9)
    sampler: DistributedSampler[Any] = DistributedSampler(dataset)
    loader = DataLoader(
        dataset,
        batch_size=options.batch_size,
        sampler=sampler,
        num_workers=options.workers,
        drop_last=True,
    )
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            outputs = ready(inputs.to(device, non_blocking=True))
            error = loss(outputs, labels.to(device, non_blocking=True))
            error.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    distributed.destroy_process_group()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m driple.profiler.train",
        description="Train a built-in workload with DistributedDataParallel.",
    )
    parser.add_argument("workload", nargs="?", help=", ".join(WORKLOADS))
    parser.add_argument("--data", type=Path, help="image folder, or file of tokens; else in memory")
    parser.add_argument("--batch-size", type=int, default=32, help="of each process")
    parser.add_argument("--image-size", type=int, help="height and width, pixels")
    parser.add_argument("--length", type=int, default=128, help="tokens of a sample")
    parser.add_argument("--samples", type=int, default=4096, help="in memory, without --data")
    parser.add_argument("--classes", type=int, default=1000, help="of images")
    parser.add_argument("--workers", type=int, default=0, help="processes that load data")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--bucket-mb", type=float, help="of DDP, MiB; its own default otherwise")
    parser.add_argument("--model", help="MODULE:FUNCTION that builds a model, for a workload")
    parser.add_argument("--dataset", help="MODULE:FUNCTION that builds a data set")
    parser.add_argument("--loss", help="MODULE:FUNCTION of outputs and labels; cross entropy")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
