"""Offers made up by hand: hours, costs, memory and errors as a test needs them."""

from __future__ import annotations

from driple.answers.error_statement import StatedError
from driple.answers.method_answer import MethodAnswer, simulated_ends
from driple.catalog import Price
from driple.cluster.setting import Setting
from driple.estimate import LEVEL, estimate
from driple.memory.memory_estimate import Bytes, MemoryEstimate
from driple.planning.offers import Offer

__all__ = ["answered", "made_up"]


def made_up(name: str, hours: float, cost: float | None, fits: str | None = "yes") -> Offer:
    """An offer of one machine that takes these hours and costs that much."""
    price = None if cost is None else Price(per_hour=cost / hours, date=None, source="test")
    memory = MemoryEstimate(allocated=Bytes(value=1e9), fits=fits)  # type: ignore[arg-type]
    return Offer(
        name=name,
        devices=1,
        iteration_s=1.0,
        samples=3600 * hours,
        samples_per_s=1.0,
        price=price,
        memory=memory,
    )


def answered(error: StatedError) -> MethodAnswer:
    """The simulator's answer of a step of one second with such an error."""
    time = estimate(1.0, "simulator", ends=simulated_ends(1.0, error, None), level=LEVEL)
    return MethodAnswer(setting=Setting.parse("1xH100"), step_time=time, stated=error)
