"""Names of the methods, and the sentence on which of them to trust."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.units import format_range

if TYPE_CHECKING:
    from driple.answers.method_answer import MethodAnswer

__all__ = ["METHOD_WORDS", "trust_sentence"]

METHOD_WORDS = {
    "measured": "measured",
    "inspector": "inspector",
    "simulator": "simulator",
    "zhang": "Zhang",
    "zeng-repaired": "Zeng, repaired",
    "zeng": "Zeng, as published",
}


def trust_sentence(best: MethodAnswer) -> str:
    """Which method to trust on a setting, and why.

    Args:
        best: the answer that is trusted.
    """
    name, where, interval = METHOD_WORDS[best.method], best.setting.name, best.step_time.interval
    if best.method == "measured":
        return f"{where}: trust the measured time; a data set has this very graph"
    if interval is None or interval.level is None:
        return (
            f"{where}: no method was checked on real runs like this job; take the {name}'s "
            f"{best.step_s:.3g} s as a guess"
        )
    return (
        f"{where}: trust the {name}, whose interval is the narrowest: nine times out of ten "
        f"{format_range(interval.low, interval.high, unit=' s')}"
    )
