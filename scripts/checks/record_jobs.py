"""Ten small DDP programs on two processes (Gloo, CPU), to be recorded.

    python -m scripts.checks.record_jobs gpt --seconds 30 --port 29600

Every process marks its steps. Models, batch sizes, input pipelines and pauses differ, as people's
programs do.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

import driple

__all__ = ["JOBS"]

Batch = tuple[Tensor, Tensor]


class _Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.core = nn.Embedding(2000, 128), nn.LSTM(128, 128, batch_first=True)
        self.head = nn.Linear(128, 2000)

    def forward(self, words: Tensor) -> Tensor:
        hidden, _ = self.core(self.table(words))
        logits: Tensor = self.head(hidden)
        return logits.flatten(0, 1)


class _Gpt(nn.Module):
    def __init__(self, layers: int = 4, width: int = 192) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0)
        self.core = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1000)

    def forward(self, words: Tensor) -> Tensor:
        logits: Tensor = self.head(self.core(self.table(words)))
        return logits.flatten(0, 1)


def _mlp(width: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    layers += [part for _ in range(depth) for part in (nn.LazyLinear(width), nn.ReLU())]
    return nn.Sequential(*layers, nn.LazyLinear(10))


def _cnn(channels: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.LazyConv2d(channels, 3, padding=1), nn.LazyBatchNorm2d(), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(10))


def _images(batch: int, size: int) -> Callable[[], Batch]:
    return lambda: (torch.randn(batch, 3, size, size), torch.randint(10, (batch,)))


def _words(batch: int, length: int, vocabulary: int) -> Callable[[], Batch]:
    def draw() -> Batch:
        words = torch.randint(vocabulary, (batch, length + 1))
        return words[:, :-1], words[:, 1:].flatten()

    return draw


# Model, batch, steps between validations (0: none), sleep of the input pipeline in seconds.
JOBS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Batch], int, float]] = {
    "mlp": (lambda: _mlp(1024, 3), _images(128, 16), 0, 0.0),
    "wide_mlp": (lambda: _mlp(3000, 2), _images(64, 16), 0, 0.0),
    "deep_mlp": (lambda: _mlp(512, 12), _images(64, 16), 0, 0.02),
    "cnn": (lambda: _cnn(32, 5), _images(32, 32), 0, 0.0),
    "deep_cnn": (lambda: _cnn(48, 10), _images(16, 32), 0, 0.0),
    "slow_input": (lambda: _cnn(24, 3), _images(32, 24), 0, 0.1),
    "validating": (lambda: _cnn(32, 4), _images(32, 32), 60, 0.0),
    "lstm": (_Lstm, _words(16, 32, 2000), 0, 0.0),
    "gpt": (_Gpt, _words(8, 64, 1000), 0, 0.0),
    "small_gpt": (lambda: _Gpt(2, 128), _words(16, 32, 1000), 0, 0.01),
}


def _train(rank: int, name: str, seconds: float, address: str, first_rank: int) -> None:
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    make, draw, validate_every, wait_s = JOBS[name]
    rank += first_rank
    os.environ["RANK"] = str(rank)
    dist.init_process_group("gloo", init_method=f"tcp://{address}", rank=rank, world_size=2)
    network = make()
    network(draw()[0])  # lazy layers take their sizes
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    end_s, step, go_on = time.monotonic() + seconds, 0, torch.ones(1)
    while go_on.item():
        inputs, labels = draw()
        time.sleep(wait_s)
        nn.functional.cross_entropy(model(inputs), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        driple.mark_step()
        if validate_every and step % validate_every == 0:
            with torch.no_grad():
                for _ in range(20):
                    network(draw()[0])
        if step % 20 == 0:  # both end at the same step
            go_on.fill_(float(time.monotonic() < end_s))
            dist.all_reduce(go_on, op=dist.ReduceOp.MIN)
    dist.destroy_process_group()


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=list(JOBS))
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--address", default="127.0.0.1:29600")
    parser.add_argument("--rank", type=int, help="run this process alone, as on its own host")
    given = parser.parse_args()
    if given.rank is None:
        spawn(_train, (given.job, given.seconds, given.address, 0), nprocs=2)  # type: ignore[no-untyped-call]
    else:
        _train(0, given.job, given.seconds, given.address, given.rank)


if __name__ == "__main__":
    _main()
