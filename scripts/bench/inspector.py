"""Time of grouping, of training steps, and of predicting with preset `paper`.

    python -m scripts.bench.inspector [--repeats 9] [--threads 2] [--compiled]

Prints medians. Run it on a machine where nothing else runs; weights and graphs are random. With
--compiled it times training steps of both presets alone, as they are and under torch.compile,
which takes minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from driple.features import InputConfig, InspectorInput, fluid_communities
from driple.inspector.checkpoint import Checkpoint, save_checkpoint
from driple.inspector.config import InspectorConfig
from driple.inspector.ensemble import make_inspector
from driple.inspector.model import GroupBatch, Inspector, make_batch
from driple.inspector.predict import Predictor
from driple.inspector.scaling import InputScaler, TargetScaler
from driple.inspector.trained_on import TrainedOn
from driple.training.config import preset_named
from scripts.bench.timing import median_s

NUM_GROUPS = 100
BATCH_SIZE = 32
GROUPING_SIZES = (1_000, 3_258, 19_000)


def layered_graph(num_nodes: int) -> np.ndarray:
    """Edges like those of a training step: a chain, skips, forward tensors used backward."""
    generator = np.random.default_rng(0)
    chain = np.stack([np.arange(num_nodes - 1), np.arange(1, num_nodes)], axis=1)
    start = generator.integers(0, num_nodes - 1, size=num_nodes // 3)
    end = np.minimum(num_nodes - 1, start + generator.integers(1, 60, size=len(start)))
    forward = np.arange(0, num_nodes // 2, 5)
    back = np.stack([forward, num_nodes - 1 - forward], axis=1)
    return np.concatenate([chain, np.stack([start, end], axis=1), back])


def random_input(seed: int) -> InspectorInput:
    """An input of 100 groups and some 300 edges."""
    generator = np.random.default_rng(seed)
    pairs = np.sort(generator.integers(0, NUM_GROUPS, size=(300, 2)), axis=1)
    return InspectorInput(
        features=generator.normal(size=(NUM_GROUPS, 3)).astype(np.float32),
        edges=np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0).astype(np.int32),
        context=np.zeros(0, dtype=np.float32),
        facts={},
        num_nodes=3_000,
        num_edges=4_000,
        num_ops=3_000,
        unknown_op_types={},
    )


def paper(*, fused: bool) -> nn.Module:
    """The inspector of preset `paper`."""
    torch.manual_seed(0)
    return Inspector(InspectorConfig(), NUM_GROUPS, fused=fused)


def default() -> nn.Module:
    """The inspectors of preset `default`, without its costs."""
    torch.manual_seed(0)
    return make_inspector(preset_named("default").inspector, NUM_GROUPS)


def training_step(model: nn.Module, *, compiled: bool = False) -> Callable[[], None]:
    """Forward, backward and Adam on one batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, weight_decay=1e-6)
    batch: GroupBatch = make_batch([random_input(i) for i in range(BATCH_SIZE)])
    targets = torch.rand(BATCH_SIZE, 12)
    forward = torch.compile(model) if compiled else model

    def step() -> None:
        optimizer.zero_grad()
        outputs = forward(batch)
        loss = functional.mse_loss(outputs, targets.expand_as(outputs))
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()

    return step


def print_steps(repeats: int, *, compiled: bool) -> None:
    """Time of a training step of each preset; the first compiled one includes the compiler.

    The fused stages are left out of that: oneDNN's operator takes constant weights when compiled.
    """
    plain, fused = partial(paper, fused=False), partial(paper, fused=True)
    steps: list[tuple[str, Callable[[], nn.Module], bool]] = [
        ("paper, plain", plain, False),
        ("paper, fused", fused, False),
        ("default", default, False),
    ]
    if compiled:
        steps += [("paper, plain, compiled", plain, True), ("default, compiled", default, True)]
    for name, make, way in steps:
        step = training_step(make(), compiled=way)
        began = time.perf_counter()
        step()
        first_s = time.perf_counter() - began
        seconds = median_s(step, repeats)
        print(f"training step, {name:24s} {seconds * 1e3:8.1f} ms, the first {first_s:.1f} s")


def random_checkpoint() -> Checkpoint:
    """Preset `paper` with random weights."""
    torch.manual_seed(0)
    model = Inspector(InspectorConfig(), NUM_GROUPS)
    return Checkpoint(
        weights={name: value.numpy() for name, value in model.state_dict().items()},
        config=model.config,
        input_config=InputConfig(),
        num_groups=NUM_GROUPS,
        op_type_table={"Add": 1.0},
        input_scaler=InputScaler.identity(),
        target_scaler=TargetScaler.fit(np.ones((1, 12)), "max"),
        setting="random",
        provenance="simulated",
        trained_on=TrainedOn(),
        metrics={},
        preset="paper",
        versions={},
    )


def cold_start_s(checkpoint: Checkpoint, repeats: int) -> float:
    """Seconds from starting Python to the first prediction of a small graph."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        save_checkpoint(checkpoint, path)
        code = (
            "import sys, numpy as np\n"
            "from driple.graph.opgraph import OpGraph\n"
            "from driple.inspector.checkpoint import load_checkpoint\n"
            "from driple.inspector.predict import predict\n"
            "n = 1000\n"
            "edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).astype(np.int32)\n"
            "graph = OpGraph(names=tuple(map(str, range(n))), op_types=('Add',) * n,\n"
            "    devices=('',) * n, edges=edges, is_control=np.zeros(n - 1, bool),\n"
            "    tensor_elements=np.ones(n, np.int64), tensor_bytes=np.ones(n, np.int64))\n"
            "predict(graph, load_checkpoint(sys.argv[1]))\n"
        )
        command = [sys.executable, "-c", code, str(path)]
        return median_s(lambda: subprocess.run(command, check=True), repeats)


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument("--compiled", action="store_true", help="training steps, compiled or not")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"load {os.getloadavg()[0]:.2f}, torch {torch.__version__}, {args.threads} threads")
    if args.compiled:
        print_steps(args.repeats, compiled=True)
        return
    for size in GROUPING_SIZES:
        edges = layered_graph(size)
        seconds = median_s(partial(fluid_communities, size, edges, NUM_GROUPS, 0), 3)
        print(f"grouping {size:6d} nodes into {NUM_GROUPS}          {seconds * 1e3:8.1f} ms")
    print_steps(args.repeats, compiled=False)
    checkpoint = random_checkpoint()
    print(f"start, import, load, first prediction  {cold_start_s(checkpoint, 5):8.3f} s")
    predictor, inputs = Predictor(checkpoint), [random_input(0)]
    seconds = median_s(lambda: predictor.predict_inputs(inputs), 5 * args.repeats)
    print(f"prediction of one graph, warm          {seconds * 1e3:8.1f} ms")
    many = [random_input(i) for i in range(256)]
    seconds = median_s(lambda: predictor.predict_inputs(many), 3)
    print(f"predictions per second, batch of 256   {len(many) / seconds:8.0f}")


if __name__ == "__main__":
    main()
