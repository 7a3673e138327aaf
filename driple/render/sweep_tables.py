"""Tables of `driple sweep`: a row for each cluster, or for each number of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from driple.cluster.links import NVLINK
from driple.estimate import GUESS_FACTOR, Interval
from driple.quantities import duration, duration_range, rounded
from driple.quantities import size as size_words
from driple.remarks import Remark
from driple.render.remarks import sentence, sentences
from driple.render.show import note, print_assumptions, print_table
from driple.units import counted, format_range, format_rate, rounded_up

if TYPE_CHECKING:
    from driple.analytic.whatif import GridSweep
    from driple.api.json_types.sweep import DevicesFactsJson
    from driple.api.sweeping import SweepResult
    from driple.api.sweeping_traces import TraceSweep

__all__ = ["print_curve", "print_devices", "print_grid"]

_MOST_ROWS = 40


def print_devices(result: SweepResult) -> None:
    """A row for each point: cluster, step time, scaling, waiting, memory."""
    where = "" if result.setting is None else f" on {result.setting.name}"
    print(f"{'' if result.job is None else result.job.name}{where}: simulated")
    print_assumptions(result.assumptions)
    columns = _device_columns(result)
    shown = {name: cells for name, cells in columns.items() if any(cell != "-" for cell in cells)}
    print_table([*shown], [list(row) for row in zip(*shown.values(), strict=True)])
    level = result.estimates["iteration_time_s"].level
    if level is not None:
        print(f"{100 * level:.0f} % of such steps are expected within their interval")
    for words in sentences(result.remarks):
        print(words)


def _device_columns(result: SweepResult) -> dict[str, list[str]]:
    """Cells by header; what does not vary is left out."""
    facts = cast("DevicesFactsJson", result.facts)
    clusters, estimates = result.clusters, result.estimates
    sizes, workers = clusters["batch_size"], clusters["workers"]
    times, rates = estimates["iteration_time_s"], estimates.get("samples_per_s")
    efficiency = estimates.get("scaling_efficiency_pct")
    enough = facts["enough_bandwidth_bits_per_s"]
    columns: dict[str, list[str]] = {}
    if len(set(sizes)) > 1:
        columns["batch"] = [_whole(size) for size in sizes]
    own = None if result.setting is None else result.setting.num_workers
    if set(workers) != {own}:
        columns["devices"] = [_whole(count) for count in workers]
    links, link_rates = facts["links"], clusters["bandwidth_bits_per_s"]
    if len(set(link_rates)) > 1 or not _has_own_links(result):
        has_names = len(set(links)) == len(set(link_rates)) > 1
        columns["link"] = [
            "-" if rate is None else _kind(str(name)) if has_names else format_rate(rate)
            for name, rate in zip(links, link_rates, strict=True)
        ]
    columns["step"] = [
        _step(value, None if times.interval is None else _interval(*times.interval[i]))
        for i, value in enumerate(times.value)
    ]
    if rates is not None:
        columns["samples/s"] = [
            _rate(value, None if rates.interval is None else _interval(*rates.interval[i]))
            for i, value in enumerate(rates.value)
        ]
    if efficiency is not None and max(count or 0 for count in workers) > 1:
        columns["scaling"] = [f"{value:.0f} %" for value in efficiency.value]
        columns["waits"] = [_percent(share) for share in facts["waiting_pct"]]
        columns["< 10 % from"] = [
            "-" if count == 1 else "no speed" if rate is None else format_rate(rounded_up(rate))
            for count, rate in zip(workers, enough, strict=True)
        ]
    total = estimates.get("device_total_bytes")
    if total is not None:
        header = "memory" if set(facts["fits"]) <= {"yes", None} else "memory, fits"
        columns[header] = [
            size_words(value) + ("" if fits in {"yes", None} else f" {fits}")
            for value, fits in zip(total.value, facts["fits"], strict=True)
        ]
    return columns


def _has_own_links(result: SweepResult) -> bool:
    """Whether all points have the links of the setting as it was given."""
    if result.setting is None:
        return True
    cluster = result.setting.cluster
    own = {8 * link.bytes_per_s for link in (cluster.network, cluster.link) if link is not None}
    return {rate for rate in result.clusters["bandwidth_bits_per_s"] if rate} <= own


def _step(step_s: float, interval: Interval | None) -> str:
    """A step time with its interval; a guess has no single number."""
    if interval is not None and interval.width > GUESS_FACTOR:
        return f"guess: {duration_range(interval)}"
    return duration(step_s, interval)


def _rate(per_s: float, interval: Interval | None) -> str:
    """Samples per second; of a guess both ends, without a single number."""
    if interval is None or interval.width <= GUESS_FACTOR:
        return rounded(per_s)
    return format_range(interval.low, interval.high, lambda end: rounded(end, 2))


def _interval(low: float, high: float | None) -> Interval:
    return Interval(low=low, high=high)


def _kind(link: str) -> str:
    """The name of a link as settings have it: NVLink is that of the device."""
    return NVLINK if link.startswith(NVLINK) else link


def _whole(number: float | None) -> str:
    return "-" if number is None else f"{number:.0f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0f} %"


def print_grid(sweep: GridSweep, *, unknown: Remark | None) -> None:
    """A row for each point, or for some of very many; advice only if nothing is unknown."""
    import numpy as np

    from driple.analytic.advice import BOTTLENECKS, RESOURCES

    flat, breakdown, rates = sweep.points.arrays(), sweep.parts, sweep.rates
    shown = np.unique(np.linspace(0, len(rates) - 1, min(len(rates), _MOST_ROWS)).astype(int))
    header = ["bandwidth", "workers", "ps", "compress", "iteration", "compute", "network"]
    rows = [
        [
            format_rate(8 * rates[i]),
            f"{flat['workers'][i]:.0f}",
            f"{flat['servers'][i]:.0f}",
            f"{flat['compression'][i]:g}",
            f"{breakdown.total_s[i]:.4f} s",
            f"{100 * breakdown.compute_s[i] / breakdown.total_s[i]:.0f} %",
            f"{100 * (breakdown.push_s[i] + breakdown.pull_s[i]) / breakdown.total_s[i]:.0f} %",
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
        steps_per_s = flat["workers"] / breakdown.total_s
        best = int(steps_per_s.argmax())
        print(
            f"most steps per second of all workers, {steps_per_s[best]:.1f}: "
            f"{100 * flat['compression'][best]:.0f} % of the gradients not sent, "
            f"{format_rate(8 * rates[best])}, {counted(flat['workers'][best], 'worker')}, "
            f"{flat['servers'][best]:.0f} ps"
        )
    if len(shown) < len(rates):
        note(f"{len(shown)} of {len(rates)} points shown; --json prints all")


def print_curve(sweep: TraceSweep) -> None:
    """A row for each number of workers, with the coarser models beside it."""
    from driple.api.sweeping_traces import BASELINES

    prices, servers = sweep.prices, sweep.trace.num_servers
    rows = []
    for point, others in zip(sweep.curve, sweep.baselines, strict=True):
        low, high = point.interval
        row = [
            str(point.num_workers),
            f"{point.examples_per_s:.1f}",
            f"{low:.1f} to {high:.1f}",
            f"{point.step_s:.3f} s",
            *(f"{others[name]:.1f}" for name in BASELINES),
        ]
        if prices is not None:
            row.append(f"{1e6 * prices.per_example(point, servers):.3g}")
        rows.append(row)
    header = ["workers", "examples/s", "95 % interval", "step", *BASELINES]
    print_table([*header, *(["cost of 1e6 examples"] if prices is not None else [])], rows)
    if sweep.knee is not None:
        print(f"from {counted(sweep.knee, 'worker')} on, one more adds less than 10 %")
    elif len(sweep.curve) > 1:
        print("every worker adds 10 % or more")
