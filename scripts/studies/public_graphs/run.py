"""Check the graph reader on public training graphs that nobody here wrote: writes results.jsonl.

    python -m scripts.studies.public_graphs.run FOLDER [--only ID ...] [--truth-kept]

FOLDER holds the graph files and `choice.json`: for each graph its id, project, path, commit, kind
and file, and optionally `options` (batch, shapes and values of inputs, target) and `reason` (why
Driple deviates). The truth comes from TensorFlow (`truth.py`), not from Driple.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from driple.errors import DripleError
from driple.files import atomic_write
from driple.graph import read_graph
from driple.graph.cost import cost_of_graph
from driple.graph.options import ReadOptions

TOLERANCE = 0.10
DEFAULT_BATCH = 32
RESULTS = Path(__file__).parent / "results.jsonl"
HOW = "run by TensorFlow"
CHOSEN, HELD_OUT = "chosen", "held out"


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Compared numbers of one step.

    Attributes:
        sent_bytes: from the worker to servers; of a graph without servers, if its variables were
            on one server.
        received_bytes: from servers to the worker, likewise.
        flops: of the worker, without the updates, which run where the variables are.
    """

    sent_bytes: float
    received_bytes: float
    flops: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """One graph.

    Attributes:
        id: short name.
        project: repository.
        path: of the file in the repository.
        commit: that holds it.
        licence: as the repository states it.
        kind: of model or job.
        batch: samples that bound its unknown first dimensions; None if it fixes them.
        target: train op that was run.
        num_nodes: nodes in the file.
        num_run: nodes that ran in the step.
        parameters: elements of the variables that the step updates.
        layout: what Driple finds of servers; empty if it refuses the graph.
        truth: by TensorFlow; None if it cannot run the graph.
        how: the way to the truth.
        driple: by Driple; None if it refuses the graph.
        unknown_share: share of the ops that unknown dimensions affect, by Driple.
        error: why Driple or TensorFlow refuses it.
        reason: of a deviation.
        group: "chosen", or "held out" from the work on the reader until it was first compared.
    """

    id: str
    project: str
    path: str
    commit: str
    licence: str
    kind: str
    batch: int | None
    target: str
    num_nodes: int
    num_run: int
    parameters: int
    layout: str
    truth: Figures | None
    how: str
    driple: Figures | None
    unknown_share: float | None
    error: str = ""
    reason: str = ""
    group: str = CHOSEN

    def ratios(self) -> tuple[float, float, float] | None:
        """Driple's figures as shares of the true ones; None without one of them."""
        if self.truth is None or self.driple is None:
            return None
        pairs = zip(asdict(self.driple).values(), asdict(self.truth).values(), strict=True)
        sent, received, flops = (_ratio(got, true) for got, true in pairs)
        return sent, received, flops

    def is_right(self) -> bool:
        """Whether all three numbers are within 10 %."""
        ratios = self.ratios()
        return ratios is not None and all(abs(ratio - 1) <= TOLERANCE for ratio in ratios)


def _ratio(got: float, true: float) -> float:
    if true == 0:
        return 1.0 if got == 0 else float("inf")
    return got / true


def true_row(entry: Mapping[str, Any], folder: Path) -> Row:
    """Run a graph in TensorFlow; without Driple's figures."""
    from scripts.studies.public_graphs.truth import TruthError, load_definition, run_step, train_ops

    options = entry.get("options", {})
    batch = options.get("batch", DEFAULT_BATCH)
    graph, _ = load_definition(folder / entry["file"])
    target = options.get("target") or next(iter(train_ops(graph)), "")
    truth, num_run, parameters, error = None, 0, 0, ""
    try:
        ran = run_step(
            graph,
            target,
            batch=batch,
            inputs=options.get("inputs", {}) | options.get("stand_ins", {}),
            values=options.get("values"),
        )
    except TruthError as problem:
        error = str(problem)
    else:
        truth = Figures(
            sent_bytes=ran.sent_bytes,
            received_bytes=ran.received_bytes,
            flops=ran.worker_flops,
        )
        num_run, parameters = ran.nodes, ran.parameters
    return Row(
        **{key: entry[key] for key in ("id", "project", "path", "commit", "licence", "kind")},
        batch=batch,
        target=target,
        num_nodes=len(graph.node),
        num_run=num_run,
        parameters=parameters,
        layout="",
        truth=truth,
        how=entry.get("how", HOW),
        driple=None,
        unknown_share=None,
        error=error,
        reason=entry.get("reason", ""),
        group=entry.get("group", CHOSEN),
    )


def with_driple(row: Row, entry: Mapping[str, Any], folder: Path) -> Row:
    """The row with what Driple says, given the same batch, shapes and train op."""
    options = entry.get("options", {})
    given = ReadOptions(
        batch_size=None if options.get("is_batch_fixed") else row.batch,
        inputs={name: tuple(shape) for name, shape in options.get("inputs", {}).items()},
        target=row.target,
        loop_turns=options.get("loop_turns"),
    )
    values = asdict(row) | {"truth": row.truth, "reason": entry.get("reason", "")}
    try:
        graph = read_graph(folder / entry["file"], options=given)
        flops = cost_of_graph(graph).total_flops
    except DripleError as problem:
        return Row(**values | {"error": str(problem).replace(f"{folder}/", ""), "driple": None})
    return Row(
        **values
        | {
            "driple": Figures(
                sent_bytes=graph.sent_bytes, received_bytes=graph.received_bytes, flops=flops
            ),
            "layout": graph.layout,
            "unknown_share": graph.report.unknown_share,
            "error": "",
        }
    )


def read_rows(path: Path) -> dict[str, Row]:
    """Rows of an earlier run, by id; none without a file."""
    if not path.exists():
        return {}
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        item["id"]: Row(
            **item
            | {
                key: None if item[key] is None else Figures(**item[key])
                for key in ("truth", "driple")
            }
        )
        for item in entries
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the graphs of a folder."""
    parser = argparse.ArgumentParser(description="Check the graph reader on public graphs.")
    parser.add_argument("folder", type=Path, help="graph files and choice.json")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of finished rows")
    parser.add_argument("--only", nargs="*", help="ids of graphs; all by default")
    parser.add_argument("--truth-kept", action="store_true", help="keep the truth of finished rows")
    args = parser.parse_args(arguments)
    for name, value in (("CUDA_VISIBLE_DEVICES", ""), ("TF_ENABLE_ONEDNN_OPTS", "0")):
        os.environ[name] = value  # CPU only, and op types as in the graph
    rows = read_rows(args.results)
    entries = json.loads((args.folder / "choice.json").read_text())
    for entry in entries:
        if args.only and entry["id"] not in args.only:
            continue
        old = rows.get(entry["id"])
        row = old if args.truth_kept and old is not None else true_row(entry, args.folder)
        rows[entry["id"]] = with_driple(row, entry, args.folder)
        print(f"{entry['id']}: {rows[entry['id']].ratios()}", flush=True)
        kept = [rows[item["id"]] for item in entries if item["id"] in rows]
        lines = [json.dumps(asdict(item), sort_keys=True) for item in kept]
        atomic_write(
            args.results, "".join(f"{line}\n" for line in lines).encode(), error=DripleError
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
