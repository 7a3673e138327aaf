"""Tensors of the steps of all published memory rows, to fit and check without PyTorch.

    name of a step, BatchedMemory, ... -> one file (xz)  and back

Sizes grow in proportion to the batch or stay, so that a pair of numbers gives them at every batch
size. Columns are stored as small differences, since the blocks of a model repeat each other.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import DatasetError
from driple.files import atomic_write
from driple.graph.step_facts import OptimizerUpdate, TensorRole
from driple.memory.step_memory import BatchedMemory, StepMemory, Weights
from driple.storedfiles import read_bytes

__all__ = ["MEMORY_STEPS_FILE", "MemoryStore", "write_memory_steps"]

IntArray = npt.NDArray[np.int64]

MEMORY_STEPS_FILE = "memory_steps.xz"
_MAGIC, _FORMAT = b"driple-memory-steps\n", 1
_MOST_BYTES = 1 << 28
_TENSORS = ("pairs", "made", "freed", "roles")
_PARAMETERS = ("weight_bytes", "elements", "trained", "gradient_at", "block_of")
_BLOCKS = ("forward_at", "forward_end", "backward_at", "complete_at")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryStore:
    """Steps by name.

    Attributes:
        steps: each at a batch size of 0, with what a sample adds.
    """

    steps: Mapping[str, BatchedMemory]

    @classmethod
    def open(cls, file: Path) -> MemoryStore:
        """Read a store.

        Raises:
            DatasetError: it cannot be read, or is damaged.
        """
        try:
            data = read_bytes(file, _MOST_BYTES)
            if not data.startswith(_MAGIC):
                raise DatasetError(f"{file} is no store of steps; make it anew")
            content = lzma.LZMADecompressor(memlimit=_MOST_BYTES).decompress(
                data[len(_MAGIC) :], max_length=_MOST_BYTES
            )
            end = content.index(b"\n")
            header = json.loads(content[:end])
            if header.get("format") != _FORMAT:
                raise DatasetError(f"{file} has another format; make it anew")
            arrays = _unpacked(header, content[end + 1 :])
            return cls(steps=_steps(header, arrays))
        except (OSError, lzma.LZMAError, ValueError, KeyError, IndexError) as error:
            raise DatasetError(f"cannot read the steps of {file}: {error}") from error


def write_memory_steps(file: Path, steps: Mapping[str, BatchedMemory]) -> int:
    """Write a store; the bytes that it takes.

    Args:
        file: to write.
        steps: each at a batch size of 0.

    Raises:
        DatasetError: it cannot be written.
    """
    pairs: dict[tuple[int, int], int] = {}
    lists: dict[str, list[IntArray]] = {name: [] for name in (*_TENSORS, *_PARAMETERS, *_BLOCKS)}
    listed = [_listed(name, one, lists, pairs) for name, one in sorted(steps.items())]
    arrays = {name: np.concatenate(parts) for name, parts in lists.items()}
    table = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    arrays["fixed_bytes"], arrays["bytes_each"] = table[:, 0], table[:, 1]
    packed = {name: _narrow(values) for name, values in arrays.items()}
    header = {
        "format": _FORMAT,
        "steps": listed,
        "arrays": [[name, one.dtype.str, len(one)] for name, one in packed.items()],
    }
    content = json.dumps(header, separators=(",", ":")).encode() + b"\n"
    content += b"".join(_planes(one) for one in packed.values())
    data = _MAGIC + lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    atomic_write(file, data, error=DatasetError)
    return len(data)


def _narrow(values: IntArray) -> npt.NDArray[Any]:
    """The values in the narrowest type that holds them."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(np.dtype(kind).newbyteorder("<"))
    return values.astype("<i8")


def _planes(values: npt.NDArray[Any]) -> bytes:
    """First bytes of all numbers, then their second bytes, and so on."""
    return values.view(np.uint8).reshape(len(values), values.dtype.itemsize).T.tobytes()


def _unpacked(header: Mapping[str, Any], content: bytes) -> dict[str, IntArray]:
    arrays, at = {}, 0
    for name, kind, count in header["arrays"]:
        dtype = np.dtype(kind)
        size = count * dtype.itemsize
        planes = np.frombuffer(content[at : at + size], dtype=np.uint8)
        at += size
        values = np.ascontiguousarray(planes.reshape(dtype.itemsize, count).T)
        arrays[name] = values.view(dtype).reshape(count).astype(np.int64)
    return arrays


def _listed(
    name: str,
    batched: BatchedMemory,
    lists: dict[str, list[IntArray]],
    pairs: dict[tuple[int, int], int],
) -> dict[str, Any]:
    """Add the columns of a step; its entry in the header."""
    step, weights = batched.step, batched.step.weights
    sizes = zip(
        step.nbytes.tolist(), np.rint(batched.bytes_each).astype(np.int64).tolist(), strict=True
    )
    lists["pairs"].append(
        np.array([pairs.setdefault(pair, len(pairs)) for pair in sizes], dtype=np.int64)
    )
    lists["made"].append(np.diff(step.made_by, prepend=0))
    lists["freed"].append(_freed_code(step))
    lists["roles"].append(step.roles.astype(np.int64) + 16 * step.is_cast)
    for column, values in zip(
        _PARAMETERS,
        (weights.nbytes, weights.elements, weights.is_trained.astype(np.int64),
         weights.gradient_at, weights.block_of),
        strict=True,
    ):  # fmt: skip
        lists[column].append(np.diff(values, prepend=0) if column == "gradient_at" else values)
    for column in _BLOCKS:
        lists[column].append(np.diff(getattr(weights, column), prepend=0))
    update = step.update
    return {
        "name": name,
        "tensors": len(step.nbytes),
        "parameters": len(weights.nbytes),
        "blocks": len(weights.forward_at),
        "nodes": step.num_nodes,
        "passes": step.passes,
        "half": int(step.computes_in_half),
        "update": [update.optimizer, update.state_bytes, update.temporary_bytes],
    }


def _freed_code(step: StepMemory) -> IntArray:
    """When tensors are freed, as small numbers.

    Activations are freed one after another in the backward pass: each is stored as the distance to
    the one before. All others are stored as the time that they live.
    """
    code: IntArray = step.freed_after - step.made_by
    mirrored = step.roles == TensorRole.ACTIVATION
    code[mirrored] = -np.diff(step.freed_after[mirrored], prepend=step.num_nodes)
    code[step.freed_after >= step.num_nodes] = 0
    lives = (step.freed_after < step.num_nodes) & ~mirrored
    code[lives] += 1
    return code


def _freed(code: IntArray, made_by: IntArray, roles: IntArray, nodes: int) -> IntArray:
    """The inverse of `_freed_code`."""
    freed: IntArray = made_by + code - 1
    mirrored = roles == TensorRole.ACTIVATION
    freed[mirrored] = nodes - np.cumsum(code[mirrored])
    freed[(code == 0) & ~mirrored] = nodes
    return freed


def _steps(header: Mapping[str, Any], arrays: Mapping[str, IntArray]) -> dict[str, BatchedMemory]:
    """Steps of a file."""
    steps = {}
    at = dict.fromkeys(("tensors", "parameters", "blocks"), 0)
    for entry in header["steps"]:
        cut: dict[str, IntArray] = {}
        for kind, columns in (
            ("tensors", _TENSORS), ("parameters", _PARAMETERS), ("blocks", _BLOCKS),
        ):  # fmt: skip
            begin = at[kind]
            at[kind] = begin + int(entry[kind])
            cut |= {column: arrays[column][begin : at[kind]] for column in columns}
        steps[str(entry["name"])] = _step(entry, cut, arrays)
    return steps


def _step(
    entry: Mapping[str, Any], cut: Mapping[str, IntArray], arrays: Mapping[str, IntArray]
) -> BatchedMemory:
    nodes = int(entry["nodes"])
    roles, made_by = cut["roles"] % 16, np.cumsum(cut["made"])
    optimizer, state_bytes, temporary_bytes = entry["update"]
    weights = Weights(
        nbytes=cut["weight_bytes"],
        elements=cut["elements"],
        is_trained=cut["trained"] > 0,
        gradient_at=np.cumsum(cut["gradient_at"]),
        block_of=cut["block_of"],
        sharers=np.ones(len(cut["elements"])),  # no stored step is of experts that devices share
        **{column: np.cumsum(cut[column]) for column in _BLOCKS},
    )
    step = StepMemory(
        num_nodes=nodes,
        nbytes=arrays["fixed_bytes"][cut["pairs"]],
        made_by=made_by,
        freed_after=_freed(cut["freed"], made_by, roles, nodes),
        roles=roles.astype(np.int8),
        is_cast=cut["roles"] >= 16,
        weights=weights,
        update=OptimizerUpdate(
            optimizer=optimizer, state_bytes=state_bytes, temporary_bytes=temporary_bytes
        ),
        passes=int(entry["passes"]),
        computes_in_half=bool(entry["half"]),
    )
    each = arrays["bytes_each"][cut["pairs"]].astype(np.float64)
    return BatchedMemory(step=step, batch_size=0, bytes_each=each)
