"""`driple validate`: how far the simulation is from what others measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.outputs import JsonOption
from driple.cli.progress import named_steps
from driple.cli.train import datasets_folder
from driple.data_folders import HERE
from driple.render.remarks import sentences
from driple.render.show import note, print_json, print_table
from driple.render.validate_tables import (
    print_entry,
    print_own_runs,
    print_rankings,
    print_scores,
    print_utilisation,
)

if TYPE_CHECKING:
    from driple.runs.validation.paper_figures import Fact

__all__ = ["validate"]

_KINDS = {
    "single": "one device",
    "ring": "all-reduce",
    "servers": "parameter servers",
}
_HELD_OUT = {
    "nothing": "nothing (the rows of the fit)",
    "model": "the model",
    "device": "the device",
}
_ERRORS = ("median_pct", "p90_pct", "roofline_median_pct", "roofline_p90_pct")


def validate(
    datasets: Annotated[
        Path, typer.Option(help="folder with published measurements and graphs of their models")
    ] = HERE,
    rows: Annotated[
        Path | None,
        typer.Option(help="your own table of rows to score: CSV with job, setting and seconds"),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            help="predictions of another tool, scored beside the simulator: CSV with id and seconds"
        ),
    ] = None,
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="every workload: forward passes too",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Compare the simulator with published measurements that were held out of its fits.

    The fits leave out each model family, each device and each source in turn, and predict what was
    left out. Baselines are fitted to the same rows. Devices and links are those of published data
    sheets; what training reaches of them was fitted to published measurements.

    --against without --rows scores an entry of the benchmark alone, in seconds.

    Example:

      driple validate --json

      driple validate --against predictions.csv

      driple validate --rows mine.csv --against predictions.csv
    """
    from driple.api.validating import validate as ask

    folder = datasets_folder(datasets)
    with named_steps() as advance:
        result = ask(folder, rows=rows, against=against, forward=all_, progress=advance)
    for words in sentences(result.remarks):
        note(words)
    if json:
        print_json(result.to_dict())
        return
    print_own_runs(result.runs)
    print_entry(result.entry)
    if against is not None and rows is None:
        return
    print_scores(result.scores)
    print_rankings(result.rankings)
    print_utilisation(result.utilisation)
    if rows is not None:
        return
    for kind, words in _KINDS.items():
        print(f"TensorFlow, {words}: |simulated - measured| / measured of the iteration time")
        print_table(
            ["held out", "source", "rows", "median", "90 %", "roofline median", "90 %"],
            [[_HELD_OUT[row.held_out], row.source, str(row.rows),
              *(f"{getattr(row, name):.1f} %" for name in _ERRORS)]
             for row in result.errors if row.kind == kind],
        )  # fmt: skip
        print()
    _print_facts(result.facts)
    note("roofline: three numbers per device and precision, fitted to the same rows")


def _print_facts(facts: Sequence[Fact]) -> None:
    print("the Driple paper, row by row")
    cells = [
        [
            f"{fact.section}: {fact.what}",
            f"{fact.paper:g} {fact.unit}".strip(),
            "-" if fact.simulated is None else f"{fact.simulated:.3g} {fact.unit}".strip(),
        ]
        for fact in facts
    ]
    print_table(["", "paper", "simulated"], cells)
