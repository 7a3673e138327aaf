"""Tables of kernels that others measured (`datasets/runs/kernels`), as frames."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

__all__ = ["FOLDER", "long_table", "wide_table"]

FOLDER = Path(__file__).parents[2] / "datasets" / "runs" / "kernels"


def wide_table(name: str) -> pd.DataFrame:
    """A table as it is stored: a column of microseconds for each GPU."""
    return pd.read_csv(FOLDER / f"{name}.csv.xz")


def long_table(name: str) -> pd.DataFrame:
    """The same with a row for each time: columns of the shape, `device`, `us`."""
    wide = wide_table(name)
    devices = [column for column in wide if wide[column].dtype == float]
    shape = [column for column in wide if column not in devices]
    return wide.melt(id_vars=shape, value_vars=devices, var_name="device", value_name="us").dropna(
        subset="us"
    )
