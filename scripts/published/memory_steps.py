"""Make the store of the steps of published memory rows: datasets/runs/published/memory_steps.xz.

    python -m scripts.published.memory_steps --work FOLDER [--processes 2] [--every 100]

Each step is traced once, on the meta device, at a batch size of 1,009, a prime: sizes that are
multiples of it grow with the batch, all others stay. What was traced lies in the folder, so that a
run that was stopped goes on. Steps that fail are listed in
datasets/runs/published/memory_failures.csv. With --every, only so many of the steps are traced; the
others stay as they are in the store, and so does the list.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from driple.errors import DatasetError, DripleError
from driple.files import atomic_write
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import TensorRole
from driple.memory.step_memory import BatchedMemory, StepMemory
from driple.runs.step_key import TIMM
from scripts.fits.memory_rows import MEMORY_FILE, MemoryRun, read_memory_runs
from scripts.fits.memory_store import MEMORY_STEPS_FILE, MemoryStore, write_memory_steps
from scripts.published.pytorch_steps import MARK, OWN, options_of

_GROUP = 128  # weights that share a scale of two bytes
ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "datasets" / "runs" / "published"


def main(argv: Sequence[str] | None = None) -> int:
    """Trace what is missing, then pack."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of what was traced")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="one of so many steps, in order")
    parser.add_argument("--published", type=Path, default=PUBLISHED)
    given = parser.parse_args(argv)
    given.work.mkdir(parents=True, exist_ok=True)
    store = given.published / MEMORY_STEPS_FILE
    rows = {row.step: row for row in read_memory_runs(given.published / MEMORY_FILE)}
    rows = {name: rows[name] for name in sorted(rows)[:: given.every]}
    files = {name: _file(given.work, name) for name in rows}
    todo = [row for name, row in sorted(rows.items(), reverse=True) if not _is_done(files[name])]
    print(f"{len(rows)} steps, {len(todo)} to trace", flush=True)
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        for number, _ in enumerate(pool.map(trace_one, todo, [given.work] * len(todo)), 1):
            if number % 50 == 0:
                print(f"{number} of {len(todo)}", flush=True)
    steps: dict[str, BatchedMemory] = {}
    if given.every > 1 and store.exists():
        steps |= MemoryStore.open(store).steps
    failures = []
    for name, file in sorted(files.items()):
        failed = file.with_suffix(".failed")
        if failed.exists():
            failures.append((name, failed.read_text(encoding="utf-8")))
        else:
            steps |= MemoryStore.open(file).steps
    size = write_memory_steps(store, steps)
    if given.every == 1:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([("step", "reason"), *failures])
        file = given.published / "memory_failures.csv"
        atomic_write(file, text.getvalue().encode(), error=DatasetError)
    print(f"{len(steps)} steps, {size / 1e6:.2f} MB; {len(failures)} failed", flush=True)
    return 0


def trace_one(row: MemoryRun, work: Path) -> None:
    """Trace a row's step into its file; the reason if it fails."""
    warnings.simplefilter("ignore")
    file = _file(work, row.step)
    try:
        step = marked(traced(row, MARK), MARK)
    except DripleError as error:
        atomic_write(file.with_suffix(".failed"), str(error).encode(), error=DatasetError)
    else:
        write_memory_steps(file, {row.step: step})


def traced(row: MemoryRun, batch_size: int) -> OpGraph:
    """The graph of a row's step, on the path of a user."""
    if row.job.startswith("mlp:"):
        return _perceptron(row, batch_size)
    options = replace(
        options_of(row.key),
        optimizer=row.optimizer,
        library=row.library,  # type: ignore[arg-type]  # checked there
        compiled=False,
    )
    if row.job.startswith(TIMM):
        from driple.jobs.pytorch.timm_models import timm_step

        shape = (3, row.size, row.size) if row.size else None
        name = row.job.removeprefix(TIMM)
        with _attention(fused=row.capability > 0):
            return timm_step(name, batch_size=batch_size, input_shape=shape, step=options).graph
    from scripts.published.models import traced_job

    if not row.job.startswith(OWN):
        raise DatasetError(f"no way to build {row.job}")
    graph = traced_job(row.job, batch_size=batch_size, size=row.size, options=options)
    return _packed_experts(graph) if "+qlora" in row.job else graph


@contextmanager
def _attention(*, fused: bool) -> Iterator[None]:
    """Have timm's models compute attention by one function, or as products and a softmax.

    The latter is what they did before PyTorch 2.
    """
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    from timm.layers.config import set_fused_attn

    set_fused_attn(enable=fused)
    try:
        yield
    finally:
        set_fused_attn(enable=True)


def _packed_experts(graph: OpGraph) -> OpGraph:
    """Experts of four bits, where the installed transformers keeps them in tensors without layers.

    The sources' version had a linear layer for each, which adapters pack.
    """
    table, lives = graph.parameters, graph.lifetimes
    packed = np.array(["experts" in one for one in table.names]) & ~table.is_trained
    nbytes = np.where(packed, table.elements // 2 + table.elements // _GROUP * 2, table.nbytes)
    rows = np.flatnonzero((lives.roles == TensorRole.PARAMETER) & (lives.made_by < 0))
    sizes = lives.nbytes.copy()
    sizes[rows[: len(nbytes)]] = nbytes
    return replace(
        graph,
        parameters=replace(table, nbytes=nbytes),
        lifetimes=replace(lives, nbytes=sizes),
    )


def _perceptron(row: MemoryRun, batch_size: int) -> OpGraph:
    """Linear layers with ReLU between them, and the cross-entropy of classes."""
    import torch
    from torch import nn

    from driple.graph.torch.options import StepOptions
    from driple.graph.torch.step import traced_step

    widths = [int(one) for one in row.job.removeprefix("mlp:").split("-")]
    with torch.device("meta"):
        layers: list[nn.Module] = []
        for inner, outer in pairwise(widths):
            layers += [nn.Linear(inner, outer), nn.ReLU()]
        model = nn.Sequential(*layers[:-1])
        batch = torch.empty(batch_size, widths[0])
        labels = torch.empty(batch_size, dtype=torch.int64)
    options = StepOptions(precision="fp32", optimizer=row.optimizer)
    return traced_step(
        model, batch, lambda made: nn.functional.cross_entropy(made, labels), options
    )


def marked(graph: OpGraph, mark: int) -> BatchedMemory:
    """The step at every batch size: multiples of the mark grow with it."""
    step = StepMemory.of(graph)
    grows = step.nbytes % mark == 0
    fixed = np.where(grows, 0, step.nbytes)
    each = np.where(grows, step.nbytes // mark, 0)
    return BatchedMemory(
        step=replace(step, nbytes=fixed), batch_size=0, bytes_each=each.astype(np.float64)
    )


def _is_done(file: Path) -> bool:
    return file.exists() or file.with_suffix(".failed").exists()


def _file(work: Path, name: str) -> Path:
    return work / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.step"


if __name__ == "__main__":
    sys.exit(main())
