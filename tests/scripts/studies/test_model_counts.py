"""What the study of FLOPs and parameters states, and that its numbers are those of today's code."""

from __future__ import annotations

import pytest

from scripts.studies.kit.results import pick, read_results
from scripts.studies.model_counts.report import gmacs, is_close
from scripts.studies.model_counts.run import RESULTS, published, timm_row

ROWS = read_results(RESULTS)


def test_most_models_of_timm_have_the_multiply_adds_that_timm_counts() -> None:
    read = [row for row in pick(ROWS, kind="timm") if "error" not in row]
    assert len(read) > 400
    assert sum(map(is_close, read)) >= 0.95 * len(read)


def test_models_of_transformers_have_the_flops_of_torchs_counter() -> None:
    """All products of the forward pass; causal attention does half of its own."""
    rows = pick(ROWS, kind="transformers")
    assert len(rows) == 10
    for row in rows:
        assert row["forward_products"] == pytest.approx(row["counter_forward"], rel=0.01)
        assert row["backward_products"] == pytest.approx(row["counter_backward"], rel=0.07)
        assert row["parameters"] == row["model_parameters"]


@pytest.mark.parametrize("name", ["tinynet_e", "resnetblur18", "deit_tiny_patch16_224"])
def test_stored_numbers_are_those_of_todays_code(name: str) -> None:
    (entry,) = [one for one in published() if one["model"] == name]
    counted_row = timm_row(entry)
    assert is_close(counted_row)
    for stored in [row for row in pick(ROWS, kind="timm") if row["model"] == name]:
        assert gmacs(counted_row) == pytest.approx(gmacs(stored))
        assert counted_row["parameters"] == stored["parameters"]
