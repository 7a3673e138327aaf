"""`driple simulate --validate`: how far the simulation is from what others measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.show import note, print_json, print_table, progress_bar
from driple.codec import to_json

if TYPE_CHECKING:
    from driple.calibration.paper_figures import Fact
    from driple.dataset.example import Dataset

__all__ = ["print_validation"]

# Places within the folder of published data.
_TABLES, _GRAPHS, _PAPER_GRAPHS = "published", "calibration/graphs", "calibration/paper"
_FACTS = "driple_paper.csv"
_WHOLE = "V100-P1w2_ho-PCIe"  # the simulated data set of the whole catalogue
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


def print_validation(data: Path, *, json: bool) -> None:
    """Fit without each model and each device, and print the errors on what was left out.

    Args:
        data: folder with published measurements and graphs of their models.
        json: print one object.
    """
    from driple.calibration.paper_figures import check_facts, read_facts, workloads_of
    from driple.calibration.validate import error_rows, validate
    from driple.dataset.graph_store import GraphStore
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.prepared_job import PreparedJob

    rows = read_facts(data / _TABLES / _FACTS)
    store = GraphStore.open(data / _PAPER_GRAPHS)
    with progress_bar() as bar:
        task = bar.add_task("fitting", total=None)
        predictions = validate(
            data / _TABLES,
            data / _GRAPHS,
            progress=lambda what: bar.update(task, description=what, advance=1),
        )
    jobs = {
        name: PreparedJob(store.graph(name)) for name in workloads_of(rows) if name in store.places
    }
    facts = check_facts(rows, jobs, shipped_calibration(), _whole_catalogue(data))
    errors = error_rows(predictions)
    if json:
        print_json({"errors": to_json(errors), "facts": to_json(facts)})
        return
    for kind, words in _KINDS.items():
        print(f"{words}: |simulated - measured| / measured of the iteration time")
        print_table(
            ["held out", "source", "rows", "median", "90 %", "roofline median", "90 %"],
            [[_HELD_OUT[row.held_out], row.source, str(row.rows),
              *(f"{getattr(row, name):.1f} %" for name in _ERRORS)]
             for row in errors if row.kind == kind],
        )  # fmt: skip
        print()
    _print_facts(facts)
    note("roofline: three numbers per device and precision, fitted to the same rows")


def _whole_catalogue(data: Path) -> Dataset | None:
    """The simulated data set beside the published data, of which some figures of the paper are."""
    from driple.dataset.store import read_dataset
    from driple.errors import DatasetError, MissingExtraError

    folder = data / _WHOLE
    try:
        return read_dataset(folder)
    except (DatasetError, MissingExtraError) as error:
        note(f"rows over the whole catalogue stay empty: {error}")
        return None


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
