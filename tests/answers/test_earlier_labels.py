"""An inspector whose labels were simulated before today's fit of the simulator says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.answers.by_inspector import earlier_labels
from driple.cluster.setting import Setting
from driple.graph.tf.reader import read_graph
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.predict import predict
from driple.render.remarks import sentences
from driple.simulate.calibration import shipped_calibration

ROOT = Path(__file__).parents[2]
GPU = Setting.parse("V100-P1w2/ho-PCIe")


@pytest.mark.parametrize(
    ("labels_fitted", "trained", "earlier"),
    [
        ("2020-01-01", "2999-01-01", True),  # trained today, on labels of before
        ("2999-01-01", "2020-01-01", False),
        (None, "2020-01-01", True),  # a checkpoint of before, which records no fit
        (None, "2999-01-01", False),
    ],
)
def test_labels_of_an_earlier_fit_stand_beside_the_answer(
    labels_fitted: str | None, trained: str, earlier: bool
) -> None:
    checkpoint = load_checkpoint(ROOT / "checkpoints" / GPU.file_name / "default.safetensors")
    graph = read_graph(ROOT / "datasets" / "examples" / "resnet20.pbtxt")
    prediction = predict(graph, checkpoint)
    facts = replace(prediction.trained_on, date=trained, labels_fitted=labels_fitted)
    prediction = replace(prediction, trained_on=facts)
    texts = sentences(earlier_labels(prediction, GPU))
    assert bool(texts) is earlier
    if earlier:
        assert str(shipped_calibration(GPU).about["fitted"]) in texts[0]
        assert not earlier_labels(replace(prediction, provenance="measured"), GPU)
