"""An inspector whose labels were simulated before today's fit of the simulator says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.api.predicting import _earlier_labels
from driple.cluster.setting import Setting
from driple.graph.tf.reader import read_graph
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.predict import predict
from driple.simulate.calibration import shipped_calibration

ROOT = Path(__file__).parents[2]
GPU = Setting.parse("V100-P1w2/ho-PCIe")


@pytest.mark.parametrize(("trained", "earlier"), [("2020-01-01", True), ("2999-01-01", False)])
def test_labels_of_an_earlier_fit_stand_beside_the_answer(trained: str, earlier: bool) -> None:
    checkpoint = load_checkpoint(ROOT / "checkpoints" / GPU.file_name / "default.safetensors")
    graph = read_graph(ROOT / "datasets" / "examples" / "resnet20.pbtxt")
    made = predict(graph, checkpoint)
    made = replace(made, trained_on=replace(made.trained_on, date=trained))
    found = _earlier_labels(made, GPU)
    assert bool(found) is earlier
    if earlier:
        assert str(shipped_calibration(GPU).about["fitted"]) in found[0]
        assert not _earlier_labels(replace(made, provenance="measured"), GPU)
