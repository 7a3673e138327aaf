"""Sentences on errors: that of a simulated answer, of inspectors, and what a slower host brings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from driple.render.remarks import sentence
from driple.units import counted

if TYPE_CHECKING:
    from driple.answers.error_statement import StatedError
    from driple.answers.slow_hosts import SlowHost
    from driple.api.predicting import Answer
    from driple.inspector.host import HostTuning
    from driple.training.metrics import Scores
    from driple.training.uncertainty import Coverage

__all__ = [
    "HOST_ADVICE",
    "coverage_sentence",
    "error_is_of_kernels",
    "host_is_of_a_file",
    "host_sentence",
    "impossible_sentence",
    "slow_host_sentence",
    "stated_error_sentence",
]

HOST_ADVICE = "--set host_us_per_op=N simulates another, driple measure --machine tells yours"
_DECIDES_PCT = 50.0
_NOT_CHECKED = "this answer was not checked against any published run of this kind"


def stated_error_sentence(stated: StatedError) -> str:
    """What is expected of an answer, and what its error rests on."""
    runs = sentence(stated.runs)
    if stated.median_pct is None or stated.p90_pct is None:
        return f"{_NOT_CHECKED}: {runs}"
    if stated.nearest_because is not None:
        own = stated_error_sentence(replace(stated, nearest_because=None))
        return f"{sentence(stated.nearest_because)}; of the nearest kind: {own}"
    expected = _percentiles(stated.median_pct, stated.p90_pct)
    words = f"{stated.num_runs} {runs}"
    if stated.runs_median_pct is not None and stated.runs_p90_pct is not None:
        words += f": {_percentiles(stated.runs_median_pct, stated.runs_p90_pct)}"
    if (stated.median_pct, stated.p90_pct) == (stated.runs_median_pct, stated.runs_p90_pct):
        return f"the simulator's error on {words}"
    expected = f"expected error of the simulator on this job: {expected}{_tuned(stated)}"
    if len(stated.tuned) == 2:
        return f"{expected}; its error on {words} (each model family counted alike)"
    return (
        f"{expected}, from its error on {words} (each model family counted alike), adjusted to "
        "how unlike published jobs the ops are and how few the families are"
    )


def _tuned(stated: StatedError) -> str:
    """Which of the expected numbers are those of a tuning; empty if neither is."""
    if not stated.tuned:
        return ""
    names = {"median_pct": "the median is that", "p90_pct": "the 90th percentile is that"}
    which = "both are those" if len(stated.tuned) == len(names) else names[stated.tuned[0]]
    return f" ({which} of the runs that the device is tuned to, each left out of the tuning)"


def _percentiles(median_pct: float, p90_pct: float) -> str:
    return f"median {median_pct:.0f} %, 90th percentile {p90_pct:.0f} %"


def host_is_of_a_file(answer: Answer) -> bool:
    """Whether a file of `driple measure --machine` states the host."""
    return any(assumed.code == "measured_host" for assumed in answer.assumptions)


def error_is_of_kernels(answer: Answer) -> bool:
    """Whether GPUs wait for their host, and the stated error is of runs that kept theirs busy.

    The interval of the step is then that of the host. Errors of tuned devices count both.
    """
    parts, stated = answer.parts, answer.stated
    if parts is None or stated is None:
        return False
    is_tuned = stated.runs.code == "steps_of_tuned_devices" or bool(stated.tuned)
    return not is_tuned and parts.host_pct > _DECIDES_PCT


def slow_host_sentence(slow: SlowHost) -> str:
    """The step on a slower host, and what the host of the answer is."""
    assumed = "of which no run of yours tells" if slow.is_tuned else "the mean of known hosts"
    machine = "the slowest that was measured"
    if not slow.as_measured:
        factor = slow.slow_us / slow.usual_us
        machine = f"{factor:.1f} times as long, as {machine} does in PyTorch without a compiler"
    return (
        f"the host decides: a host that takes {slow.usual_us:.0f} us for each op, {assumed}, is "
        f"assumed; on one that takes {slow.slow_us:.0f} us, {machine}, the step is "
        f"{slow.step_s:.3g} s"
    )


def host_sentence(host: HostTuning) -> str:
    """How fast the user's own host is, and by what."""
    return (
        f"this host computes for {host.computing_factor:.2f} times as long as the one that the "
        f"labels were measured on, by {counted(len(host.workloads), 'known workload')}: median "
        f"error of their step times {host.before_pct:.0f} % before, {host.after_pct:.0f} % with "
        "the factor of the others"
    )


def coverage_sentence(coverage: Coverage) -> str:
    """How often intervals hold, and the errors with and without warnings."""
    words = (
        f"its intervals hold {coverage.targets:.0%} of the targets and "
        f"{coverage.iteration_time:.0%} of the iteration times, and reach "
        f"{coverage.median_width_pct:.0f} % above (median)"
    )
    if coverage.smape_warned_pct is None:
        return f"{words}; no workload was warned of"
    others = ""
    if coverage.smape_others_pct is not None:
        others = f", {coverage.smape_others_pct:.1f} % others"
    return (
        f"{words}; {counted(coverage.num_warned, 'prediction')} warned of: SMAPE "
        f"{coverage.smape_warned_pct:.1f} %{others}"
    )


def impossible_sentence(scores: Scores) -> str:
    """Impossible predictions; empty without any."""
    if not scores.num_impossible:
        return ""
    return (
        f"{scores.num_impossible} of {scores.num_workloads} predictions are impossible (an amount "
        "or a duration below 0, or a step that takes no time): driple predict refuses such graphs, "
        "the errors count them"
    )
