"""Workloads on a CPU setting, measured on other hosts, against the inspector by three ways.

    driple measure --calibrate -o runs/host --dataset HERE/DATE/known
    driple measure WORKLOADS -o runs/twelve --dataset HERE/DATE/twelve
    python -m scripts.checks.new_families -o runs/families --dataset HERE/DATE/families
    python -m scripts.studies.cpu_host.run

WORKLOADS are those of datasets/runs/other-hosts. HERE is scripts/studies/cpu_host, with a folder by
DATE for each machine. The data sets are kept; this program predicts those of every machine and
writes results.jsonl.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from driple.cluster.setting import Setting
from driple.dataset.example import Example
from driple.dataset.store import read_dataset
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.checkpoint_places import checkpoint_path
from driple.inspector.host import HostTuning, host_tuning, on_any_host
from driple.inspector.predict import TIMES, Prediction, predict
from driple.trace.repeatability import smape_shares
from driple.trace.targets import NUM_TARGETS, Targets
from scripts.runs.other_hosts import whole_graph
from scripts.studies.kit.results import Row, add_result

HOME = Path(__file__).parent
RESULTS = HOME / "results.jsonl"
SETTING = "CPU-P1w2/ho-200M"
GROUPS = ("twelve", "families")


def examples(machine: Path, group: str) -> Sequence[Example]:
    """Measured workloads of a group on a machine, given by its folder."""
    return read_dataset(machine / group).examples


def known_host(known: Sequence[Example], predicted: Sequence[Prediction]) -> HostTuning:
    """What the six known workloads tell of the host.

    Args:
        known: these six, measured.
        predicted: of these six.
    """
    return host_tuning(
        SETTING,
        [one.workload for one in known],
        predicted,
        np.array([one.iteration_time_s for one in known]),
    )


def scaled(prediction: Prediction, factor: float) -> Prediction:
    """The prediction with one factor on all durations."""
    factors = np.ones(NUM_TARGETS + 1)
    factors[TIMES] = factor
    values = factors * prediction.numbers
    return replace(
        prediction,
        targets=Targets(values[:NUM_TARGETS].reshape(prediction.targets.values.shape)),
        iteration_time_s=float(values[-1]),
        ends=None if prediction.ends is None else factors[:, None] * prediction.ends,
    )


def rows(machine: Path) -> Iterator[Row]:
    """One row for each workload and way, of a machine given by its folder."""
    checkpoint = load_checkpoint(checkpoint_path(Setting.parse(SETTING), "default"))
    known = examples(machine, "known")
    predicted = [predict(whole_graph(one.graph), checkpoint) for one in known]
    host = known_host(known, predicted)
    ratios = [
        one.iteration_time_s / made.iteration_time_s
        for one, made in zip(known, predicted, strict=True)
    ]
    whole = float(np.exp(np.median(np.log(ratios))))
    for group in GROUPS:
        for example in examples(machine, group):
            prediction = predict(whole_graph(example.graph), checkpoint)
            ways = {
                "for any host": on_any_host(prediction),
                "one factor on all times": scaled(prediction, whole),
                "a factor on computing": host.applied(prediction),
            }
            truth = np.append(example.targets.flat, example.iteration_time_s)
            for way, each in ways.items():
                shares = smape_shares(each.numbers[None], truth[None])[0]
                low, high = (None, None) if each.ends is None else each.ends[-1].tolist()
                yield {
                    "machine": machine.name,
                    "group": group,
                    "workload": example.workload,
                    "way": way,
                    "measured_s": round(float(truth[-1]), 5),
                    "predicted_s": round(each.iteration_time_s, 5),
                    "low_s": low,
                    "high_s": high,
                    "smape_pct": round(100 * float(shares[:NUM_TARGETS].mean()), 2),
                    "computing_factor": round(host.computing_factor, 4),
                    "whole_factor": round(whole, 4),
                }


if __name__ == "__main__":
    RESULTS.unlink(missing_ok=True)
    for folder in sorted(HOME.glob("20*")):
        for row in rows(folder):
            add_result(RESULTS, row)
