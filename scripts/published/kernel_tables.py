"""Compact tables of kernels and collectives that others measured, from the wheel that has them.

    pip download aiconfigurator-core==0.12.0 --no-deps -d FOLDER
    python -m scripts.published.kernel_tables FOLDER/aiconfigurator_core-0.12.0-*.whl

Times are microseconds with four significant digits, a column for each GPU, empty where it was not
measured. A table keeps the shapes that its rule below names, and of several measurements of a
cell (versions of NCCL) the fastest. Nothing else is changed.
"""

from __future__ import annotations

import argparse
import io
import lzma
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from scripts.published.kernels import FOLDER

Frame = pd.DataFrame

DEVICES = {
    "a100_sxm": "A100-80G", "h100_sxm": "H100", "h200_sxm": "H200", "b200_sxm": "B200",
    "b300_sxm": "B300", "gb200": "GB200", "gb300": "GB300", "l40s": "L40S",
    "rtx_pro_6000_server": "RTXPRO6000-Server",
}  # fmt: skip
FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8-block", "nvfp4": "nvfp4"}
_DATA = "aiconfigurator_core/systems/data/"
_POWERS = tuple(2**i for i in range(4, 18))


@dataclass(frozen=True, slots=True)
class Table:
    """A table to make.

    Attributes:
        source: last part of the files' paths.
        shape: columns that tell its rows apart.
        keep: rows of one file, renamed to these columns and `latency` in milliseconds.
    """

    source: str
    shape: tuple[str, ...]
    keep: Callable[[Frame], Frame]


def _products(rows: Frame) -> Frame:
    """Rows that are powers of 2 from 16 on, all columns and depths."""
    rows = rows[rows["m"].isin(_POWERS)]
    return rows.assign(format=rows["gemm_dtype"].map(FORMATS)).dropna(subset="format")


def _attention(rows: Frame) -> Frame:
    """Whole causal attention in one format: 128 tokens and more, heads of 64 and 128."""
    rows = rows.rename(columns={
        "batch_size": "batch", "isl": "length", "num_heads": "heads",
        "num_key_value_heads": "kv_heads", "head_dim": "head_size",
    })  # fmt: skip
    whole = rows["window_size"] == 0 if "window_size" in rows else True
    kept = whole & rows["length"].isin(_POWERS) & (rows["length"] >= 128)
    kept &= rows["head_size"].isin((64, 128)) & rows["heads"].isin((8, 16, 32, 64))
    kept &= (rows["kv_heads"] == rows["heads"]) | (rows["kv_heads"] == 8)
    kept &= (rows["attn_dtype"] == rows["kv_cache_dtype"]) & (rows["step"] == 0)
    rows = rows[kept]
    return rows.assign(format=rows["attn_dtype"].map(FORMATS)).dropna(subset="format")


def _experts(rows: Frame) -> Frame:
    """Grouped products of a device with whole experts: powers of 4, even and uneven routing."""
    rows = rows.rename(columns={
        "num_tokens": "tokens", "hidden_size": "hidden", "inter_size": "inner",
        "num_experts": "experts", "moe_ep_size": "expert_parallel", "distribution": "routing",
    })  # fmt: skip
    kept = (rows["moe_tp_size"] == 1) & rows["expert_parallel"].isin((1, 8, 32))
    kept &= rows["tokens"].isin(_POWERS[::2]) & rows["routing"].isin(("balanced", "power_law_1.2"))
    kept &= ~rows["kernel_source"].str.contains("nongated|wideep")
    rows = rows[kept]
    return rows.assign(format=rows["moe_dtype"].map(FORMATS)).dropna(subset="format")


def _collectives(rows: Frame) -> Frame:
    """NCCL of half precision; sizes are those of nccl-tests, in bytes."""
    rows = rows[rows["nccl_dtype"] == "half"]
    return rows.assign(
        kind=rows["op_name"], ranks=rows["num_gpus"], bytes=2 * rows["message_size"],
        software="nccl",
    )  # fmt: skip


def _casts(rows: Frame) -> Frame:
    """Casts to FP8 by a known scale."""
    return rows[rows["m"].isin(_POWERS)]


_PRODUCT = ("format", "software", "m", "n", "k")
TABLES: Mapping[str, Table] = {
    "products": Table("/gemm_perf.parquet", _PRODUCT, _products),
    "attention": Table(
        "/context_attention_perf.parquet",
        ("format", "software", "batch", "length", "heads", "kv_heads", "head_size"),
        _attention,
    ),
    "experts": Table(
        "/moe_perf.parquet",
        ("format", "software", "tokens", "hidden", "inner", "topk", "experts", "expert_parallel",
         "routing"),
        _experts,
    ),
    "collectives": Table("/nccl_perf.parquet", ("software", "kind", "ranks", "bytes"),
                          _collectives),
    "casts": Table("/scale_matrix_perf.parquet", ("software", "m", "k"), _casts),
}  # fmt: skip


def make_table(wheel: zipfile.ZipFile, table: Table) -> Frame:
    """A table, a column of microseconds for each GPU, sorted by shape."""
    parts = []
    for name in sorted(wheel.namelist()):
        system, _, rest = name.removeprefix(_DATA).partition("/")
        if not name.startswith(_DATA) or system not in DEVICES or not name.endswith(table.source):
            continue
        rows = pd.read_parquet(io.BytesIO(wheel.read(name)))
        rows = table.keep(rows.assign(software=rest.split("/")[1]))
        rows = rows[rows["latency"] > 0]
        parts.append(rows[[*table.shape, "latency"]].assign(device=DEVICES[system]))
    rows = pd.concat(parts)
    rows["us"] = 1e3 * rows["latency"]
    wide = rows.pivot_table(index=list(table.shape), columns="device", values="us", aggfunc="min")
    return wide[[name for name in DEVICES.values() if name in wide]]


def write_table(file: Path, table: Frame) -> None:
    """Write a table as CSV, packed by xz."""
    text = table.map(lambda us: "" if pd.isna(us) else f"{us:.4g}").to_csv()
    file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path, help="wheel of aiconfigurator-core")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(exist_ok=True)
    with zipfile.ZipFile(options.wheel) as wheel:
        for name, table in TABLES.items():
            times = make_table(wheel, table)
            file = FOLDER / f"{name}.csv.xz"
            write_table(file, times)
            print(f"{file}: {len(times)} rows, {times.count().sum()} times, "
                  f"{file.stat().st_size / 1e6:.2f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
