"""Reader of the public Driple data sets: grouped graphs and labels, stored by torch.

    FILE.pkl  ->  (adjacency, features, labels), each {train, val, test: [tensor of a batch, ...]}
              ->  Dataset of grouped graphs, part of each in its details

Tensors, lists and dictionaries are all that is read (`weights_only`, of a torch that keeps this
promise); a file that holds anything else is refused. The authors store resources as memory, device,
RX, TX, figures as idle duration, burst duration, burst amount, and features as tensor size, group
size, frequency of op types; only this module knows these orders.
"""

from __future__ import annotations

import pickle  # nosec B403  # for its error alone
import re
import struct
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset, Example
from driple.errors import DatasetError, GraphError, MissingExtraError, install_hint
from driple.features.pregrouped import GroupedGraph
from driple.storedfiles import check_regular, is_lfs_pointer, lfs_advice
from driple.trace.provenance import Provenance
from driple.trace.targets import FIGURES, NUM_TARGETS, RESOURCES, Targets

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["RELEASED_FEATURES", "RELEASED_TARGETS", "is_dense", "read_released", "read_torch_file"]

MAX_FILE_BYTES = 4 * 2**30
MAX_GROUPS = 10_000
# Of all tensors as float64: twice the largest file of float32.
MAX_ARRAY_BYTES = 2 * MAX_FILE_BYTES
_FLOAT64_BYTES = 8
# Bytes as float64 for each byte of a file: those of bool and int8 grow eightfold.
_MOST_GROWTH = 8
# Before 2.6 a file could execute code in spite of weights_only (CVE-2025-32434), before 2.10 it
# could corrupt memory (CVE-2026-24747); pyproject.toml asks for as much.
LEAST_TORCH = (2, 10)
# What torch's reader raises on a file that was altered: it calls functions with what it finds.
_DAMAGED = (
    RuntimeError,
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    MemoryError,
    struct.error,
)
PARTS = {"train": "train", "val": "validation", "test": "test"}
FAMILY = "released"  # the files do not name their models

_RESOURCES = ("device_mem_util", "device_util", "net_rx", "net_tx")
_FIGURES = ("idle_duration", "burst_duration", "burst_amount")
# Position in the authors' order of each of our targets, and of each of our features.
RELEASED_TARGETS = tuple(
    _RESOURCES.index(resource) * len(_FIGURES) + _FIGURES.index(figure)
    for resource in RESOURCES
    for figure in FIGURES
)
RELEASED_FEATURES = (2, 0, 1)


def read_released(path: str | Path, setting: Setting) -> Dataset:
    """The data set in a file of the public Driple data.

    Labels are called `published`. The time of an iteration, which the files do not hold, is burst
    plus idle duration of the network (of TX or RX, the longer one).

    Args:
        path: the file.
        setting: setting that it was measured on; the files do not state it.

    Raises:
        DatasetError: no such file, too large, damaged, of another form, or with more in it than
            tensors.
        MissingExtraError: torch is not installed.
    """
    file = Path(path)
    content = read_torch_file(file)
    if not isinstance(content, tuple | list) or len(content) != 3:
        raise DatasetError(
            f"{file} holds {_what(content)}, needed are three dictionaries (adjacency, features, "
            "labels); give a data set of the public Driple data"
        )
    examples: list[Example] = []
    _check_room(file, content)
    for part, ours in PARTS.items():
        batches = [_batches(file, where, kind, part) for where, kind in zip(
            content, ("adjacency", "features", "labels"), strict=True)]  # fmt: skip
        if len({len(some) for some in batches}) > 1:
            raise DatasetError(f"{file}: part {part!r} has unequal numbers of batches; restore it")
        for number, (adjacency, features, labels) in enumerate(zip(*batches, strict=True)):
            try:
                _check_shapes(adjacency, features, labels)
                for row in range(len(labels)):
                    name = f"{ours}-{len(examples):05d}"
                    graph = _graph(adjacency[row], features[row])
                    examples.append(_example(name, ours, setting, graph, labels[row]))
            except (DatasetError, GraphError) as error:
                raise DatasetError(f"{file}: batch {number} of part {part!r}: {error}") from error
    if not examples:
        raise DatasetError(f"{file} holds no workloads; give a data set of the public Driple data")
    return Dataset(
        name=f"{setting.file_name}-released",
        setting=setting.name,
        examples=tuple(examples),
        about=Provenance(
            source="public Driple data set, imported",
            file=file.name,
            label_source="published",
            note="grouped graphs without names, op types or context; iteration times derived from "
            "the durations of the network's bursts and gaps",
        ),
    )


def read_torch_file(file: Path) -> Any:
    """Content of a file of `torch.save`, if it is only tensors in plain containers.

    Raises:
        DatasetError: no such file, too large, damaged, or with more in it.
        MissingExtraError: torch is not installed.
    """
    try:
        import torch  # an extra, loaded when needed
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"files of torch need torch, which is not installed; {install_hint('train')}"
        ) from error
    _check_torch(str(torch.__version__))
    _check_size(file)
    _check_packing(file)
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise DatasetError(f"{file} cannot be read: {error.strerror or error}") from error
    except pickle.UnpicklingError as error:
        raise DatasetError(
            f"{file} holds more than tensors in plain containers, or is damaged; nothing of it was "
            "run, and it is not imported"
        ) from error
    except _DAMAGED as error:
        reason = f"{type(error).__name__} {error}".partition("\n")[0][:120]
        raise DatasetError(f"{file} is no file of torch ({reason}); restore it") from error


def _check_torch(version: str) -> None:
    """Refuse a torch whose `weights_only` does not keep its promise."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) < LEAST_TORCH:
        least = ".".join(map(str, LEAST_TORCH))
        raise MissingExtraError(
            f"torch {version} may execute code or corrupt memory when it reads a file; update it: "
            f"pip install 'torch>={least}'"
        )


def _check_packing(file: Path) -> None:
    """Refuse a zip that unpacks to more than it is; torch.save stores tensors as they are."""
    try:
        check_regular(file)
        with file.open("rb") as opened:
            if is_lfs_pointer(opened.read(64)):
                raise DatasetError(f"{file} is {lfs_advice('data set')}")
        if not zipfile.is_zipfile(file):
            return
        with zipfile.ZipFile(file) as parts:
            members = parts.infolist()
    except OSError as error:
        raise DatasetError(f"{file} cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, RuntimeError, ValueError, struct.error) as error:
        raise DatasetError(f"{file} is a damaged zip ({error}); restore it") from error
    packed = [member.filename for member in members if member.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise DatasetError(
            f"{file} holds compressed parts ({packed[0]!r}), which torch.save does not write; "
            "restore the original file"
        )


def _check_size(file: Path) -> None:
    try:
        size = file.stat().st_size
    except OSError as error:
        raise DatasetError(f"{file} cannot be read: {error.strerror or error}") from error
    if not size:
        raise DatasetError(f"{file} is empty; restore it")
    if size > MAX_FILE_BYTES:
        raise DatasetError(f"{file} has {size} bytes, read are at most {MAX_FILE_BYTES}")


def is_dense(value: object) -> bool:
    """Whether it is a tensor of real numbers, all of them stored one by one."""
    import torch  # loaded by now

    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and not (value.is_complex() or value.is_quantized or value.is_nested)
    )


def _check_room(file: Path, content: Iterable[object]) -> None:
    """Refuse tensors that share or repeat their storage until they need more than the memory."""
    parts = [part for one in content if isinstance(one, Mapping) for part in one.values()]
    items = [item for part in parts if isinstance(part, list | tuple) for item in part]
    total = sum(item.numel() * _FLOAT64_BYTES for item in items if is_dense(item))
    most = min(MAX_ARRAY_BYTES, _MOST_GROWTH * file.stat().st_size)
    if total > most:
        raise DatasetError(
            f"{file} holds tensors of {total} bytes, which a file of its size cannot; at most "
            f"{most} are read: restore it"
        )


def _batches(file: Path, content: object, kind: str, part: str) -> list[npt.NDArray[np.float64]]:
    """The tensors of one kind and part, as arrays."""
    batches = content.get(part) if isinstance(content, Mapping) else None
    if not isinstance(batches, list | tuple):
        raise DatasetError(
            f"{file}: {kind} of part {part!r} is {_what(batches)}, needed is a list of tensors"
        )
    return [_array(f"{file}: {kind} of part {part!r}", item) for item in batches]


def _array(where: str, tensor: Tensor) -> npt.NDArray[np.float64]:
    import torch  # loaded by now

    if not is_dense(tensor):
        raise DatasetError(f"{where} is {_what(tensor)}, needed is a dense tensor")
    values: npt.NDArray[np.float64] = tensor.detach().to(torch.float64).numpy()
    if not np.isfinite(values).all():
        raise DatasetError(f"{where} holds NaN or infinity; restore the file")
    return values


def _check_shapes(
    adjacency: npt.NDArray[np.float64],
    features: npt.NDArray[np.float64],
    labels: npt.NDArray[np.float64],
) -> None:
    shapes = (adjacency.shape, features.shape, labels.shape)
    size, groups = (shape[0] if shape else 0 for shape in (labels.shape, adjacency.shape[1:]))
    needed = ((size, groups, groups), (size, groups, 3), (size, NUM_TARGETS))
    if shapes != needed or not 1 <= groups <= MAX_GROUPS:
        raise DatasetError(
            f"adjacency, features and labels have shapes {shapes}, needed are [B, M, M], "
            f"[B, M, 3] and [B, {NUM_TARGETS}] with M up to {MAX_GROUPS}"
        )


def _graph(adjacency: npt.NDArray[np.float64], features: npt.NDArray[np.float64]) -> GroupedGraph:
    """One graph, without the groups that only fill up its batch."""
    joined = (adjacency != 0) | (adjacency.T != 0)
    np.fill_diagonal(joined, val=False)
    real = joined.any(axis=1) | (features != 0).any(axis=1)
    edges = np.argwhere(np.triu(joined[np.ix_(real, real)])).astype(np.int32)
    ours = features[real][:, RELEASED_FEATURES].astype(np.float32)
    return GroupedGraph(features=ours, edges=edges)


def _example(
    name: str,
    part: str,
    setting: Setting,
    graph: GroupedGraph,
    labels: npt.NDArray[np.float64],
) -> Example:
    targets = Targets(labels[list(RELEASED_TARGETS)].reshape(len(RESOURCES), len(FIGURES)))
    return Example(
        workload=name,
        family=FAMILY,
        setting=setting.name,
        graph=graph,
        targets=targets,
        iteration_time_s=targets.iteration_time_s,
        label_source="published",
        details={"part": part},
    )


def _what(value: object) -> str:
    return "nothing" if value is None else f"of type {type(value).__name__}"
