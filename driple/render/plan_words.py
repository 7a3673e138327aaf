"""Sentences on the offers of a plan: what they rest on, and what a change brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.render.remarks import sentence
from driple.units import counted

if TYPE_CHECKING:
    from driple.answers.step_parts import StepParts
    from driple.planning.assumptions import Assumptions
    from driple.planning.changes import Change

__all__ = ["assumptions_sentence", "bottleneck_words", "change_sentence"]


def assumptions_sentence(assumed: Assumptions) -> str:
    """What the price of a job rests on."""
    batches = f"batches of {counted(assumed.batch_size_per_device, 'sample')} per device"
    if assumed.batches_differ:
        batches = "the largest batches per device that fit"
    if assumed.global_batch is not None:
        batches += f", {counted(assumed.global_batch, 'sample')} of all devices per update"
    epochs = "" if assumed.epochs == 1 else f", {assumed.epochs:g} epochs"
    return (
        f"assumed: products in {assumed.precision}; optimizer {assumed.optimizer or 'unknown'}; "
        f"{batches}; {assumed.samples_per_epoch:,} samples per epoch "
        f"({sentence(assumed.samples_from)}){epochs}"
    )


def bottleneck_words(parts: StepParts) -> str:
    """The largest part of a step, with its share: `matrix products, 42 %`."""
    largest = parts.bottleneck
    return "unknown" if largest is None else f"{largest.part}, {largest.pct:.0f} %"


def change_sentence(change: Change) -> str:
    """A change and what it brings: `torch.compile: 18 % less time, 18 % lower cost`."""
    words = f"{sentence(change.what)}: {_pct(change.time_ratio, 'less time', 'more time')}"
    if change.cost_ratio is not None:
        words += f", {_pct(change.cost_ratio, 'lower cost', 'higher cost')}"
    return words


def _pct(ratio: float, less: str, more: str) -> str:
    percent = round(100 * abs(1 - ratio))
    return f"{percent} % {less if ratio <= 1 else more}"
