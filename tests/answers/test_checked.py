"""Predictions compared with a closed form: what contradicts is a warning, what agrees is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.analytic.closed_forms import shipped_closed_forms
from driple.analytic.quick import quick_step_s
from driple.answers.checked import allowed_error, compared, predict
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.graph import OpGraph, read_graph
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.checkpoint_places import checkpoint_path
from driple.inspector.predict import Prediction
from driple.inspector.trained_on import TrainedOn
from driple.remarks import Remark
from driple.render.remarks import sentence, sentences
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from driple.trace.targets import Targets

DATA = Path(__file__).parents[1] / "data"
CONTROL = DATA / "cases/01_control.pbtxt"
RESNET = Path(__file__).parents[2] / "datasets/examples/resnet20.pbtxt"
SETTING = "V100-P1w2/ho-PCIe"


@pytest.fixture(scope="module")
def graph() -> OpGraph:
    return read_graph(RESNET)


def prediction_of(
    step_s: float, provenance: str = "simulated", setting: str = SETTING
) -> Prediction:
    """One whose step takes so long."""
    values = np.full((4, 3), step_s / 2)
    return Prediction(
        setting=setting,
        targets=Targets(values),
        iteration_time_s=step_s,
        num_nodes=5,
        num_edges=5,
        num_groups=5,
        unknown_op_types={},
        provenance=provenance,
        trained_on=TrainedOn(),
        metrics={},
        level=0.9,
        ends=np.stack([np.full(13, step_s / 2.1), np.full(13, step_s * 2.1)], axis=1),
        strange=(Remark.of_text("unlike all others"),),
    )


@pytest.mark.parametrize("setting", [SETTING, "V100-P1w4/ho-10G", "2080Ti-R4/ho-PCIe", "CPU-P1w2"])
@pytest.mark.parametrize("file", [CONTROL, RESNET])
def test_the_quick_step_is_close_to_the_simulated_one(file: Path, setting: str) -> None:
    """One server or a ring, asynchronous (control) and synchronous (ResNet-20)."""
    where, job = Setting.parse(setting), PreparedJob(read_graph(file))
    simulated = simulate(job, where, shipped_calibration(where), num_steps=20)
    assert quick_step_s(job, where) == pytest.approx(simulated.iteration_time_s, rel=0.15)


def test_asynchronous_workers_wait_for_a_busy_server() -> None:
    """Of many workers on one server each step takes as long as all workers' gradients."""
    job = PreparedJob(read_graph(CONTROL))
    few, many = (quick_step_s(job, Setting.parse(f"V100-P1w{n}/ho-1G")) for n in (16, 32))
    assert many == pytest.approx(2 * few, rel=0.05)


def test_a_step_time_far_from_the_closed_form_is_a_guess(graph: OpGraph) -> None:
    """Either way; within 25 % strangeness is a remark and the claim of the interval stays."""
    closed_s = quick_step_s(PreparedJob(graph), Setting.parse(SETTING))
    for factor in (0.78, 1.0, 1.22):
        near = compared(prediction_of(factor * closed_s), PreparedJob(graph))
        assert (sentences(near.warnings), sentences(near.remarks), near.level) == (
            (),
            ("unlike all others",),
            0.9,
        )
        assert near.closed_form_s == closed_s
    for factor in (0.1, 0.72, 1.3, 9.0):
        far = compared(prediction_of(factor * closed_s), PreparedJob(graph))
        assert len(sentences(far.warnings)) == 1
        assert "contradicts" in sentence(far.warnings[0])
        assert far.warnings[0].values["error_pct"] == pytest.approx(100 * (factor - 1))
        assert far.level is None
        assert far.ends is not None
        assert far.ends[12, 0] <= closed_s * 1.000001
        assert far.ends[12, 1] >= closed_s * 0.999999


class OwnHost:
    """Stands in for what a user measured of his host."""

    def applied(self, prediction: Prediction) -> Prediction:
        """Twice the step."""
        return replace(prediction, iteration_time_s=2 * prediction.iteration_time_s)


def test_an_answer_is_for_the_users_host_where_he_measured_it(graph: OpGraph) -> None:
    checkpoint = load_checkpoint(checkpoint_path(Setting.parse(SETTING), "default"))
    usual = predict(graph, checkpoint)
    his = predict(graph, checkpoint, host=OwnHost())  # type: ignore[arg-type]
    assert his.iteration_time_s == 2 * usual.iteration_time_s


def test_without_a_closed_form_strangeness_is_the_warning(graph: OpGraph) -> None:
    """A graph that sends nothing, as one without sizes; the prediction stays as it was."""
    still = replace(graph, traffic=type(graph.traffic)())
    alone = prediction_of(5.0)
    assert compared(alone, PreparedJob(still)) is alone
    assert sentences(alone.warnings) == ("unlike all others",)


def test_measured_labels_are_allowed_the_error_of_the_closed_form() -> None:
    """And settings with several servers, where the closed form is further off."""
    one_server, several = (
        topology_of(Setting.parse(SETTING)),
        topology_of(Setting.parse("V100-P2w2")),
    )
    cpu = topology_of(Setting.parse("CPU-P1w2"))
    for strange in (False, True):
        assert allowed_error(one_server, "simulated", is_strange=strange) == 0.25
        assert allowed_error(several, "simulated", is_strange=strange) == 0.5
    known = shipped_closed_forms().error_of(cpu, "zhang")
    assert known is not None
    own = known.p90_pct / 100
    assert allowed_error(cpu, "measured", is_strange=True) == max(0.25, own)
    assert allowed_error(cpu, "measured", is_strange=False) == 0.25 + own


def test_without_a_known_error_of_the_closed_form_nothing_is_added() -> None:
    """Of measured labels on GPUs: half with several servers, a quarter else."""
    for name, most in ((SETTING, 0.25), ("V100-P2w2", 0.5)):
        topology = topology_of(Setting.parse(name))
        assert shipped_closed_forms().error_of(topology, "zhang") is None
        for strange in (False, True):
            assert allowed_error(topology, "measured", is_strange=strange) == most
