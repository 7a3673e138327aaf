"""Make the table of workloads that were measured on another host too: datasets/other-hosts.

python -m scripts.make_other_hosts DATASET

data set of `driple measure ... --dataset DATASET` -> CPU-P1w2_ho-200M.csv, and what hosts
differ by, printed: `driple.inspector.host.HOSTS_DIFFER` is the root mean square
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.dataset.example import Dataset
from driple.dataset.store import read_dataset
from driple.errors import DatasetError, DripleError
from driple.files import atomic_write
from driple.trace.targets import TARGET_NAMES

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "datasets" / "other-hosts"
TIME = "iteration_time_s"
FloatArray = npt.NDArray[np.float64]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table and print what it tells."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", type=Path, help="of driple measure, on the other host")
    given = parser.parse_args(argv)
    try:
        data = read_dataset(given.dataset)
        name = data.setting.replace("/", "_")
        FOLDER.mkdir(parents=True, exist_ok=True)
        file = FOLDER / f"{name}.csv"
        atomic_write(file, table_of(data).encode(), error=DatasetError)
        usual = read_dataset(ROOT / "datasets" / name)
    except DripleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    logs = logs_of(read_times(file), usual)
    ratios = np.exp(logs)
    print(
        f"{len(logs)} workloads: step times {np.median(ratios):.2f} of the label in the median "
        f"({ratios.min():.2f} to {ratios.max():.2f}); root mean square of the logarithm "
        f"{np.sqrt(np.mean(logs**2)):.2f}"
    )
    return 0


def table_of(data: Dataset) -> str:
    """Text of the table: a line for each workload."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["workload", *TARGET_NAMES, TIME])
    for one in sorted(data.examples, key=lambda item: item.workload):
        values = [*one.targets.flat.tolist(), one.iteration_time_s]
        rows.writerow([one.workload, *(f"{value:.6g}" for value in values)])
    return text.getvalue()


def read_times(file: Path) -> Mapping[str, float]:
    """Step time of each workload of a table."""
    with file.open(encoding="utf-8", newline="") as stream:
        return {row["workload"]: float(row[TIME]) for row in csv.DictReader(stream)}


def logs_of(times: Mapping[str, float], usual: Dataset) -> FloatArray:
    """ln(step time there / label) of each workload that has one."""
    labels = {one.workload: one.iteration_time_s for one in usual.examples}
    found = [np.log(times[name] / labels[name]) for name in times if labels.get(name)]
    return np.array(found)


if __name__ == "__main__":
    sys.exit(main())
