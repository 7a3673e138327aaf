"""`driple predict`: the twelve targets of a graph on a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.graphoptions import (
    GRAPH_HELP,
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
from driple.cli.show import note, print_assumptions, print_json, print_targets

if TYPE_CHECKING:
    from driple.cli.source import Reading
    from driple.cluster.topology import Topology
    from driple.estimation.stated_error import StatedError
    from driple.inspector.checkpoint import Checkpoint
    from driple.inspector.predict import Prediction

__all__ = ["predict"]

_DEFAULT_SETTING = "V100-P1w2/ho-PCIe"


def predict(
    graph: Annotated[Path, typer.Argument(help=GRAPH_HELP)],
    setting: Annotated[
        list[str] | None,
        typer.Option(help="cluster setting, such as V100-P1w2; may be given several times"),
    ] = None,
    preset: Annotated[str, typer.Option(help="which inspector: default or paper")] = "default",
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="a checkpoint file, in place of --setting and --preset"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object per setting")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="draw the predicted pattern into this file (.png, .svg, .pdf)",
            callback=output_file,
        ),
    ] = None,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
    max_bytes: Annotated[
        int | None,
        typer.Option(help="the limit of --max-mib in bytes", callback=whole_number(1, 2**40)),
    ] = None,
) -> None:
    """Predict how the training job of GRAPH will use its cluster.

    Examples:

      driple predict datasets/examples/resnet50.pbtxt

      driple predict graph.pb.gz --setting 2080Ti --setting CPU-P1w2 --json

      driple predict graph.pbtxt --plot pattern.png
    """
    from driple.cli.source import read_file
    from driple.cluster.setting import Setting
    from driple.cluster.topology import known_scene
    from driple.estimation.checked import predict as predict_graph
    from driple.simulate.prepared_job import assumptions_on

    if plot is not None:
        from driple.plot.pattern import check_picture, plot_predictions

        check_picture(plot)
    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    if max_bytes is not None:
        options = replace(options, max_bytes=max_bytes)
    checkpoints = _checkpoints(setting, preset, checkpoint)
    if checkpoint is None and not setting:
        note(f"no --setting given; predicting for {_DEFAULT_SETTING}")
    reading = read_file(graph, options)
    reading.show(json=json)
    job = reading.job()
    scenes = {item.setting: known_scene(Setting.parse(item.setting)) for item in checkpoints}
    predictions = [
        predict_graph(reading.graph, item, job=job, scene=scenes[item.setting])
        for item in checkpoints
    ]
    if reading.has_unknown:  # the share that an interval holds is of graphs without any
        predictions = [replace(item, level=None) for item in predictions]
    for prediction in predictions:
        for words in prediction.remarks:
            note(f"{words} ({prediction.setting})")
    if plot is not None:
        plot_predictions(predictions, plot, title=graph.name)
        note(f"wrote {plot}")
    for prediction in predictions:
        assumed = assumptions_on(reading.graph, Setting.parse(prediction.setting))
        stated = _label_error(prediction, reading, scenes[prediction.setting])
        if json:
            error = None if stated is None else stated.to_dict()
            found = {**prediction.to_json_dict(), "stated_error": error}
            found["assumptions"] = list(assumed)
            print_json({**found, **reading.to_json_dict()})
        else:
            _print(prediction, graph.name, assumed, unknown=reading.unknown_words)
            if stated is not None:
                print(f"labels: {stated.sentence()}")


def _checkpoints(
    settings: list[str] | None, preset: str, checkpoint: Path | None
) -> list[Checkpoint]:
    from driple.cluster.setting import Setting
    from driple.inspector.checkpoint import load_checkpoint
    from driple.inspector.checkpoint_places import checkpoint_path

    if checkpoint is not None:
        return [load_checkpoint(checkpoint)]
    wanted = [Setting.parse(name) for name in settings or [_DEFAULT_SETTING]]
    return [load_checkpoint(checkpoint_path(item, preset)) for item in wanted]


def _label_error(
    prediction: Prediction, reading: Reading, scene: Topology | None
) -> StatedError | None:
    """Error of the simulator on such a job, if the inspector learned from simulated labels."""
    from driple.cluster.setting import Setting

    if prediction.provenance != "simulated":
        return None
    return reading.stated_error(Setting.parse(prediction.setting), scene)


def _print(prediction: Prediction, name: str, assumed: Sequence[str], *, unknown: str) -> None:
    trained = prediction.trained_on
    for words in prediction.warnings:
        print(f"a guess for {prediction.setting}: {words}")
    print(f"{name} on {prediction.setting}: learned from {prediction.provenance} labels")
    print_assumptions(assumed)
    if prediction.outdated:
        print(prediction.outdated)
    ends = None if prediction.ends is None else prediction.ends.tolist()
    print_targets(prediction.targets, prediction.iteration_time_s, ends)
    if prediction.level is not None:
        kind = f"{prediction.provenance} " if prediction.provenance == "simulated" else ""
        print(f"in brackets: where {prediction.level:.0%} of such {kind}values are expected")
    elif prediction.ends is not None:
        print(
            f"in brackets: {_why_no_level(prediction, unknown=unknown)}; how many of such values "
            "lie there is not known"
        )
    if prediction.closed_form_s is not None:
        print(f"closed form, to compare: step time {prediction.closed_form_s:.3g} s")
    error = prediction.metrics.get("test_smape_pct")
    tested = f"; SMAPE {error:.0f} % on its test workloads" if error is not None else ""
    print(
        f"graph: {prediction.num_nodes} ops, {prediction.num_edges} edges, "
        f"{prediction.num_groups} groups"
    )
    origin = trained.transferred_from
    moved = "" if origin is None else f", transferred from {origin.setting}"
    part, whole, data = (
        "?" if fact is None else fact
        for fact in (trained.num_train, trained.num_workloads, trained.data_set)
    )
    print(f"checkpoint: learned from {part} of {whole} workloads of {data}{moved}{tested}")


def _why_no_level(prediction: Prediction, *, unknown: str) -> str:
    """Why no share of values is stated for the intervals."""
    if unknown:
        return f"{unknown} and count as 1"
    if prediction.contradiction:
        return "wide enough to hold the closed form's times too"
    return "learned from another version" if prediction.outdated else "extrapolated"
