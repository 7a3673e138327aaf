"""A measured machine in a few lines.

MachineFile -> host, GPUs, copies, links, data: one line each
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driple.catalog.machine_file import Collective, KernelTime, MachineFile
from driple.quantities import duration, rate
from driple.units import counted

__all__ = ["machine_lines"]

_PIPES = {"half": "half precision", "tf32": "TF32", "plain": "fp32", "memory": "memory"}


def machine_lines(machine: MachineFile) -> Iterator[str]:
    """The lines that `driple measure --machine` prints."""
    facts, host = machine.machine, machine.host
    if facts is not None:
        busy = f"; other programs used {facts.busy_cores:.1f} cores: times may be too long"
        yield f"machine   {facts.cpu}, {facts.cores} cores{busy if facts.disturbed else ''}"
    if host is not None:
        launch = "" if host.launch_us is None else f"; {host.launch_us:.3g} us assumed of a launch"
        yield (
            f"host      {host.us_per_op:.3g} us an op ({host.low_us:.3g} to {host.high_us:.3g} by "
            f"program{launch}), {host.us_per_tensor:.3g} us a trained tensor"
        )
    cores = machine.processor
    if cores is not None:
        yield (
            f"processor {cores.flops_per_s / 1e9:.3g} GFLOP/s, {cores.bytes_per_s / 1e9:.3g} GB/s, "
            f"{cores.us_per_op:.3g} us to start an op; {counted(cores.threads, 'thread')} a worker "
            f"({cores.median_pct:.0f} % off on {counted(cores.programs, 'step')})"
        )
    for row in machine.rows:
        factors = ", ".join(
            f"{words} {float(str(row.values[f'tuned_{pipe}'])):.2f}"
            for pipe, words in _PIPES.items()
            if f"tuned_{pipe}" in row.values
        )
        yield f"GPU       {row.name}: {factors} times the usual share of its peaks"
    best = _best(machine.kernels)
    if best:
        yield f"kernels   {', '.join(best)}"
    for pinned in (True, False):
        rates = [
            f"{rate(each.bytes_per_s / 1e6)} {'to' if each.to_device else 'from'} the GPU"
            for each in machine.copies
            if each.pinned is pinned and each.device == 0
        ]
        if rates:
            yield f"copies    {', '.join(rates)}{', page-locked memory' if pinned else ''}"
    yield from _links(machine.collectives)
    if machine.loader:
        first, best_rate = (
            machine.loader[0],
            max(machine.loader, key=lambda each: each.samples_per_s),
        )
        shown = dict.fromkeys((best_rate, first))
        each_rate = (
            f"{one.samples_per_s:,.0f} with {counted(one.workers, 'worker')}" for one in shown
        )
        yield f"data      samples/s: {', '.join(each_rate)}"


def _best(kernels: Sequence[KernelTime]) -> list[str]:
    """The highest rate of products in each precision, and of bytes."""
    highest: dict[str, float] = {}
    for each in kernels:
        if each.tflops is not None:
            highest[each.precision] = max(highest.get(each.precision, 0.0), each.tflops)
    words = [f"{rate:.3g} TFLOP/s in {precision}" for precision, rate in highest.items()]
    moved = [each.gb_per_s for each in kernels if each.gb_per_s is not None]
    return [*words, f"{max(moved):.4g} GB/s of memory"] if moved else words


def _links(collectives: Sequence[Collective]) -> Iterator[str]:
    """One line for each group of processes."""
    groups: dict[tuple[int, int], list[Collective]] = {}
    for each in collectives:
        groups.setdefault((each.machines, each.ranks), []).append(each)
    for (machines, ranks), those in groups.items():
        rates = ", ".join(
            f"{each.collective} {rate(each.sustained_bytes_per_s / 1e6)}" for each in those
        )
        where = f"{machines} machines" if machines > 1 else "one machine"
        yield (
            f"links     {ranks} processes on {where} by {those[0].backend}: a step of "
            f"{duration(those[0].latency_s)}, and"
        )
        yield f"          {rates}"
