"""Who answers for each setting: an inspector, the simulator or closed forms.

setting, method, preset -> AnswerPlan; all that can be refused before a job is read is refused here
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from driple.cluster.setting import Setting
from driple.errors import CheckpointError, ConfigError
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.answers.method_answer import MethodAnswer
    from driple.inspector.checkpoint import Checkpoint
    from driple.simulate.place import Place

__all__ = [
    "AnswerPlan",
    "doubt_of",
    "plan_instead",
    "plan_of",
    "plan_of_forward",
    "plan_with_checkpoint",
    "usual_answer",
]

_MOST_OFF_PCT = 20.0  # mean error of step times, from which on what an inspector imitates is better


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerPlan:
    """How one setting will be answered; all that can be refused before a job is read was."""

    setting: Setting
    method: str
    reason: Remark | None = None
    checkpoint: Checkpoint | None = None
    place: Place | None = None
    may_fall_back: bool = False
    usual: str = ""  # with `all`: the method that answers where none is asked for


def plan_with_checkpoint(
    checkpoint: Path | str | Checkpoint, method: str, settings: object
) -> AnswerPlan:
    """An answer by a checkpoint, which states its setting.

    Raises:
        ConfigError: a setting or another method was given too.
        CheckpointError: the file is no checkpoint.
    """
    from driple.inspector.checkpoint import Checkpoint, load_checkpoint

    if settings is not None:
        raise ConfigError("a checkpoint states its setting; give --checkpoint or --setting")
    if method not in ("auto", "inspector"):
        raise ConfigError(f"--checkpoint is an inspector; leave it out with --method {method}")
    read = load_checkpoint(Path(checkpoint)) if isinstance(checkpoint, str | Path) else checkpoint
    if not isinstance(read, Checkpoint):
        raise ConfigError(f"--checkpoint needs a path or a driple.Checkpoint, got {read!r:.80}")
    return AnswerPlan(setting=Setting.parse(read.setting), method="inspector", checkpoint=read)


def plan_of(setting: Setting, method: str, preset: str) -> AnswerPlan:
    """Who answers for a setting.

    Args:
        setting: the cluster.
        method: `auto`, `inspector`, `simulator`, `analytic` or `all`.
        preset: which inspector of the setting.

    Raises:
        CheckpointError: with `inspector`, no checkpoint of the setting; or a preset that it lacks.
        ConfigError: a preset other than `default`, and no inspector answers.
        SettingError: what the machines are is not known.
    """
    from driple.inspector.checkpoint import load_checkpoint
    from driple.inspector.checkpoint_places import checkpoint_files, checkpoint_path
    from driple.simulate.gpu_rates import is_tuned

    reason: Remark | None = None
    if method == "auto" and is_tuned(setting.worker):
        reason = remark("tuned_to_own_runs", device=setting.device)
    elif method in ("auto", "inspector"):
        fitted = _is_fitted(setting)
        # A preset that a setting with inspectors lacks is mistyped.
        if method == "inspector" or checkpoint_files(setting):
            loaded = load_checkpoint(checkpoint_path(setting, preset))
            imitates = fitted and loaded.provenance == "simulated"
            if method == "inspector" or not imitates:
                return AnswerPlan(
                    setting=setting,
                    method="inspector",
                    checkpoint=loaded,
                    may_fall_back=method == "auto",
                )
        reason = (
            remark("simulator_is_fitted")
            if fitted
            else remark("no_inspector", setting=setting.name)
        )
    if preset != "default" and method != "all":
        who = "the simulator answers" if method == "auto" else f"--method {method} answers"
        raise ConfigError(
            f"--set preset={preset} names an inspector, and for {setting.name} {who}; leave it out,"
            " or ask with --method inspector"
        )
    from driple.simulate.place import place_of

    place = place_of(setting)
    if method == "analytic":
        from driple.analytic.job_profile import link_loads
        from driple.schemes.fair_shares import SharedLink

        link_loads(place.topology, SharedLink(1.0), 1.0)  # refuses a ring
    name = "simulator" if method == "auto" else method
    usual = _usual_of(setting, preset) if method == "all" else ""
    return AnswerPlan(setting=setting, method=name, reason=reason, place=place, usual=usual)


def _usual_of(setting: Setting, preset: str) -> str:
    """The method that answers where none is asked for; the simulator without that inspector."""
    try:
        return plan_of(setting, "auto", preset).method
    except (CheckpointError, ConfigError):
        return "simulator"


def usual_answer(answers: Sequence[MethodAnswer], usual: str) -> str:
    """The method that answers a job where none is asked for.

    Args:
        answers: of all methods.
        usual: that of the setting; the simulator answers where an inspector would guess.
    """
    answer = next((one for one in answers if one.method == usual), None)
    guesses = answer is None or doubt_of(answer) is not None
    return "simulator" if usual == "inspector" and guesses else usual


def _is_fitted(setting: Setting) -> bool:
    """Whether the simulator of a setting was fitted to measured steps of such schemes.

    An inspector that learned from simulated labels imitates it, and is further off
    (docs/decisions/0035-no-second-model.md).
    """
    return not setting.on_cpu and setting.num_servers == 0


def plan_instead(plan: AnswerPlan, reason: Remark) -> AnswerPlan:
    """The simulator in place of an inspector.

    Args:
        plan: by an inspector.
        reason: why.
    """
    from driple.simulate.place import place_of

    return replace(
        plan,
        method="simulator",
        reason=remark("simulator_instead", reason=reason),
        place=place_of(plan.setting),
    )


def plan_of_forward(plan: AnswerPlan) -> AnswerPlan:
    """The simulator answers for a forward pass; inspectors and closed forms are of training.

    Raises:
        ConfigError: the user chose another method.
    """
    if plan.method == "inspector" and plan.may_fall_back:
        return plan_instead(plan, remark("forward_pass"))
    if plan.method != "simulator":
        raise ConfigError(
            f"--method {plan.method} answers for training alone, and the job is a forward pass; "
            "give --method simulator, or leave --set task=forward out"
        )
    return plan


def doubt_of(answer: MethodAnswer) -> Remark | None:
    """Why the simulator should answer in place of an inspector that imitates it; mostly None.

    On a graph like those that it learned from the inspector gives the counters of such jobs. On
    another the simulator, which made its labels, is right where the inspector guesses.
    """
    prediction = answer.prediction
    if prediction is None or prediction.provenance != "simulated":
        return None
    # Distance is the last of the strange things, and says most.
    doubts = (prediction.contradiction, *reversed(prediction.strange), prediction.outdated)
    first = next((doubt for doubt in doubts if doubt is not None), None)
    if first is not None:
        return remark("would_guess", setting=prediction.setting, doubt=first)
    off_pct = prediction.metrics.get("test_iteration_time_mape_pct", 0.0)
    if off_pct > _MOST_OFF_PCT:
        return remark("inspector_is_off", setting=prediction.setting, mean_error_pct=off_pct)
    return None
