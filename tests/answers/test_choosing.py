"""Who answers for each setting: what nobody can answer is refused before a job is read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from driple.answers.choosing import (
    AnswerPlan,
    doubt_of,
    plan_instead,
    plan_of,
    plan_of_forward,
    plan_with_checkpoint,
    usual_answer,
)
from driple.answers.method_answer import MethodAnswer
from driple.cluster.setting import Setting
from driple.errors import CheckpointError, ConfigError, SettingError
from driple.remarks import remark

H100, SERVERS = Setting.parse("8xH100"), Setting.parse("V100-P1w2/ho-PCIe")


def answered(
    method: str = "inspector", *, provenance: str = "simulated", off_pct: float = 5.0, **more: Any
) -> MethodAnswer:
    """An answer by an inspector, with what it says of itself."""
    prediction = SimpleNamespace(
        provenance=provenance, contradiction=None, strange=(), outdated=None, setting="here",
        metrics={"test_iteration_time_mape_pct": off_pct},
    )  # fmt: skip
    for name, value in more.items():
        setattr(prediction, name, value)
    answer = SimpleNamespace(
        method=method, prediction=prediction if method == "inspector" else None
    )
    return cast("MethodAnswer", answer)


def test_the_simulator_answers_where_it_was_fitted_or_nothing_else_is_there() -> None:
    fitted = plan_of(H100, "auto", "default")
    assert fitted.method == "simulator"
    assert fitted.reason is not None and fitted.reason.code == "simulator_is_fitted"
    assert fitted.place is not None and fitted.place.setting == H100
    asked = plan_of(Setting.parse("4xT4"), "auto", "default")
    assert asked.reason is not None
    assert asked.reason.code in {"no_inspector", "simulator_is_fitted"}
    chosen = plan_of(H100, "simulator", "default")
    assert (chosen.method, chosen.reason) == ("simulator", None)


def test_an_inspector_of_measured_labels_answers_for_its_setting() -> None:
    plan = plan_of(Setting.parse("CPU-P1w2/ho-200M"), "auto", "default")
    assert (plan.method, plan.may_fall_back, plan.reason) == ("inspector", True, None)
    assert plan.checkpoint is not None and plan.checkpoint.provenance == "measured"


def test_a_method_that_was_chosen_answers_or_is_refused() -> None:
    with pytest.raises(CheckpointError):
        plan_of(Setting.parse("4xT4"), "inspector", "default")
    with pytest.raises((ConfigError, SettingError)):
        plan_of(H100, "analytic", "default")  # closed forms are of parameter servers
    closed = plan_of(SERVERS, "analytic", "default")
    assert (closed.method, closed.usual) == ("analytic", "")


def test_all_methods_name_the_one_that_would_answer() -> None:
    plan = plan_of(H100, "all", "default")
    assert (plan.method, plan.usual) == ("all", "simulator")


def test_a_forward_pass_is_the_simulators() -> None:
    plan = AnswerPlan(setting=H100, method="inspector", may_fall_back=True)
    forward = plan_of_forward(plan)
    assert forward.method == "simulator"
    assert forward.place is not None
    assert forward.reason is not None and forward.reason.code == "simulator_instead"
    simulated = plan_of(H100, "simulator", "default")
    assert plan_of_forward(simulated) is simulated
    for method in ("inspector", "analytic", "all"):
        with pytest.raises(ConfigError, match=f"--method {method} answers for training alone"):
            plan_of_forward(AnswerPlan(setting=H100, method=method))


def test_a_plan_instead_says_why() -> None:
    why = remark("forward_pass")
    plan = plan_instead(AnswerPlan(setting=H100, method="inspector"), why)
    assert plan.reason is not None and plan.reason.values["reason"] == why
    assert plan.setting is H100


@pytest.mark.parametrize("method", ["simulator", "analytic", "all"])
def test_a_checkpoint_is_an_inspector_and_states_its_setting(method: str) -> None:
    with pytest.raises(ConfigError, match=f"leave it out with --method {method}"):
        plan_with_checkpoint("x.ckpt", method, None)
    with pytest.raises(ConfigError, match="give --checkpoint or --setting"):
        plan_with_checkpoint("x.ckpt", "auto", ["8xH100"])
    with pytest.raises(ConfigError, match="--checkpoint needs a path"):
        plan_with_checkpoint(cast("Any", 3), "auto", None)


def test_an_inspector_is_doubted_where_it_would_guess() -> None:
    assert doubt_of(answered()) is None
    assert doubt_of(answered("simulator")) is None
    far, odd = remark("far"), remark("odd")
    doubt = doubt_of(answered(strange=(odd, far)))
    assert doubt is not None and doubt.code == "would_guess"
    assert doubt.values["doubt"] == far  # the last says most
    contradicted = doubt_of(answered(contradiction=odd, strange=(far,)))
    assert contradicted is not None and contradicted.values["doubt"] == odd
    old = doubt_of(answered(outdated=odd))
    assert old is not None and old.values["doubt"] == odd
    assert doubt_of(answered(provenance="measured", strange=(odd,))) is None


@pytest.mark.parametrize(("off_pct", "is_doubted"), [(19.9, False), (20.0, False), (20.1, True)])
def test_an_inspector_that_is_off_is_doubted(off_pct: float, is_doubted: bool) -> None:
    doubt = doubt_of(answered(off_pct=off_pct))
    assert (doubt is not None) is is_doubted
    if doubt is not None:
        assert doubt.code == "inspector_is_off"
        assert doubt.values["mean_error_pct"] == off_pct
    assert doubt_of(answered(metrics={})) is None


def test_the_usual_answer_is_the_simulators_where_an_inspector_guesses() -> None:
    sure, doubted = answered(), answered(off_pct=99.0)
    simulated = answered("simulator")
    assert usual_answer([sure, simulated], "inspector") == "inspector"
    assert usual_answer([simulated, doubted], "inspector") == "simulator"
    assert usual_answer([simulated], "inspector") == "simulator"
    assert usual_answer([doubted], "simulator") == "simulator"
    assert usual_answer([], "zeng") == "zeng"


@pytest.mark.parametrize(
    ("setting", "method", "who"),
    [
        ("8xA100", "auto", "the simulator answers"),
        ("V100-P1w2", "simulator", "--method simulator answers"),
        ("V100-P1w2", "analytic", "--method analytic answers"),
    ],
)
def test_a_preset_without_an_inspector_is_refused(setting: str, method: str, who: str) -> None:
    with pytest.raises(ConfigError, match=f"--set preset=paper names an inspector.*{who}"):
        plan_of(Setting.parse(setting), method, "paper")
    assert plan_of(Setting.parse(setting), "all", "paper").method == "all"
