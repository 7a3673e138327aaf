"""Sentences on what an inspector has not learned from, and on who answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driple.errors import upgrade_hint
from driple.render.method_words import METHOD_WORDS
from driple.units import counted, format_range

__all__ = ["SENTENCES"]

_FACTS = {
    "num_nodes": "number of ops",
    "tensor_bytes": "tensor size in bytes",
    "flops": "FLOPs of a step",
    "batch_size": "batch size",
}
_MADE_AGAIN = {
    "simulated": (
        "simulate the data set again (driple jobs build --list paper, driple data simulate), then"
    ),
    "measured": "build the data set again (driple data label), then",
}


def _fact(fact: str, value: float, least: float, most: float) -> str:
    return (
        f"{_FACTS.get(fact, fact)} is {value:.4g}, the inspector has learned from {least:.4g} to "
        f"{most:.4g}"
    )


def _never_seen(num_op_types: int, num_ops: int, num_all: int, op_types: Sequence[str]) -> str:
    return (
        f"{counted(num_op_types, 'op type')} that the inspector has never seen, in {num_ops} of "
        f"{num_all} ops: {', '.join(op_types)}"
    )


def _unlike(distance: float, threshold: float, reach: float | None) -> str:
    words = (
        "it is unlike every graph that the inspector has learned from (distance "
        f"{distance:.2f}, nine of ten others are within {threshold:.2f})"
    )
    if reach is None:
        return words
    return (
        f"{words}, further off than all that its intervals come from ({reach:.2f}), so that they "
        "are extrapolated"
    )


def _outdated(
    *,
    setting: str,
    parts: Sequence[str],
    versions: Sequence[int],
    own_versions: Sequence[int],
    is_newer: bool,
    preset: str,
    transferred_from: str | None,
    provenance: str,
) -> str:
    """The difference between a checkpoint and this program, and the command that makes another."""
    theirs, ours = (
        " and ".join(f"{part} version {number}" for part, number in zip(parts, some, strict=True))
        for some in (versions, own_versions)
    )
    how = _MADE_AGAIN.get(provenance, "import the data set again (driple data import), then")
    advice = (
        f"{upgrade_hint()} gets the newer program"
        if is_newer
        else f"to make a new one: {how} {_command(setting, preset, transferred_from)}"
    )
    return (
        f"the checkpoint for {setting} was trained with {theirs}, this Driple has {ours}: it gets "
        "other numbers of this graph than it learned from, so its errors and intervals may not "
        f"hold; {advice}"
    )


def _command(setting: str, preset: str, transferred_from: str | None) -> str:
    """The command that makes a checkpoint."""
    if transferred_from is None:
        if preset == "default":
            return f"driple train --setting {setting}"
        return f"driple train --setting {setting} --preset {preset}"
    if preset == "default":
        return f"driple transfer --from {transferred_from} --to {setting}"
    return f"driple transfer --from {transferred_from} --to {setting} --preset {preset}"


def _earlier_labels(labels_date: str, is_latest: bool, fitted_date: str) -> str:
    return (
        "the inspector learned from simulated labels of "
        f"{'at latest ' if is_latest else ''}{labels_date}; the simulator was fitted again on "
        f"{fitted_date} (--method simulator answers by that fit)"
    )


def _trusted(
    *,
    setting: str,
    method: str,
    is_usual: bool,
    step_s: float,
    is_known: bool,
    low_s: float | None,
    high_s: float | None,
) -> str:
    """Which method to trust on a setting, and why."""
    name = METHOD_WORDS[method]
    if method == "measured":
        return f"{setting}: trust the measured time; a data set has this very graph"
    if not is_known or low_s is None:
        return (
            f"{setting}: no method was checked on real runs like this job; take the {name}'s "
            f"{step_s:.3g} s as a guess"
        )
    return (
        f"{setting}: trust the {name}, "
        f"{'which answers by default' if is_usual else 'whose interval is the narrowest'}: nine "
        f"times out of ten {format_range(low_s, high_s, unit=' s')}"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "fact_beyond_training": _fact,
    "op_types_never_seen": _never_seen,
    "unlike_training_graphs": _unlike,
    "impossible_share": (
        "predicted {resource} of {predicted_pct:.1f} % exceeds {most_pct:.0f} %, the most that a "
        "GPU reaches"
    ),
    "contradicts_closed_form": (
        "step time {step_s:.3g} s contradicts {closed_form_s:.3g} s, which the graph's FLOPs, "
        "bytes and messages take on {setting} ({error_pct:+.0f} %, more than {most_pct:.0f} %)"
    ),
    "outdated_checkpoint": _outdated,
    "earlier_labels": _earlier_labels,
    # who answers
    "tuned_to_own_runs": (
        "{device} is tuned to measurements of your own, which no inspector has learned from: the "
        "simulator answers"
    ),
    "simulator_is_fitted": (
        "for a GPU, alone or with all-reduce, the simulator answers: its kernel times are learned "
        "from measured steps"
    ),
    "no_inspector": "no inspector is trained for {setting}: the simulator answers",
    "simulator_instead": "{reason}: the simulator answers",
    "forward_pass": "the job is a forward pass, and inspectors learn from training",
    "would_guess": "the inspector of {setting} would guess ({doubt})",
    "inspector_is_off": (
        "the inspector of {setting} is {mean_error_pct:.0f} % off (mean) in the step times of its "
        "own test workloads"
    ),
    "trusted_method": _trusted,
}
