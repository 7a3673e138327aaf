"""`driple compare`: what every method says of a job on some settings, side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.graphoptions import (
    MAX_MIB,
    BatchSizeOption,
    InputOption,
    LoopTurnsOption,
    MaxMibOption,
    TargetOption,
    graph_options,
)
from driple.cli.numbers import whole_number
from driple.cli.outputs import output_file
from driple.cli.show import note, print_assumptions, print_json, print_table
from driple.cli.source import SOURCE_HELP
from driple.codec import Json

if TYPE_CHECKING:
    from driple.cluster.setting import Setting
    from driple.cluster.topology import Topology
    from driple.dataset.lookup import Found
    from driple.estimation.compare import Estimate
    from driple.estimation.stated_error import StatedError
    from driple.graph.opgraph import OpGraph
    from driple.simulate.calibration import Calibration
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["compare"]

_WORDS = {
    "measured": "measured",
    "inspector": "inspector",
    "simulator": "simulator",
    "zhang": "Zhang",
    "zeng-repaired": "Zeng, repaired",
    "zeng": "Zeng, as published",
}
_DATASETS = Path("datasets")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Compared:
    """One setting: what methods say, and why others say nothing."""

    setting: Setting
    estimates: list[Estimate]
    silent: dict[str, str]
    measured: Found | None
    stated: StatedError


def compare(
    source: Annotated[str, typer.Argument(metavar="GRAPH|WORKLOAD", help=SOURCE_HELP)],
    setting: Annotated[list[str], typer.Option(help="cluster setting; may be given several times")],
    preset: Annotated[str, typer.Option(help="which inspector: default or paper")] = "default",
    steps: Annotated[
        int, typer.Option(help="training steps to simulate", callback=whole_number(2, 100_000))
    ] = 50,
    datasets: Annotated[
        Path | None, typer.Option(help="folder of data sets with measured values; ./datasets")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="draw all methods with their errors (.png, .svg, .pdf)", callback=output_file
        ),
    ] = None,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
) -> None:
    """Ask every method for the iteration time of a job, and tell where they cannot all be right.

    Inspector, simulator and closed forms, with the measured value where a data set has this very
    graph on this setting. Each has a known error: in nine of ten cases the true time was within the
    range in brackets. Methods whose ranges have nothing in common are named. Which to trust when:
    scripts/studies/models/page.md.

    Examples:

      driple compare datasets/examples/resnet20.pbtxt --setting CPU-P1w2 --setting CPU-P1w3/ho-200M

      driple compare vgg16/imagenet/b32/sgd/sync --setting V100-P1w2 --setting 2080Ti-P1w2/ho-10G

      driple compare graph.pbtxt --setting V100-P2w2 --plot compared.png --json
    """
    from driple.cli.source import read_source
    from driple.cluster.setting import Setting
    from driple.cluster.topology import topology_of
    from driple.simulate.calibration import shipped_calibration

    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)
    wanted = list(dict.fromkeys(Setting.parse(name) for name in setting))
    places = [(item, topology_of(item), shipped_calibration(item)) for item in wanted]
    for _, scene, calibration in places:
        for device in dict.fromkeys(scene.devices):
            calibration.device(device)
    reading = read_source(source, wanted[0], options)
    reading.show(json=json)
    graph = reading.graph
    job = reading.job()
    compared = [_compare(*place, job, preset, steps, datasets) for place in places]
    if reading.has_unknown:
        compared = [_without_errors(item, reading.unknown_words) for item in compared]
    if plot is not None:
        from driple.plot.compare import plot_compared

        bars = [(item.setting.name, item.estimates) for item in compared]
        plot_compared(bars, _WORDS, plot, title=Path(source).name)
        note(f"wrote {plot}")
    if json:
        settings = [
            {**_as_json(item), "assumptions": list(_assumptions(graph, item.setting))}
            for item in compared
        ]
        print_json({"job": source, **reading.to_json_dict(), "settings": settings})
    else:
        assumed = [words for item in wanted for words in _assumptions(graph, item)]
        print_assumptions(dict.fromkeys(assumed))
        _print(compared, Path(source).name)


def _assumptions(graph: OpGraph, setting: Setting) -> tuple[str, ...]:
    """Of all methods that answer for a setting: closed forms are of parameter servers."""
    from driple.simulate.prepared_job import assumptions_on, closed_form_assumptions

    return (closed_form_assumptions if setting.num_servers else assumptions_on)(graph, setting)


def _compare(
    setting: Setting,
    scene: Topology,
    calibration: Calibration,
    job: PreparedJob,
    preset: str,
    steps: int,
    datasets: Path | None,
) -> _Compared:
    """Everything that one setting can be asked."""
    from driple.analytic.closed_forms import (
        shipped_closed_forms,
        work_of,
        zeng_published,
        zeng_repaired,
        zhang_pipeline,
    )
    from driple.estimation.compare import Estimate
    from driple.estimation.stated_error import stated_error
    from driple.simulate.run import simulate

    stated = stated_error(setting, job.graph, cost=job.cost, scene=scene)
    silent: dict[str, str] = {}
    measured, reason = _measured(setting, job.graph, datasets)
    estimates = []
    if measured is None:
        silent["measured"] = reason
    else:
        estimates.append(
            Estimate(method="measured", iteration_time_s=measured.iteration_time_s, p90=0.0)
        )
    predicted, reason = _predicted(setting, scene, job, preset, stated)
    if predicted is None:
        silent["inspector"] = reason
    else:
        estimates.append(predicted)
        if reason:
            note(reason)
    made = simulate(job, setting, calibration, num_steps=steps, scene=scene)
    estimates.append(
        Estimate(
            method="simulator",
            iteration_time_s=made.iteration_time_s,
            p90=stated.p90,
        )
    )
    if not scene.server_machine:
        reason = "a ring; the closed forms are of parameter servers"
        silent |= dict.fromkeys(("zhang", "zeng-repaired", "zeng"), reason)
        return _Compared(
            setting=setting, estimates=estimates, silent=silent, measured=measured, stated=stated
        )
    shipped, work = shipped_closed_forms(), work_of(job)
    for form in (
        zhang_pipeline(job, scene, calibration),
        zeng_repaired(job, scene, calibration, shipped.exchange, work=work),
        zeng_published(job, scene, work=work),
    ):
        known = shipped.error_of(scene, form.method)
        estimates.append(
            Estimate(
                method=form.method,
                iteration_time_s=form.iteration_time_s,
                p90=None if known is None else known.p90_pct / 100,
            )
        )
    return _Compared(
        setting=setting, estimates=estimates, silent=silent, measured=measured, stated=stated
    )


def _without_errors(item: _Compared, unknown: str) -> _Compared:
    """The same, but for the errors of methods, which are of graphs without unknown sizes."""
    from driple.estimation.stated_error import StatedError

    estimates = [
        one if one.method == "measured" else replace(one, p90=None, calibrated_s=None)
        for one in item.estimates
    ]
    return replace(item, estimates=estimates, stated=StatedError(runs=unknown))


def _predicted(
    setting: Setting, scene: Topology, job: PreparedJob, preset: str, stated: StatedError
) -> tuple[Estimate | None, str]:
    """What the inspector says; or why there is none. Beside an estimate: what it has not seen.

    What learned from simulated labels is at least as far off as these, so its error is known only
    where theirs is.
    """
    from math import exp, expm1, hypot, log, log1p

    from driple.errors import CheckpointError, PredictionError
    from driple.estimation.checked import predict
    from driple.estimation.compare import Estimate, p90_of
    from driple.inspector.checkpoint import load_checkpoint
    from driple.inspector.checkpoint_places import checkpoint_path

    try:
        file = checkpoint_path(setting, preset)
    except CheckpointError:
        return None, f"no inspector of preset {preset} for {setting.name}"
    try:
        prediction = predict(job.graph, load_checkpoint(file), job=job, scene=scene)
    except PredictionError as error:
        return None, str(error)
    doubts = (*prediction.warnings, *((prediction.outdated,) if prediction.outdated else ()))
    reason = f"{setting.name}, inspector: {'; '.join(doubts)}" if doubts else ""
    of_labels = stated.p90 if prediction.provenance == "simulated" else 0.0
    time_s = prediction.iteration_time_s
    p90, calibrated_s = None, None
    if of_labels is None:
        pass
    elif prediction.ends is not None and prediction.level is not None:
        half = hypot(log(prediction.ends[-1][1] / time_s), log1p(of_labels))
        p90, calibrated_s = expm1(half), (time_s / exp(half), time_s * exp(half))
    elif not doubts and (mean := prediction.metrics.get("test_iteration_time_mape_pct")):
        p90 = hypot(p90_of({"mean_pct": mean}) or 0.0, of_labels)
    found = Estimate(
        method="inspector", iteration_time_s=time_s, p90=p90, calibrated_s=calibrated_s
    )
    return found, reason


def _measured(setting: Setting, graph: OpGraph, datasets: Path | None) -> tuple[Found | None, str]:
    """The measured workload with this graph on this setting; or why there is none."""
    from driple.dataset.example import graph_hash
    from driple.dataset.lookup import find_graph, find_measured_step
    from driple.errors import MissingExtraError

    source = Path(str(files("driple"))).parent / "datasets"
    folders = [datasets] if datasets is not None else [_DATASETS, source]
    for folder in folders:
        place = folder / setting.file_name
        if not (place / "dataset.json").exists():
            continue
        try:
            found = find_graph(place, graph_hash(graph)) or find_measured_step(place, graph)
        except MissingExtraError as error:
            return None, str(error)
        measured = [item for item in found if item.label_source == "measured"]
        if measured:
            return measured[0], ""
    return None, f"no data set has this graph measured on {setting.name}"


def _as_json(item: _Compared) -> dict[str, Json]:
    from driple.estimation.compare import disagreements

    methods: dict[str, dict[str, Json]] = {
        one.method: {
            "iteration_time_s": one.iteration_time_s,
            "p90_error_pct": None if one.p90 is None else 100 * one.p90,
            "interval_s": _ends(one),
        }
        for one in item.estimates
    }
    if item.measured is not None:
        methods["measured"]["workload"] = item.measured.workload
    return {
        "setting": item.setting.name,
        "methods": methods,
        "silent": item.silent,
        "stated_error": item.stated.to_dict(),
        "disagreements": [
            {"methods": [pair.one.method, pair.other.method], "factor": pair.factor}
            for pair in disagreements(item.estimates)
        ],
    }


def _ends(one: Estimate) -> list[float | None] | None:
    """Its interval as JSON holds it, whose upper end may be nowhere."""
    interval = one.interval_s
    return None if interval is None else [end if isfinite(end) else None for end in interval]


def _print(compared: list[_Compared], name: str) -> None:
    """A row for each method, a column for each setting; then who contradicts whom."""
    from driple.estimation.compare import disagreements

    print(f"{name}: seconds of an iteration, and where it lies nine times out of ten")
    rows = []
    for method, words in _WORDS.items():
        cells = []
        for item in compared:
            found = [one for one in item.estimates if one.method == method]
            cells.append(_cell(found[0]) if found else "-")
        rows.append([words, *cells])
    print_table(["", *(item.setting.name for item in compared)], rows)
    for item in compared:
        if item.measured is not None:
            print(f"{item.setting.name}: measured as {item.measured.workload}")
        for pair in disagreements(item.estimates):
            print(
                f"{item.setting.name}: {_WORDS[pair.one.method]} "
                f"({pair.one.iteration_time_s:.3g} s) and {_WORDS[pair.other.method]} "
                f"({pair.other.iteration_time_s:.3g} s) differ by a factor of {pair.factor:.1f}, "
                "more than their known errors"
            )
        print(f"{item.setting.name}, simulator: {item.stated.sentence()}")
        for reason in dict.fromkeys(item.silent.values()):
            note(reason)


def _cell(one: Estimate) -> str:
    """The time and its range."""
    interval = one.interval_s
    if one.method == "measured":
        return f"{one.iteration_time_s:.4g}"
    if interval is None:
        return f"{one.iteration_time_s:.4g} (error not known)"
    return f"{one.iteration_time_s:.4g} ({interval[0]:.3g} to {interval[1]:.3g})"
