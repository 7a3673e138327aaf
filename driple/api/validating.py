"""The question `validate`: how far the simulator is from what others measured.

folder of published runs -> fits without each model and device -> ValidateResult
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driple.api.results import Cell, Result
from driple.codec import Json, to_dict

if TYPE_CHECKING:
    from driple.calibration.paper_figures import Fact
    from driple.calibration.validate import ErrorRow
    from driple.dataset.example import Dataset

__all__ = ["ValidateResult", "validate"]

# Places within the folder of published data.
_TABLES, _GRAPHS, _PAPER_GRAPHS = "published", "calibration/graphs", "calibration/paper"
_FACTS = "driple_paper.csv"
_WHOLE = "V100-P1w2_ho-PCIe"  # the simulated data set of the whole catalogue


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidateResult(Result):
    """Errors of the simulated iteration time on published runs.

    Attributes:
        errors: by kind of cluster, what was held out of the fit, and source; percent.
        facts: figures of the Driple paper, and what the simulator gives for them.
        remarks: what is missing, one sentence each.
    """

    errors: tuple[ErrorRow, ...]
    facts: tuple[Fact, ...]
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple validate --json` prints."""
        return {
            "question": "validate",
            "errors": [to_dict(one) for one in self.errors],
            "facts": [to_dict(one) for one in self.facts],
            "remarks": list(self.remarks),
        }

    def rows(self) -> list[dict[str, Cell]]:
        """One row per kind of cluster, held-out part and source."""
        return [
            {
                "kind": one.kind,
                "held_out": one.held_out,
                "source": one.source,
                "rows": one.rows,
                "median_pct": one.median_pct,
                "p90_pct": one.p90_pct,
                "roofline_median_pct": one.roofline_median_pct,
                "roofline_p90_pct": one.roofline_p90_pct,
            }
            for one in self.errors
        ]


def validate(
    datasets: Path = Path("datasets"), *, progress: Callable[[str], None] | None = None
) -> ValidateResult:
    """Fit the simulator without each model and each device, and predict what was left out.

    Args:
        datasets: folder with published measurements and graphs of their models.
        progress: called with each fit's name.

    Raises:
        DatasetError: the folder lacks published measurements or graphs.
    """
    from driple.calibration.paper_figures import check_facts, read_facts, workloads_of
    from driple.calibration.validate import error_rows
    from driple.calibration.validate import validate as fit_and_predict
    from driple.dataset.graph_store import GraphStore
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.prepared_job import PreparedJob

    rows = read_facts(datasets / _TABLES / _FACTS)
    store = GraphStore.open(datasets / _PAPER_GRAPHS)
    predictions = fit_and_predict(
        datasets / _TABLES, datasets / _GRAPHS, progress=progress or (lambda _: None)
    )
    jobs = {
        name: PreparedJob(store.graph(name)) for name in workloads_of(rows) if name in store.places
    }
    whole, remark = _whole_catalogue(datasets)
    facts = check_facts(rows, jobs, shipped_calibration(), whole)
    return ValidateResult(
        errors=tuple(error_rows(predictions)),
        facts=tuple(facts),
        remarks=(remark,) if remark else (),
    )


def _whole_catalogue(datasets: Path) -> tuple[Dataset | None, str]:
    """The simulated data set that some figures of the paper need; or a remark."""
    from driple.dataset.store import read_dataset
    from driple.errors import DatasetError, MissingExtraError

    try:
        return read_dataset(datasets / _WHOLE), ""
    except (DatasetError, MissingExtraError) as error:
        return None, f"rows over the whole catalogue stay empty: {error}"
