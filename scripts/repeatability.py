"""Write into datasets/*/dataset.json how far the runs of one workload differ, from the raw samples.

    python scripts/repeatability.py

`driple dataset build` does the same for new campaigns. The median over the runs of every workload
has to be the label that is stored, or the script stops.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from shipped import DATASETS

from driple.codec import to_dict
from driple.dataset.lookup import read_labels
from driple.errors import DripleError
from driple.files import write_whole
from driple.label.repeatability import repeatability
from driple.measure.archive import read_archive
from driple.measure.collect import iteration_time_s, labels_of_run, targets_of_run
from driple.measure.shares import own_workers, worker_shares
from driple.settings import Setting


def remake(folder: Path) -> int:
    """Label all runs of a data set, and rewrite its dataset.json; workloads that were repeated."""
    file = folder / "dataset.json"
    about = json.loads(file.read_bytes())
    setting = Setting.parse(about["setting"])
    shares = worker_shares(setting, float(about["plan"]["share"]))
    own = {name: shares[name] for name in own_workers(setting)}
    write_bytes_per_s = float(about["host"]["memory_write_bytes_per_s"])
    runs = defaultdict(list)
    for record in read_archive(folder).values():
        runs[record.workload].append(record)
    stored = read_labels(folder).targets
    rows, times_s = {}, {}
    for workload, records in runs.items():
        labels = [
            labels_of_run(record, shares=own, write_bytes_per_s=write_bytes_per_s)
            for record in records
        ]
        rows[workload] = np.array([targets_of_run(item) for item in labels])
        times_s[workload] = np.array([iteration_time_s(record, own) for record in records])
        if not np.allclose(np.median(rows[workload], axis=0), stored[workload]):
            raise SystemExit(f"{folder.name}: the samples of {workload} give another label")
    repeats = repeatability(rows, times_s)
    about["repeatability"] = to_dict(repeats)
    write_whole(file, json.dumps(about, indent=2).encode() + b"\n", error=DripleError)
    return repeats.workloads


def main() -> None:
    """All measured settings."""
    for file in sorted(DATASETS.glob("CPU*/dataset.json")):
        print(f"{file.parent.name}: {remake(file.parent)} workloads ran more than once", flush=True)


if __name__ == "__main__":
    main()
