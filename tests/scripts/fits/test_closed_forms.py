"""The errors that the closed forms state: of rows and settings that nothing was fitted to."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from driple.analytic.closed_forms import FORMAT
from scripts.fits import closed_forms
from scripts.settings.shipped import FIRST


def form(method: str, iteration_time_s: float) -> Any:
    """A closed form's answer."""
    return SimpleNamespace(method=method, iteration_time_s=iteration_time_s)


def test_rows_of_the_fit_and_the_first_setting_do_not_count() -> None:
    """The repaired model is not scored on rows that it was fitted to; others are on all."""
    seen, unseen = (SimpleNamespace(measured_s=1.0, name=name) for name in ("seen", "unseen"))
    forms = [form("zeng", 1.2), form("zeng-repaired", 1.1)]
    measured = [
        SimpleNamespace(setting=setting, methods={"zhang": np.array([ratio])})
        for setting, ratio in ((FIRST, 9.0), ("CPU-P2w2/ho-200M", 1.5))
    ]
    clusters: Any = [(seen, forms), (unseen, forms)]
    errors = closed_forms.errors_of(clusters, [seen], measured)  # type: ignore[list-item,arg-type]
    assert errors["servers"]["zeng"]["rows"] == 2
    assert errors["servers"]["zeng-repaired"]["rows"] == 1
    assert errors["servers"]["zeng-repaired"]["median_pct"] == pytest.approx(10.0)
    assert errors["CPU"]["zhang"] == {
        "rows": 1, "median_pct": 50.0, "mean_pct": 50.0, "p90_pct": 50.0
    }  # fmt: skip


def test_the_shipped_file_is_of_this_program() -> None:
    """It has the format that is read, and is fitted to every other row."""
    shipped = json.loads(closed_forms.SHIPPED.read_bytes())
    assert shipped["format"] == FORMAT
    assert shipped["about"]["made_by"] == "scripts/fits/closed_forms.py"
    assert shipped["about"]["rows"] == len(closed_forms.read_zeng(closed_forms.TABLES)[::2])
