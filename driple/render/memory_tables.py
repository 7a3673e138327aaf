"""How `driple inspect --memory` shows a job: the numbers, kinds at the peak, largest modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.memory.modules import modules_joined
from driple.render.inspect_tables import print_fact, short_name
from driple.render.memory_lines import memory_sentence, peak_words
from driple.render.remarks import sentence, sentences
from driple.render.show import print_table
from driple.units import counted

if TYPE_CHECKING:
    from driple.api.inspecting import InspectResult
    from driple.api.inspecting_memory import InspectedMemory

__all__ = ["print_memory"]

_GIB, _MIB = 2.0**30, 2.0**20
_LEAST_SHOWN = 0.1
_STEADY = ("parameters", "gradients", "optimizer")
_WORKING = ("activations", "temporary", "input", "communication")


def print_memory(result: InspectResult, memory: InspectedMemory, top: int) -> None:
    """Memory of one device over a step.

    Args:
        result: the job.
        memory: its memory.
        top: most modules to show.
    """
    job, line = result.job, memory.timeline
    step = "one training step" if job.trains else "one forward pass"
    batch = "" if job.batch_size is None else f" of {counted(job.batch_size, 'sample')}"
    beside = memory.beside
    device = result.setting.device
    if beside is not None and beside.estimate is not None and beside.estimate.device:
        device = beside.estimate.device
    print(f"{job.name}: memory of {step}{batch}, on one {device} of {result.setting.name}")
    if beside is not None and beside.estimate is not None:
        print_fact("estimate", memory_sentence(beside.estimate))
        if beside.estimate.source is not None:
            print_fact("source", sentence(beside.estimate.source))
    least = "at least " if job.has_unknown else ""
    print_fact("tensors", f"{least}{_size(line.peak_bytes)} at the peak: {peak_words(memory)}")
    for words in sentences(memory.notes):
        print_fact("note", words)
    for words in sentences(result.unknown):
        print_fact("not known", words)
    print()
    total = line.peak_bytes
    print_table(
        ["at the peak", "memory", "share"],
        [
            [kind, _size(nbytes), f"{100 * nbytes / total:.1f} %"]
            for kind, nbytes in sorted(line.at_peak().items(), key=lambda item: -item[1])
            if nbytes
        ],
    )
    rows = modules_joined(line.modules, result.depth)
    if not top or all(not one.module for one in rows):
        return
    print()
    title = "module" if job.graph.modules else "name scope"
    print_table(
        [title, "modules", "model", "step", "memory"],
        [
            [
                short_name(one.module or "(own ops, loss)"),
                str(one.count),
                _size(sum(one.by_kind.get(kind, 0) for kind in _STEADY)),
                _size(sum(one.by_kind.get(kind, 0) for kind in _WORKING)),
                _size(one.nbytes),
            ]
            for one in rows[:top]
        ],
    )
    print("model: parameters, gradients, optimizer states; step: all else")
    if len(rows) > top:
        print(f"and {len(rows) - top} more with less memory (--top)")


def _size(nbytes: float) -> str:
    """Gibibytes or mebibytes, three digits."""
    value, unit = (nbytes / _GIB, "GiB") if nbytes >= _GIB else (nbytes / _MIB, "MiB")
    if value < _LEAST_SHOWN:
        return "<0.1 MiB" if value else "-"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
