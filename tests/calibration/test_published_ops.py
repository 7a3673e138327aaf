"""Single published ops: shapes as the source means them, and only those long enough."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from driple.calibration.published_ops import read_ops
from driple.errors import ConfigError
from driple.graph.cost import cost_of_op

SHIPPED = Path(__file__).parents[2] / "datasets" / "published"
MATMUL = "gpu,op,b,m,n,k,ms\n"
ELEMENTWISE = "gpu,op,b,h,ms\n"


def tables(folder: Path, products: str, others: str) -> Path:
    for name, text in (("matmul", MATMUL + products), ("elementwise", ELEMENTWISE + others)):
        (folder / f"neusight_{name}_forward_ms.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def test_shapes_are_those_of_the_source(tmp_path: Path) -> None:
    products = "T4,linear,3,100,20,50,1.0\nT4,bmm,3,100,20,50,2.0\n"
    folder = tables(tmp_path, products, "T4,add,64,1000,0.5\nT4,ln,64,1000,0.5\n")
    ops = {op.name: op for op in read_ops(folder)}
    assert set(ops) == {"linear", "bmm", "add"}
    assert cost_of_op(ops["linear"].signature).flops == 2 * 3 * 100 * 20 * 50
    assert cost_of_op(ops["bmm"].signature).flops == 2 * 3 * 100 * 20 * 50
    cost = cost_of_op(ops["add"].signature)
    assert cost.bytes_read + cost.bytes_written == 3 * 4 * 64 * 1000
    assert (ops["bmm"].device, ops["bmm"].seconds) == ("T4", 2e-3)


def test_ops_that_are_mostly_launch_are_left_out(tmp_path: Path) -> None:
    folder = tables(tmp_path, "T4,linear,1,8,8,8,0.03\n", "T4,add,1,8,0.03\n")
    assert read_ops(folder) == []


def test_shipped_tables_give_as_many_of_each_as_are_wanted() -> None:
    counts = Counter((op.name, op.device) for op in read_ops(SHIPPED))
    assert {device for _, device in counts} == {"V100", "T4"}
    assert max(counts.values()) <= 150
    assert counts["linear", "T4"] == 150


def test_an_odd_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="odd row"):
        read_ops(tables(tmp_path, "T4,linear,1,8,8,x,3\n", ""))
