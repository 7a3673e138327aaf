"""What a plan says beside its offers is said once, and of what is shown alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from driple.api.plan_places import PlacesAsked
from driple.api.plan_remarks import doubts_of, remarks_of_machine, why_no_price
from driple.api.planning import plan
from driple.catalog.machine_file import MachineFile
from driple.jobs.load import JobOptions, load_job
from driple.jobs.training_config.config import Undecided
from driple.planning.variants import JobVariants
from driple.render.remarks import sentences
from tests.catalog.test_machine_file import HOST

TF32 = JobOptions(precision="tf32")


def test_a_job_that_is_known_has_a_price() -> None:
    job = load_job("resnet18")
    assert why_no_price(None) is why_no_price(job) is None
    field = Undecided(file="c.json", field="odd", value="1", changes=("time",), reason="not_known")
    reason = why_no_price(replace(job, undecided=(field,)))
    assert reason is not None
    assert "odd" in reason.values["fields"]  # type: ignore[operator]


def test_a_machine_leaves_open_what_its_file_lacks_once_for_all_settings() -> None:
    asked = PlacesAsked(settings=("1xA100", "1xA100"))
    assert remarks_of_machine(asked, None) == []
    own = MachineFile(file="m.toml", host=HOST)  # no time of a GPU
    remarks = remarks_of_machine(replace(asked, machine=own), None)
    assert remarks
    assert len(set(remarks)) == len(remarks)


def test_only_offers_that_are_shown_are_doubted() -> None:
    """A 2080 Ti has no TF32, which an A100 has."""
    result = plan("resnet18", options=TF32, samples=1e5, settings=["1xA100", "1x2080Ti"])
    variants = JobVariants("resnet18", TF32)
    by_name = {offer.name: doubts_of([offer], variants) for offer in result.offers}
    assert doubts_of([], variants) == []
    texts = {name: " ".join(sentences(doubts)) for name, doubts in by_name.items()}
    assert "no TF32" in texts["1x2080Ti"]
    assert "TF32" not in texts["1xA100"]
    both = doubts_of(result.offers, variants)
    assert both == [*dict.fromkeys(one for doubts in by_name.values() for one in doubts)]
