"""Whether the warnings of `driple predict` separate good answers from bad ones.

    python -m scripts.checks.predict_warnings FOLDER... [--checkpoint FILE] [--options FILE.json]
        [--only] [--data-set FOLDER --first N] [--steps 50]

Of each graph in the folders: step time that `driple predict` answers with the checkpoint, step time
that the simulator answers of the same graph on the same setting, whether the answer is warned of.
An answer is bad if it is off by more than 25 %. Wanted: at least 80 % of the bad ones are warned
of, at most 30 % of the others. Exit status 1 if that is not reached.

The file of --options holds what the graphs leave open: {"graph file without ending": {"batch_size":
32, "inputs": {"name": [32, 20]}, "target": "Adam", "loop_turns": 20}}; other keys are ignored.
--only leaves out graphs that this file does not name.
--data-set checks the first N workloads of a data set's test part (split of seed 0) too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driple.answers.checked import predict
from driple.cluster.setting import Setting
from driple.dataset.split import random_split
from driple.dataset.store import read_dataset
from driple.errors import DripleError, GraphError, PredictionError
from driple.graph import OpGraph, ReadOptions, read_graph, require_training
from driple.inspector.checkpoint import Checkpoint, load_checkpoint
from driple.simulate.calibration import shipped_calibration
from driple.simulate.run import simulate

BAD = 0.25  # relative error of the step time from which on an answer is bad
LEAST_OF_BAD, MOST_OF_GOOD = 0.8, 0.3  # shares that shall be warned of
ENDINGS = (".pb", ".pbtxt", ".meta")
STEPS = 50


@dataclass(frozen=True, kw_only=True)
class Row:
    """One graph.

    Attributes:
        name: of the graph.
        simulated_s: step time by the simulator.
        predicted_s: step time by the inspector; None where it refuses, which counts as a warning.
        warned: whether the answer is called a guess.
        is_strange: whether the graph is unlike those that the inspector learned from.
    """

    name: str
    simulated_s: float
    predicted_s: float | None
    warned: bool
    is_strange: bool

    @property
    def error(self) -> float:
        """Relative error of the step time; infinite for a refused answer."""
        if self.predicted_s is None:
            return float("inf")
        return abs(self.predicted_s / self.simulated_s - 1)

    @property
    def is_bad(self) -> bool:
        """Whether it is off by more than 25 %."""
        return self.error > BAD


@dataclass(frozen=True, kw_only=True)
class Table:
    """Good and bad answers, with a warning and without."""

    bad_warned: int
    bad_silent: int
    good_warned: int
    good_silent: int

    @classmethod
    def of(cls, rows: list[Row]) -> Table:
        """Count the rows."""
        return cls(
            bad_warned=sum(row.is_bad and row.warned for row in rows),
            bad_silent=sum(row.is_bad and not row.warned for row in rows),
            good_warned=sum(not row.is_bad and row.warned for row in rows),
            good_silent=sum(not row.is_bad and not row.warned for row in rows),
        )

    @property
    def is_reached(self) -> bool:
        """Whether enough of the bad and few enough of the good answers are warned of."""
        bad, good = self.bad_warned + self.bad_silent, self.good_warned + self.good_silent
        return self.bad_warned >= LEAST_OF_BAD * bad and self.good_warned <= MOST_OF_GOOD * good

    def lines(self) -> list[str]:
        """For people."""
        bad, good = self.bad_warned + self.bad_silent, self.good_warned + self.good_silent
        return [
            f"off by more than {BAD:.0%}: {bad:4} answers, {self.bad_warned:4} warned of "
            f"({_share(self.bad_warned, bad)}, wanted {LEAST_OF_BAD:.0%} or more)",
            f"others:                {good:4} answers, {self.good_warned:4} warned of "
            f"({_share(self.good_warned, good)}, wanted {MOST_OF_GOOD:.0%} or less)",
        ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def check(name: str, graph: OpGraph, checkpoint: Checkpoint, steps: int = STEPS) -> Row:
    """Predict and simulate one graph.

    Args:
        name: of the row.
        graph: with a training step.
        checkpoint: which inspector.
        steps: that are simulated.

    Raises:
        DripleError: the graph cannot be simulated.
    """
    setting = Setting.parse(checkpoint.setting)
    simulation = simulate(graph, setting, shipped_calibration(setting), num_steps=steps)
    try:
        prediction = predict(graph, checkpoint)
    except PredictionError:
        return Row(
            name=name,
            simulated_s=simulation.iteration_time_s,
            predicted_s=None,
            warned=True,
            is_strange=True,
        )
    return Row(
        name=name,
        simulated_s=simulation.iteration_time_s,
        predicted_s=prediction.iteration_time_s,
        warned=bool(prediction.warnings),
        is_strange=bool(prediction.strange),
    )


def graphs_in(folder: Path, options: Mapping[str, Any]) -> Iterator[tuple[str, OpGraph]]:
    """Graphs of the folder with a training step; says on stderr why others are left out."""
    for file in sorted(folder.iterdir()):
        name = file.name.removesuffix(".gz")
        if not name.endswith(ENDINGS):
            continue
        name = name.rsplit(".", 1)[0]
        try:
            graph = _read(file, options.get(name, {}))
            require_training(graph)
        except DripleError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        yield name, graph


def _read(file: Path, given: Mapping[str, Any]) -> OpGraph:
    """A graph whose batch is fixed keeps it, whatever the options say."""
    try:
        return read_graph(file, options=_options(given))
    except GraphError:
        return read_graph(file, options=_options({**given, "batch_size": None}))


def _options(given: Mapping[str, Any]) -> ReadOptions:
    return ReadOptions(
        batch_size=given.get("batch_size"),
        inputs={name: tuple(shape) for name, shape in given.get("inputs", {}).items()},
        target=given.get("target"),
        loop_turns=given.get("loop_turns"),
    )


def graphs_of(folder: Path, first: int) -> Iterator[tuple[str, OpGraph]]:
    """The first graphs of a data set's test part."""
    data = read_dataset(folder)
    for row in random_split(data.workloads, 0).test[:first]:
        graph = data.examples[row].graph
        if isinstance(graph, OpGraph):
            yield data.workloads[row], graph


def main() -> int:
    """Print a row for each graph, then the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        default=Path("checkpoints/V100-P1w2_ho-PCIe/default.safetensors"),
    )
    parser.add_argument("--options", type=Path)
    parser.add_argument("--data-set", type=Path)
    parser.add_argument("--first", type=int, default=50)
    parser.add_argument("--only", action="store_true", help="only graphs that --options names")
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    checkpoint = load_checkpoint(given.checkpoint)
    options = json.loads(given.options.read_text()) if given.options else {}
    graphs = [pair for folder in given.folders for pair in graphs_in(folder, options)]
    if given.only:
        graphs = [(name, graph) for name, graph in graphs if name in options]
    if given.data_set:
        graphs += graphs_of(given.data_set, given.first)
    rows = []
    print(f"{'graph':50} {'simulated':>10} {'predicted':>10} {'error':>7}  warned  strange")
    for name, graph in graphs:
        row = check(name, graph, checkpoint, given.steps)
        rows.append(row)
        predicted = "refused" if row.predicted_s is None else f"{row.predicted_s:.4g}"
        print(
            f"{name[:50]:50} {row.simulated_s:10.4g} {predicted:>10} {row.error:7.0%}  "
            f"{'yes' if row.warned else 'no':6}  {'yes' if row.is_strange else 'no'}",
            flush=True,
        )
    table = Table.of(rows)
    print("\n".join(table.lines()))
    return 0 if table.is_reached else 1


if __name__ == "__main__":
    sys.exit(main())
