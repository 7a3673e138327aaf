"""Read all raw samples of the measured settings: lengths of traces, samples over a link's rate.

    python -m scripts.studies.measured.run

Writes trace-facts.json. The checkout holds the samples of a few runs; datasets/README.md shows how
to restore all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset
from driple.errors import DatasetError, DripleError
from driple.files import atomic_write
from driple.measure.testbed.cluster import RunRecord
from driple.measure.testbed.collect import traces_of_run
from driple.measure.testbed.cpu_quota import labelled_workers, worker_shares
from driple.trace import Trace
from driple.trace.targets import NETWORK
from scripts.settings.archive import read_archive
from scripts.settings.shipped import SETTINGS, measured_datasets

FACTS = Path(__file__).parent / "trace-facts.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceFacts:
    """All runs of a setting.

    Attributes:
        num_runs: that were measured.
        least_s: length of the shortest trace, in seconds.
        most_s: of the longest.
        rate_mb_per_s: to which each link is set, in each direction.
        num_over_rate: runs with a sample of a worker's link over that.
        highest_mb_per_s: the highest such sample.
    """

    num_runs: int
    least_s: float
    most_s: float
    rate_mb_per_s: float
    num_over_rate: int
    highest_mb_per_s: float


def traces_on(dataset: Dataset, record: RunRecord, worker: str) -> dict[str, Trace]:
    """Traces of a worker of one run, as its setting was set up.

    Args:
        dataset: of the setting.
        record: of the run.
        worker: whose traces.
    """
    plan, host = dataset.about.plan, dataset.about.host
    if plan is None or host is None or host.memory_write_bytes_per_s is None:
        raise DatasetError(f"data set {dataset.name} was not measured; give one with traces")
    shares = worker_shares(Setting.parse(dataset.setting), plan.share)
    return traces_of_run(
        record,
        worker,
        share=shares[worker],
        write_bytes_per_s=host.memory_write_bytes_per_s,
    )


def trace_facts(dataset: Dataset, home: Path) -> TraceFacts:
    """Read all samples of a measured setting.

    Args:
        dataset: of the setting.
        home: folder of all data sets.
    """
    setting = Setting.parse(dataset.setting)
    if setting.bits_per_s is None:
        raise DatasetError(f"{dataset.setting}: its links have no rate; measured settings do")
    rate_mb_per_s = setting.bits_per_s / 8e6
    records = read_archive(home / setting.file_name)
    if len(records) < (dataset.about.num_runs or 0):
        raise DatasetError(
            f"{dataset.setting} has samples of {len(records)} of {dataset.about.num_runs} runs; "
            "restore all of them as datasets/README.md shows"
        )
    lengths_s, highest = [], []
    for record in records.values():
        top = 0.0
        for worker in labelled_workers(setting):
            traces = traces_on(dataset, record, worker)
            trace = traces["net_tx"]
            lengths_s.append(len(trace.amount) * trace.period_s)
            top = max(top, *(float(traces[name].amount.max()) for name in NETWORK))
        highest.append(top)
    return TraceFacts(
        num_runs=len(highest),
        least_s=min(lengths_s),
        most_s=max(lengths_s),
        rate_mb_per_s=rate_mb_per_s,
        num_over_rate=sum(value > rate_mb_per_s for value in highest),
        highest_mb_per_s=max(highest),
    )


def read_facts() -> Mapping[str, TraceFacts]:
    """Stored facts of each measured setting."""
    return {name: TraceFacts(**facts) for name, facts in json.loads(FACTS.read_bytes()).items()}


def main() -> None:
    """All measured settings."""
    facts = {item.setting: asdict(trace_facts(item, SETTINGS)) for item in measured_datasets()}
    atomic_write(FACTS, json.dumps(facts, indent=1).encode() + b"\n", error=DripleError)


if __name__ == "__main__":
    main()
