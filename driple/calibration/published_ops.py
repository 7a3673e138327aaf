"""Published times of single ops, which tell of a device what no whole step may have told.

neusight_*.csv -> some of the ops that take long enough to hide their launch -> PublishedOp

Products and element-wise ops only. The convolutions of that source ran as PyTorch picks algorithms
unasked, TensorFlow tries them out: fits to both were further from left-out models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from driple.calibration.published import Row, read_rows
from driple.catalog import device_named
from driple.errors import ConfigError
from driple.graph.signature import OpSignature, Tensor

__all__ = ["PublishedOp", "read_ops"]

_FLOAT = 1  # TensorFlow's number of single precision
_SHORTEST_S = 3e-4  # ten times the floor of the measurements
_MOST = 150  # of each op on each device


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedOp:
    """One op on one device.

    Attributes:
        name: of the op in the source, such as `bmm`.
        device: by its name in the catalogue.
        signature: what it computes on.
        seconds: measured.
    """

    name: str
    device: str
    signature: OpSignature
    seconds: float


def read_ops(folder: Path) -> list[PublishedOp]:
    """Ops of the tables of NeuSight (Lee et al., ASPLOS 2025), spread evenly over each table.

    Raises:
        ConfigError: a table is missing or damaged.
    """
    readers: dict[str, Callable[[Row], tuple[str, OpSignature] | None]] = {
        "matmul": _product,
        "elementwise": _elementwise,
    }
    found: dict[tuple[str, str], list[PublishedOp]] = {}
    for name, reader in readers.items():
        for row in read_rows(folder / f"neusight_{name}_forward_ms.csv.gz"):
            try:
                seconds = float(row["ms"]) / 1e3
                read = reader(row) if seconds >= _SHORTEST_S else None
                if read is not None:
                    device = device_named(row["gpu"]).name
                    op = PublishedOp(
                        name=read[0], device=device, signature=read[1], seconds=seconds
                    )
                    found.setdefault((read[0], device), []).append(op)
            except (KeyError, ValueError) as error:
                raise ConfigError(f"an odd row in the ops of {name} ({error}): {row}") from error
    return [op for ops in found.values() for op in ops[:: max(1, len(ops) // _MOST)][:_MOST]]


def _product(row: Row) -> tuple[str, OpSignature]:
    b, m, n, k = (int(row[name]) for name in "bmnk")
    if row["op"] == "linear":
        return "linear", _op("matmul", ((b * m, k), (k, n)), (b * m, n))
    return row["op"], _op("batch_matmul", ((b, m, k), (b, k, n)), (b, m, n))


def _elementwise(row: Row) -> tuple[str, OpSignature] | None:
    kinds = {"add": ("add", 2), "relu": ("relu", 1), "softmax": ("softmax", 1)}
    if row["op"] not in kinds:
        return None  # layer normalisation, which TensorFlow has no op for
    kind, num_inputs = kinds[row["op"]]
    shape = (int(row["b"]), int(row["h"]))
    return row["op"], _op(kind, (shape,) * num_inputs, shape)


def _op(kind: str, inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...]) -> OpSignature:
    read = tuple(Tensor(shape, _FLOAT) for shape in inputs)
    return OpSignature(kind, read, (Tensor(output, _FLOAT),))
