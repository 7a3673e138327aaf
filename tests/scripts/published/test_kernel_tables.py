"""Tables of kernels from a wheel: which rows stay, and that they are read back as they were."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from scripts.published import kernel_tables, kernels
from scripts.published.kernels import FOLDER, long_table, wide_table

DATA = "aiconfigurator_core/systems/data"


def parquet(**columns: object) -> bytes:
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    file = tmp_path / "small.whl"
    products = parquet(
        gemm_dtype=["bfloat16", "fp8", "int8_wo", "bfloat16", "bfloat16"],
        m=[16, 16, 16, 17, 32], n=[64] * 5, k=[32] * 5,
        latency=[0.0123456, 0.02, 0.03, 0.04, 0.0],
    )  # fmt: skip
    other = parquet(gemm_dtype=["bfloat16"], m=[16], n=[64], k=[32], latency=[0.5])
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(f"{DATA}/h100_sxm/gemm/sglang/1/gemm_perf.parquet", products)
        packed.writestr(f"{DATA}/h100_sxm/gemm/sglang/0/gemm_perf.parquet", other)
        packed.writestr(f"{DATA}/l40s/gemm/sglang/1/gemm_perf.parquet", other)
        packed.writestr(f"{DATA}/b60/gemm/sglang/1/gemm_perf.parquet", other)
    return file


def test_known_formats_powers_of_two_and_the_fastest_of_versions_stay(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(wheel) as packed:
        table = kernel_tables.make_table(packed, kernel_tables.TABLES["products"])
    assert list(table.columns) == ["H100", "L40S"]
    assert list(table.index) == [("bf16", "sglang", 16, 64, 32), ("fp8", "sglang", 16, 64, 32)]
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    kernel_tables.write_table(tmp_path / "products.csv.xz", table)
    rows = long_table("products").sort_values(["format", "device"])
    assert rows[["format", "device", "us"]].to_numpy().tolist() == [
        ["bf16", "H100", 12.35], ["bf16", "L40S", 500.0], ["fp8", "H100", 20.0],
    ]  # fmt: skip


def test_the_tables_of_the_checkout_are_whole_and_small() -> None:
    sizes = {file.name: file.stat().st_size for file in FOLDER.glob("*.csv.xz")}
    assert set(sizes) == {f"{name}.csv.xz" for name in kernel_tables.TABLES}
    assert sum(sizes.values()) < 6e6
    for name, table in kernel_tables.TABLES.items():
        products = wide_table(name)
        assert not products.duplicated(list(table.shape)).any()
        assert (long_table(name)["us"] > 0).all()
