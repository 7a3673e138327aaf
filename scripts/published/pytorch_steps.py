"""Make the store of the steps of all published PyTorch rows: datasets/runs/published/steps.

    python -m scripts.published.pytorch_steps --work FOLDER [--processes 2] [--rows FILE.csv.gz]
    python -m scripts.published.pytorch_steps --work FOLDER --part timm-train-unfused

Each job of the tables is traced once, on the meta device, at a batch size that marks every size
that grows with it: `MARK` is a large prime. What was traced lies in the folder, so that a run that
was stopped goes on; a job that fails is listed with its reason in FOLDER/failures.csv, and in the
store's table of failures. At the end all of it is packed. With `--part`, these files of the store
alone are made, and what follows from steps of the other files is taken from there.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import os
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from driple.catalog import device_named
from driple.errors import ConfigError, DatasetError, DripleError, GraphError, SettingError
from driple.files import atomic_write
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature
from driple.graph.step_facts import TensorLifetimes
from driple.graph.stored_graph import graph_to_bytes, read_stored_graph
from driple.graph.torch.options import StepOptions
from driple.runs.published_runs import library_of
from driple.runs.step_key import TIMM, UNFUSED, StepKey, attention_of
from driple.runs.step_store import (
    ATTENTION,
    FLASH_FROM,
    SOFTMAX,
    StepStore,
    StoredStep,
    follows_from,
)
from scripts.published.step_pack import StepPacker

ROOT = Path(__file__).resolve().parents[2]
TABLES = (
    ROOT / "datasets" / "runs" / "published" / "pytorch_rows.csv.gz",
    ROOT / "datasets" / "runs" / "published" / "pytorch_forward.csv.gz",
)
_FAILURES = "failures.csv"
MARK = 1009  # a prime that no size of a model is a multiple of
STORE = ROOT / "datasets" / "runs" / "published" / "steps"
OWN = "own:"
_BY_HAND = frozenset({"batch_matmul", "softmax"})  # attention without a kernel of its own
_OPTIMIZER = "momentum"
_USUAL_OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")


def main(argv: Sequence[str] | None = None) -> int:
    """Trace what is missing, then pack."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of what was traced")
    parser.add_argument("--rows", type=Path, action="append", help="table of rows; both shipped")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=int, help="trace at most so many")
    parser.add_argument("--out", type=Path, default=STORE, help="folder of the store")
    parser.add_argument("--part", action="append", help="file of the store to make; all")
    given = parser.parse_args(argv)
    given.work.mkdir(parents=True, exist_ok=True)
    wanted = wanted_keys(given.rows or TABLES)
    store = StepStore.open(given.out) if given.part else None
    keys = ordered(key for key in chosen(wanted, given.part) if not follows_stored(key, store))
    todo = [key for key in keys if not any(_files(given.work, key, exists=True))]
    print(f"{len(keys)} steps, {len(todo)} to trace", flush=True)
    trace_all(todo[: given.most], given.work, given.processes)
    given.out.mkdir(parents=True, exist_ok=True)
    pack_all(keys, wanted, given.work, given.out, store)
    return 0


def chosen(keys: Iterable[StepKey], files: Sequence[str] | None) -> list[StepKey]:
    """The steps of some files of the store; of all if None.

    Raises:
        ConfigError: the store has no such file.
    """
    known = parts(keys)
    if odd := set(files or ()) - set(known):
        raise ConfigError(f"--part is one of {', '.join(known)}; got {', '.join(sorted(odd))}")
    return [key for name in files or known for key in known[name]]


def pack_all(
    keys: Sequence[StepKey],
    wanted: Mapping[StepKey, set[str]],
    work: Path,
    out: Path,
    store: StepStore | None = None,
) -> None:
    """Write the files of the store, and the table of what failed.

    Args:
        keys: steps of these files.
        wanted: optimizers of each step.
        work: folder of what was traced.
        out: folder of the store.
        store: of the files that stay as they are; None if all are made.
    """
    rows = [] if store is None else _failures_of_others(out / _FAILURES, keys)
    for name, part in parts(keys).items():
        packer = StepPacker(MARK)
        for key in part:
            file = _files(work, key)[0]
            if file.exists():
                graph = read_stored_graph(file)
                if ops_of(graph) == followed_ops(key, work, store):
                    continue
                try:
                    packer.add(key, graph, updates(key, graph, wanted[key]))
                except GraphError as error:
                    rows.append((key.name, str(error).removeprefix(f"{key.name} ")))
        if packer.num_steps:
            data = packer.content()
            atomic_write(out / f"{name}.steps.xz", data, error=DatasetError)
            print(f"{name}: {packer.num_steps} steps, {len(data) / 1e6:.2f} MB", flush=True)
    for key in keys:
        failed = _files(work, key)[1]
        if failed.exists():
            name, _, reason = failed.read_text(encoding="utf-8").partition("\t")
            rows.append((name, reason))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("step", "reason"), *rows])
    atomic_write(out / _FAILURES, text.getvalue().encode(), error=DatasetError)
    print(f"{len(rows)} failed", flush=True)


def _failures_of_others(file: Path, keys: Sequence[StepKey]) -> list[tuple[str, str]]:
    """Lines of the table of failures on other steps than these."""
    names = {key.name for key in keys}
    with file.open(encoding="utf-8", newline="") as lines:
        return [(row["step"], row["reason"]) for row in csv.DictReader(lines)
                if row["step"] not in names]  # fmt: skip


def parts(keys: Iterable[StepKey]) -> dict[str, list[StepKey]]:
    """The steps of each file; like models stand together, so that they repeat each other."""
    by_file: dict[str, list[StepKey]] = {}
    for key in sorted(keys):
        kind = "timm" if key.job.startswith(TIMM) else "own"
        kernels = "" if key.capability != UNFUSED else "-unfused"
        by_file.setdefault(f"{kind}-{key.task}{kernels}", []).append(key)
    return by_file


def updates(
    key: StepKey, graph: OpGraph, optimizers: Iterable[str]
) -> dict[str, tuple[int, int, int]]:
    """State bytes, bytes moved and kernels of the updates by some optimizers, the job's own first.

    Optimizers that Driple has no rule for are left out.
    """
    own = graph.update
    if not graph.is_training:
        return {}
    by_optimizer = {own.optimizer: (own.state_bytes, own.moved_bytes, own.num_kernels)}
    import torch
    from torch import nn

    from driple.graph.torch.options import OPTIMIZERS
    from driple.graph.torch.update import update_of

    table, options = graph.parameters, options_of(key)
    types = {2: torch.float16, 4: torch.float32, 8: torch.float64}
    for name in sorted({*optimizers, *_USUAL_OPTIMIZERS} & set(OPTIMIZERS) - set(by_optimizer)):
        rows = zip(table.elements.tolist(), table.nbytes.tolist(), table.is_trained, strict=True)
        parameters = [
            nn.Parameter(torch.empty(count, dtype=types[size // max(count, 1)], device="meta"))
            for count, size, trained in rows
            if trained and count
        ]
        update = update_of(parameters, replace(options, optimizer=name))
        by_optimizer[name] = (update.state_bytes, update.moved_bytes, update.num_kernels)
    return by_optimizer


def wanted_keys(tables: Iterable[Path]) -> dict[StepKey, set[str]]:
    """Steps of all rows that are used, and the optimizers of each.

    Precisions that follow from others are left out.
    """
    optimizers: dict[StepKey, set[str]] = {}
    for table in tables:
        with gzip.open(table, "rt", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if not row["unused_why"] and row["job"].startswith((TIMM, OWN)):
                    optimizers.setdefault(key_of_row(row), set()).add(row["optimizer"])
    return optimizers


def key_of_row(row: dict[str, str]) -> StepKey:
    """The step of a row, as it is stored: TF32 follows from single precision."""
    precision = row["precision"]
    try:
        generation = device_named(row["device"]).architecture.name
    except SettingError:  # of another maker
        generation = ""
    return StepKey(
        job=row["job"],
        size=int(float(row["size"] or 0)),
        task=row["task"],
        precision="fp32" if precision == "tf32" else precision,
        channels_last=row["channels_last"] == "1",
        activation_checkpointing=row["activation_checkpointing"] or "none",
        accumulates=int(row["grad_accumulation"] or 1) > 1,
        capability=attention_of(row["job"], library_of(row["library"]), generation),
    )


def ordered(keys: Iterable[StepKey]) -> list[StepKey]:
    """Training first, then forward passes, precision by precision.

    What may follow from another step comes behind that.
    """
    places = ("fp32", "tf32", "fp16", "amp-fp16", "bf16", "amp-bf16")
    return sorted(
        keys,
        key=lambda one: (
            one.task != "train", one.capability < FLASH_FROM, not one.job.startswith(TIMM),
            places.index(one.precision), one.channels_last, one,
        ),
    )  # fmt: skip


def trace_all(keys: Sequence[StepKey], work: Path, processes: int) -> None:
    """Trace in several processes; a line of progress every few seconds."""
    started, shown, failed = time.monotonic(), 0.0, 0
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(trace_one, key, work) for key in keys]
        for number, future in enumerate(as_completed(futures), 1):
            failed += bool(future.result())
            now = time.monotonic()
            if now - shown > 10 or number == len(keys):
                shown = now
                left = (now - started) / number * (len(keys) - number)
                print(
                    f"{number} of {len(keys)}, {failed} failed, {left / 60:.0f} min left",
                    flush=True,
                )


def trace_one(key: StepKey, work: Path) -> str:
    """Trace a step into its file; the reason if it fails, which has a file of its own."""
    graph_file, failure_file = _files(work, key)
    warnings.simplefilter("ignore")
    if follows(key, work):
        return ""
    try:
        graph = light(traced(key, MARK))
    except DripleError as error:
        _write(failure_file, f"{key.name}\t{error}".encode())
        return str(error)
    _write(graph_file, graph_to_bytes(graph))
    return ""


def follows(key: StepKey, work: Path) -> bool:
    """Whether a step follows from one that is traced already."""
    other = follows_from(key)
    if other is None or not _files(work, other)[0].exists():
        return False
    kinds = {op.kind for op in read_stored_graph(_files(work, other)[0]).signatures}
    return _may_follow(key, other, kinds)


def follows_stored(key: StepKey, store: StepStore | None) -> bool:
    """Whether a step follows from one of the store."""
    other = follows_from(key)
    if store is None or other is None or other not in store:
        return False
    return _may_follow(key, other, store.kinds(other))


def _may_follow(key: StepKey, other: StepKey, kinds: Set[str]) -> bool:
    """Whether a step with these kinds of ops has what decides between two keys.

    PyTorch 2 computes some attention by its math path, which looks like attention by hand: what has
    either is traced for PyTorch 1, and stored if it differs.
    """
    if key.capability == other.capability:
        return not kinds & SOFTMAX
    return not kinds & ATTENTION and not (key.capability == UNFUSED and kinds >= _BY_HAND)


def followed_ops(key: StepKey, work: Path, store: StepStore | None) -> list[OpSignature] | None:
    """Ops of the step without fused attention that a key would follow from; None if there is none.

    Read from what was traced, else from the store.
    """
    other = follows_from(key)
    if key.capability != UNFUSED or other is None:
        return None
    file = _files(work, other)[0]
    if file.exists():
        return ops_of(read_stored_graph(file))
    if store is None or other not in store:
        return None
    return ops_of(store.step(other))


def ops_of(step: OpGraph | StoredStep) -> list[OpSignature]:
    """What each op computes on, in order, at the marked batch size."""
    ops = step.signatures if isinstance(step, OpGraph) else step.signatures(MARK)
    return [ops[number] for number in step.signature_of.tolist()]


def traced(key: StepKey, batch_size: int) -> OpGraph:
    """The graph of a step, on the path of a user, with groups of a compiler.

    Raises:
        DripleError: the job cannot be built or traced.
    """
    whole = options_of(key)
    if key.job.startswith(TIMM):
        from driple.jobs.pytorch.timm_models import timm_step

        shape = (3, key.size, key.size) if key.size else None
        name = key.job.removeprefix(TIMM)
        return timm_step(name, batch_size=batch_size, input_shape=shape, step=whole).graph
    from scripts.published.models import traced_job

    return traced_job(key.job, batch_size=batch_size, size=key.size, options=whole)


def options_of(key: StepKey) -> StepOptions:
    """How the job of a step is trained; its groups of a compiler are always found."""
    optimizer, clips = _OPTIMIZER, False
    if key.job.startswith(OWN):
        from scripts.published.models import definition_of

        usual = definition_of(key.job)
        optimizer, clips = usual.optimizer, usual.clip_gradients
    return StepOptions(
        precision=key.precision,  # type: ignore[arg-type]  # checked there
        optimizer=optimizer,
        clip_gradients=clips,
        compiled=True,
        task=key.task,  # type: ignore[arg-type]
        channels_last=key.channels_last,
        compute_capability=divmod(key.capability, 10) if key.capability != UNFUSED else None,
        fused_attention=key.capability != UNFUSED,
        activation_checkpointing=key.activation_checkpointing,  # type: ignore[arg-type]
        grad_accumulation=2 if key.accumulates else 1,
    )


def light(graph: OpGraph) -> OpGraph:
    """The graph without what no time depends on."""
    count = graph.num_nodes
    return replace(
        graph,
        devices=("",) * count,
        names=tuple(map(str, range(count))),
        lifetimes=TensorLifetimes(),
        is_control=np.zeros(len(graph.edges), dtype=np.bool_),
    )


def _files(work: Path, key: StepKey, *, exists: bool = False) -> tuple[Path, ...]:
    """Files of a step's graph and of the reason why it has none."""
    place = hashlib.sha256(key.name.encode()).hexdigest()[:24]
    files = (work / f"{place}.npz", work / f"{place}.failed")
    return tuple(file for file in files if file.exists()) if exists else files


def _write(file: Path, data: bytes) -> None:
    part = file.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(file)


if __name__ == "__main__":
    sys.exit(main())
