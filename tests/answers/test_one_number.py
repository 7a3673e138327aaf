"""One job on one setting has one step time, whichever question asks for it."""

from __future__ import annotations

import pytest

from driple import JobOptions, plan, predict
from driple.api.sweeping import sweep

OPTIONS = JobOptions(batch_size=32, precision="amp-bf16", optimizer="momentum")


@pytest.mark.parametrize(
    "setting", ["1xA100", "8xA100/NVLink", "2x8xA100/NVLink+400G", "8xA100/NVLink@fsdp"]
)
def test_predict_all_plan_and_sweep_give_one_step_time(setting: str) -> None:
    """To the last digit, with one interval."""
    alone = predict("mobilenet_v2", setting, method="simulator", options=OPTIONS).answers[0]
    every = predict("mobilenet_v2", setting, method="all", options=OPTIONS).answers[0]
    by_simulator = next(one for one in every.answers if one.method == "simulator")
    planned = plan("mobilenet_v2", settings=[setting], options=OPTIONS, samples=1e6, vary="none")
    own = alone.setting.name
    offer = next(one for one in planned.offers if one.setting == own)
    options = JobOptions(precision="amp-bf16", optimizer="momentum")
    swept = sweep("mobilenet_v2", setting, batch_sizes=[32], options=options)
    time = alone.iteration_time_s
    assert by_simulator.step_time == time
    assert offer.answer is not None and offer.answer.step_time == time
    column = swept.estimates["iteration_time_s"]
    assert list(column.value) == [time.value]
    if time.interval is not None:
        assert column.interval == [(time.interval.low, time.interval.high)]


@pytest.mark.parametrize("setting", ["8xA100/NVLink", "2080Ti-P1w2/ho-PCIe", "CPU-P1w2/ho-200M"])
def test_all_methods_trust_the_one_that_answers(setting: str) -> None:
    """An inspector that imitates the simulator, one that does not, one of measured labels."""
    graph = "datasets/examples/resnet50.pbtxt"
    usual = predict(graph, setting).answers[0]
    every = predict(graph, setting, method="all").answers[0]
    assert every.best is not None and usual.best is not None
    assert every.best.method == usual.best.method
    assert every.iteration_time_s == usual.iteration_time_s
