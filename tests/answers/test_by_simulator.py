"""The simulator's answer says all that it assumes."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.answers.by_simulator import ask_simulator
from driple.answers.options import MethodOptions
from driple.answers.ready_job import ReadyJob
from driple.cluster.setting import Setting
from driple.jobs.load import load_job
from driple.render.remarks import sentences
from driple.simulate.place import place_of

EXAMPLE = Path(__file__).parents[2] / "datasets" / "examples" / "resnet50.pbtxt"


# ResNet-50 has five variables to a convolution: in turn, one of five servers gets all its weights.
@pytest.mark.parametrize("name", ["V100-P1w2/ho-10G", "V100-P5w2/ho-10G"])
@pytest.mark.parametrize("host_us", [None, 40.0])
def test_a_given_host_and_the_spread_of_servers_are_both_said(
    name: str, host_us: float | None
) -> None:
    setting = Setting.parse(name)
    ready = ReadyJob.of(load_job(str(EXAMPLE)))
    options = MethodOptions(num_steps=20, host_us_per_op=host_us)
    answer = ask_simulator(ready, place_of(setting), options)
    words = " ".join(sentences(answer.assumptions))
    assert ("40" in words and "host" in words) is (host_us is not None)
    assert ("takes variables in turn" in words) is (setting.num_servers > 1)
