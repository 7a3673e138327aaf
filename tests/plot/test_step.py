"""One step: phases of the device, and how each resource is used in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple import JobOptions, predict
from driple.plot.step import plot_step
from tests.plot.looks import drawn, faults_of, words_of


@pytest.mark.parametrize("setting", ["1xH100", "8xH100", "2x8xV100-SXM2/NVLink+10G"])
def test_a_step_of_a_gpu_names_phases_and_what_each_resource_does(
    tmp_path: Path, setting: str
) -> None:
    (answer,) = predict("mobilenet_v2", setting, options=JobOptions(batch_size=64)).answers
    assert answer.simulation is not None
    step = answer.simulation.step
    assert step is not None
    path = tmp_path / "p.png"
    interval = answer.iteration_time_s.interval
    title = f"mobilenet_v2 on {setting}: simulated"
    figure = drawn(lambda: plot_step(step, path, title=title, interval=interval), path)
    assert faults_of(figure) == []
    assert len(figure.axes) == 4
    words = words_of(figure)
    assert "backward pass" in words or any("backward" in text for text in words)
    assert any(text.startswith("device utilisation: ") for text in words)
    idle = [text for text in words if text.endswith("not used")]
    assert bool(idle) == (setting == "1xH100")
