"""Published times of single ops, as steps of one op that no host delays.

    pytorch_ops.csv.gz -> OpSignature -> OpKinds, StepRow

They tell of devices, and of large matrix products, that few whole steps have told of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np

from driple.catalog import device_named
from driple.errors import ConfigError
from driple.graph.datatypes import NUMBER_OF
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import OptimizerUpdate
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.optable import OpTable
from driple.simulate.prepared_job import OpKinds
from scripts.fits.fit_table import StepRow
from scripts.published.rows.cells import Raw, read_raw

__all__ = ["OPS_FILE", "op_steps"]

OPS_FILE = "pytorch_ops.csv.gz"
_FLOAT = NUMBER_OF["DT_FLOAT"]
_NO_TF32 = (("tf32", (0,)),)
_SHORTEST_S = 3e-5  # shorter ones measure how a kernel is launched
_ELEMENTWISE = {
    **{name: name for name in ("add", "mul", "div", "pow", "gelu", "relu", "tanh", "softmax")},
    **{f"{name}u": name for name in ("add", "mul", "div", "pow")},
    "dropout": "dropout",
}


def op_steps(folder: Path, weight: float) -> Iterator[tuple[OpKinds, StepRow]]:
    """Steps of one op each.

    Args:
        folder: of published tables.
        weight: of all ops together; each op counts alike on each device.

    Raises:
        ConfigError: the table is missing or damaged.
    """
    timed = []
    for row in read_raw(folder / OPS_FILE):
        try:
            seconds = float(row["forward_s"])
            ops = _signatures(row) if seconds >= _SHORTEST_S else ()
            if ops:
                timed.append((row["op"], device_named(row["device"]), ops, seconds))
        except (KeyError, ValueError) as error:
            raise ConfigError(f"an odd row in {OPS_FILE} ({error}): {row}") from error
    cells = Counter((op, device.name) for op, device, *_ in timed)
    for op, device, ops, seconds in timed:
        count = len(ops)
        kinds = OpKinds(
            table=OpTable.of(ops),
            kind_of=np.arange(count),
            executions=np.ones(count, dtype=np.int64),
            order=np.arange(count),
        )
        yield (
            kinds,
            StepRow(
                device=device,
                runtime=Runtime("torch2"),
                update=OptimizerUpdate(),
                source="NeuSight",
                seconds=seconds,
                weight=weight / len(cells) / cells[op, device.name],
                alone=True,
            ),
        )


def _signatures(row: Raw) -> tuple[OpSignature, ...]:
    """The op of a row; none if Driple has no such kind, or no floating-point numbers."""
    if row["dtype"] != "float32":
        return ()
    shapes = [_sizes(text) for text in row["inputs"].split(";")]
    output, op = _sizes(row["output"]) if row["output"] else (), row["op"]
    first = shapes[0]
    signature: OpSignature | None = None
    if op in _ELEMENTWISE:
        full = [one for one in shapes if one != (1,)]
        signature = _op(_ELEMENTWISE[op], full, output or first)
    elif op in {"ln", "layer_norm"}:
        rows = (*first[:-1], 1)
        outputs = tuple(Tensor(one, _FLOAT) for one in (first, rows, rows))
        read = tuple(Tensor(one, _FLOAT) for one in (first, first[-1:], first[-1:]))
        signature = OpSignature("layer_norm", read, outputs)
    elif op == "conv":
        out, inner, height, width = shapes[1]
        signature = _op("conv", [first, (height, width, inner, out)], (first[0], out, *first[2:]))
    else:
        signature = _product(op, shapes, output)
    return () if signature is None else (signature,)


def _product(op: str, shapes: list[tuple[int, ...]], output: tuple[int, ...]) -> OpSignature | None:
    """A matrix product, under any of the names that PyTorch has for it."""
    first = shapes[0]
    if op in {"bmm", "matmul"} and len(shapes) == 2 and len(first) >= 3:
        product = (*first[:-1], shapes[1][-1])
        return _op("batch_matmul", shapes, product, _NO_TF32)
    if op == "linear":
        left, (n, k) = first, shapes[1] if len(shapes) == 2 else (output[-1], first[-1])
    elif op == "addmm" and len(shapes) == 3:
        left, (k, n) = shapes[1], shapes[2]
    else:
        return None
    m = prod(left[:-1])
    return _op("matmul", [(m, k), (k, n)], (m, n), _NO_TF32)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split("x"))


def _op(
    kind: str,
    inputs: list[tuple[int, ...]],
    output: tuple[int, ...],
    numbers: tuple[tuple[str, tuple[int, ...]], ...] = (),
) -> OpSignature:
    read = tuple(Tensor(shape, _FLOAT) for shape in inputs)
    return OpSignature(kind, read, (Tensor(output, _FLOAT),), numbers)
