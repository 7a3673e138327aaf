"""Tables of `driple sweep`: a row for each cluster, or for each number of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from driple.remarks import Remark
from driple.render.remarks import sentence, sentences
from driple.render.show import note, print_table
from driple.units import format_range, format_rate, three_digits

if TYPE_CHECKING:
    from driple.analytic.whatif import GridSweep
    from driple.api.json_types.sweep import BatchFactsJson
    from driple.api.sweeping import SweepResult
    from driple.api.sweeping_traces import TraceSweep

__all__ = ["print_batches", "print_curve", "print_grid"]

_MOST_ROWS = 40
_GIB = 2.0**30


def print_batches(result: SweepResult) -> None:
    """A row for each batch size: step time, throughput, memory, and whether it fits."""
    where = "" if result.setting is None else f" on {result.setting.name}"
    print(f"{'' if result.job is None else result.job.name}{where}: simulated")
    times = result.estimates["iteration_time_s"]
    level = "" if times.level is None else f"{100 * times.level:.0f} % interval"
    header = ["batch", "iteration", *([level] if level else []), "samples/s"]
    memory = [
        (words, result.estimates[name].value)
        for name, words in (
            ("allocated_bytes", "allocated"),
            ("reserved_bytes", "reserved"),
            ("device_total_bytes", "on the device"),
        )
        if name in result.estimates
    ]
    facts = cast("BatchFactsJson", result.facts)
    fits, margins = facts["fits"], facts["margin_bytes"]
    rows = []
    for i, size in enumerate(result.clusters["batch_size"]):
        row = [
            f"{size:.0f}",
            f"{three_digits(times.value[i])} s",
            *([format_range(*times.interval[i], unit=" s")] if times.interval else []),
            f"{result.estimates['samples_per_s'].value[i]:,.0f}",
            *(f"{three_digits(values[i] / _GIB)} GiB" for _, values in memory),
        ]
        if memory:
            margin = margins[i] or 0.0
            sign = "-" if margin < 0 else ""
            row += [fits[i] or "unknown", f"{sign}{three_digits(abs(margin) / _GIB)} GiB"]
        rows.append(row)
    if memory:
        header += [*(words for words, _ in memory), "fits", "left"]
    print_table(header, rows)
    for words in sentences(result.remarks):
        print(words)


def print_grid(sweep: GridSweep, *, unknown: Remark | None) -> None:
    """A row for each point, or for some of very many; advice only if nothing is unknown."""
    import numpy as np

    from driple.analytic.advice import BOTTLENECKS, RESOURCES

    flat, found, rates = sweep.points.arrays(), sweep.parts, sweep.rates
    shown = np.unique(np.linspace(0, len(rates) - 1, min(len(rates), _MOST_ROWS)).astype(int))
    header = ["bandwidth", "workers", "ps", "compress", "iteration", "compute", "network"]
    rows = [
        [
            format_rate(8 * rates[i]),
            f"{flat['workers'][i]:.0f}",
            f"{flat['servers'][i]:.0f}",
            f"{flat['compression'][i]:g}",
            f"{found.total_s[i]:.4f} s",
            f"{100 * found.compute_s[i] / found.total_s[i]:.0f} %",
            f"{100 * (found.push_s[i] + found.pull_s[i]) / found.total_s[i]:.0f} %",
        ]
        for i in shown.tolist()
    ]
    if unknown is None:
        header += ["2x device", "2x worker link", "2x server link", "2x servers", "held back by"]
        gains = sweep.gains(shown)
        for row, i in enumerate(shown.tolist()):
            rows[row] += [f"{100 * gains[name][row]:.0f} %" for name in RESOURCES]
            rows[row].append(BOTTLENECKS[str(sweep.bottlenecks[i])])
    print_table(header, rows)
    if unknown is not None:
        print(f"no advice: {sentence(unknown)}")
    elif len(np.unique(flat["compression"])) > 1:
        steps_per_s = flat["workers"] / found.total_s
        best = int(steps_per_s.argmax())
        print(
            f"most steps per second of all workers, {steps_per_s[best]:.1f}: "
            f"{100 * flat['compression'][best]:.0f} % of the gradients not sent, "
            f"{format_rate(8 * rates[best])}, {flat['workers'][best]:.0f} workers, "
            f"{flat['servers'][best]:.0f} ps"
        )
    if len(shown) < len(rates):
        note(f"{len(shown)} of {len(rates)} points shown; --json prints all")


def print_curve(made: TraceSweep) -> None:
    """A row for each number of workers, with the coarser models beside it."""
    from driple.api.sweeping_traces import BASELINES

    prices, servers = made.prices, made.trace.num_servers
    rows = []
    for one, others in zip(made.curve, made.baselines, strict=True):
        low, high = one.interval
        row = [
            str(one.num_workers),
            f"{one.examples_per_s:.1f}",
            f"{low:.1f} to {high:.1f}",
            f"{one.step_s:.3f} s",
            *(f"{others[name]:.1f}" for name in BASELINES),
        ]
        if prices is not None:
            row.append(f"{1e6 * prices.per_example(one, servers):.3g}")
        rows.append(row)
    header = ["workers", "examples/s", "95 % interval", "step", *BASELINES]
    print_table([*header, *(["cost of 1e6 examples"] if prices is not None else [])], rows)
    if made.knee is not None:
        print(f"from {made.knee} worker(s) on, one more adds less than 10 %")
    elif len(made.curve) > 1:
        print("every worker adds 10 % or more")
