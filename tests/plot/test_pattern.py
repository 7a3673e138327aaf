"""Pictures of predictions: whatever is predicted can be drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.inspector.predict import predict
from driple.plot.pattern import plot_predictions
from tests.inspector.examples import checkpoint_of, constant_inspector
from tests.inspector.test_predict import small_graph


def test_a_share_outside_of_its_bounded_interval_is_drawn(tmp_path: Path) -> None:
    """A GPU's utilisation predicted as 120 %, whose interval ends at 100 %."""
    pytest.importorskip("matplotlib")
    prediction = predict(small_graph(), checkpoint_of(constant_inspector(120.0, 4), 4))
    ends = np.stack([prediction.numbers / 1.5, np.minimum(prediction.numbers * 1.5, 100.0)], axis=1)
    file = tmp_path / "p.png"
    plot_predictions([replace(prediction, ends=ends, level=0.9)], file, title="over 100 %")
    assert file.stat().st_size > 1000
