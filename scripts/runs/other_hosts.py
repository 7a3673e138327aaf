"""Make the table of workloads that were measured on another host too: datasets/runs/other-hosts.

    python -m scripts.runs.other_hosts [DATASET]

DATASET is one of `driple measure ... --dataset DATASET`; it becomes CPU-P1w2_ho-200M.csv. Printed
is what hosts differ by (`driple.inspector.host.HOSTS_DIFFER` is the root mean square), and how far
the shipped inspector is off there: as it is, and with the factor that `driple measure --calibrate`
finds from the other workloads. Without DATASET the table is read.
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

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset
from driple.dataset.store import read_dataset
from driple.errors import DatasetError, DripleError
from driple.files import atomic_write
from driple.graph.opgraph import OpGraph
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.checkpoint_places import checkpoint_path
from driple.inspector.host import host_tuning, on_any_host
from driple.inspector.predict import Prediction, predict
from driple.trace.repeatability import smape_shares
from driple.trace.targets import TARGET_NAMES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "datasets" / "runs" / "other-hosts"
NAME, TIME = "CPU-P1w2_ho-200M", "iteration_time_s"
FloatArray = npt.NDArray[np.float64]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table and print what it tells."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", type=Path, nargs="?", help="of driple measure, there")
    given = parser.parse_args(argv)
    file = FOLDER / f"{NAME}.csv"
    try:
        if given.dataset is not None:
            FOLDER.mkdir(parents=True, exist_ok=True)
            text = table_of(read_dataset(given.dataset))
            atomic_write(file, text.encode(), error=DatasetError)
        usual = read_dataset(ROOT / "datasets" / "settings" / NAME)
        errors = predicted(file, usual)
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
    print("the interval for any host is of these workloads too; others may be further off")
    for way, values in errors.items():
        print(f"{way}: " + ", ".join(f"{name} {value:.1f} %" for name, value in values.items()))
    return 0


def predicted(file: Path, usual: Dataset) -> Mapping[str, Mapping[str, float]]:
    """Errors of the shipped inspector on the other host, in percent, by way.

    Raises:
        DripleError: no inspector, or workloads that the data set lacks.
    """
    checkpoint = load_checkpoint(checkpoint_path(Setting.parse(usual.setting), "default"))
    graphs = {one.workload: one.graph for one in usual.examples}
    measured = read_numbers(file)
    predictions = [predict(whole_graph(graphs[name]), checkpoint) for name in measured]
    by_way: dict[str, list[Prediction]] = {"as shipped": predictions, "for any host": []}
    by_way["with the factor of the others"] = []
    times = np.array([values[-1] for values in measured.values()])
    names = [*measured]
    for i, prediction in enumerate(predictions):
        rest = np.arange(len(predictions)) != i
        others = [name for name in names if name != names[i]]
        known = [predictions[k] for k in np.flatnonzero(rest)]
        host = host_tuning(usual.setting, others, known, times[rest])
        by_way["for any host"].append(on_any_host(prediction))
        by_way["with the factor of the others"].append(host.applied(prediction))
    return {way: _errors(some, [*measured.values()]) for way, some in by_way.items()}


def whole_graph(graph: object) -> OpGraph:
    """A graph of a data set, which must not be one of groups.

    Raises:
        DatasetError: it is.
    """
    if not isinstance(graph, OpGraph):
        raise DatasetError("the data set has graphs of groups; give one with whole graphs")
    return graph


def _errors(
    predictions: Sequence[Prediction], measured: Sequence[FloatArray]
) -> Mapping[str, float]:
    values, truth = np.array([one.numbers for one in predictions]), np.array(measured)
    ends = np.array([one.ends[-1] for one in predictions if one.ends is not None])
    smape = 100 * smape_shares(values, truth)[:, :-1]
    inside = (truth[:, -1] >= ends[:, 0]) & (truth[:, -1] <= ends[:, 1])
    return {
        "median error of the step time": 100 * float(np.median(abs(values / truth - 1)[:, -1])),
        "SMAPE of the twelve targets": float(smape.mean()),
        "step times inside their interval": 100 * float(inside.mean()),
    }


def read_numbers(file: Path) -> Mapping[str, FloatArray]:
    """The twelve targets and the step time of each workload of a table."""
    with file.open(encoding="utf-8", newline="") as stream:
        return {
            row["workload"]: np.array([float(row[name]) for name in (*TARGET_NAMES, TIME)])
            for row in csv.DictReader(stream)
        }


def table_of(data: Dataset) -> str:
    """Text of the table: a line for each workload."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["workload", *TARGET_NAMES, TIME])
    for example in sorted(data.examples, key=lambda item: item.workload):
        values = [*example.targets.flat.tolist(), example.iteration_time_s]
        rows.writerow([example.workload, *(f"{value:.6g}" for value in values)])
    return text.getvalue()


def read_times(file: Path) -> Mapping[str, float]:
    """Step time of each workload of a table."""
    return {name: float(values[-1]) for name, values in read_numbers(file).items()}


def logs_of(times: Mapping[str, float], usual: Dataset) -> FloatArray:
    """ln(step time there / label) of each workload that has one."""
    labels = {one.workload: one.iteration_time_s for one in usual.examples}
    logs = [np.log(times[name] / labels[name]) for name in times if labels.get(name)]
    return np.array(logs)


if __name__ == "__main__":
    sys.exit(main())
