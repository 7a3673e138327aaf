"""The words of `driple record`: the live line, and the summary of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.quantities import duration, rate, size
from driple.units import counted

if TYPE_CHECKING:
    from driple.errors import DripleError
    from driple.measure.record.recorder import LiveView
    from driple.measure.record.steps import StepTimes
    from driple.measure.record.store import HostRecord

__all__ = ["live_text", "record_lines", "steps_text"]


def live_text(view: LiveView) -> str:
    """One line about the last second."""
    parts = [
        f"recording {view.seconds:.0f} s",
        f"CPU {view.cores:.2f} cores",
        f"memory {size(view.memory_bytes)}",
    ]
    if view.gpu_pct is not None:
        parts.append(f"GPU {view.gpu_pct:.0f} %")
    if view.mb_per_s is not None:
        parts.append(f"net out {rate(view.mb_per_s[0])}, in {rate(view.mb_per_s[1])}")
    parts.append(f"{view.steps} steps" if view.steps else "no marked steps")
    return "  ".join(parts)


def record_lines(record: HostRecord, steps: StepTimes | DripleError) -> list[str]:
    """The summary of a record: steps, use, what is missing.

    Args:
        record: one host's.
        steps: its steps, or why it has none.
    """
    lines = [f"recorded {record.folder}: {_length(record)}"]
    lines.append(str(steps) if isinstance(steps, Exception) else f"steps: {steps_text(steps)}")
    about, memory = record.about, record.gauges["memory_bytes"].values
    if len(memory):
        lines.append(f"memory: {size(int(memory.max()))} at most in the job's processes")
    if about.missing:
        lines.append(
            "not recorded: " + "; ".join(f"{name} ({why})" for name, why in about.missing.items())
        )
    if record.unread_bytes:
        lines.append(f"the last block was cut ({record.unread_bytes} bytes) and is left out")
    lines += about.log
    return lines


def _length(record: HostRecord) -> str:
    samples, end = record.samples, record.about.end
    seconds = float(samples.before_ns[-1] - samples.before_ns[0]) / 1e9
    words = f"{seconds:.3g} s, {len(samples.before_ns)} samples"
    if end is None:
        return f"{words}; the recorder was stopped before the job ended"
    return f"{words}, {100 * end.sampler_cpu_s / end.seconds:.2g} % of a core for the recorder"


def steps_text(steps: StepTimes) -> str:
    """How long a step takes, how that is known, and how sure it is."""
    spread = f"{duration(steps.low_s)} to {duration(steps.high_s)}"
    if steps.source == "marked":
        words = f"{duration(steps.step_s)} each ({spread} for 80 %), {steps.num_steps} marked"
        if steps.num_pauses:
            words += f", {counted(steps.num_pauses, 'longer pause')} left out"
        return words
    words = f"{duration(steps.step_s)} each ({spread}), by the period of the traces, none marked"
    if steps.ambiguous_s:
        others = " or ".join(duration(value) for value in steps.ambiguous_s)
        words += f"; {others} fits nearly as well: driple.mark_step() would decide"
    return words
