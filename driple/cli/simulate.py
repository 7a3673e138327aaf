"""`driple simulate`: what a cluster would show, from a simulation of its devices and links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

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
from driple.cli.numbers import MOST_SEED, whole_number
from driple.cli.outputs import output_file, output_folder
from driple.cli.show import (
    note,
    print_assumptions,
    print_json,
    print_table,
    print_targets,
    progress_bar,
)

if TYPE_CHECKING:
    from driple.cli.graphoptions import GraphOptions
    from driple.simulate.calibration import Calibration
    from driple.simulate.run import Simulation

__all__ = ["simulate"]

_DEFAULT_SETTING = "V100-P1w2/ho-PCIe"


def simulate(
    graph: Annotated[
        Path | None,
        typer.Argument(help=f"{GRAPH_HELP}; with --all, what driple zoo build --all wrote"),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="cluster setting, such as V100-P1w2; may be given several times"),
    ] = None,
    steps: Annotated[
        int,
        typer.Option(
            help="steps of a ring or of synchronous workers; asynchronous ones do 20 to 100 each",
            callback=whole_number(2, 100_000),
        ),
    ] = 100,
    seed: Annotated[
        int,
        typer.Option(help="of the differences between steps", callback=whole_number(0, MOST_SEED)),
    ] = 0,
    placement: Annotated[
        str,
        typer.Option(help="of variables on servers: round_robin, or greedy by bytes"),
    ] = "round_robin",
    json: Annotated[bool, typer.Option("--json", help="one JSON object per setting")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="draw what every worker does into this file (.png, .svg, .pdf)",
            callback=output_file,
        ),
    ] = None,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
    all_: Annotated[
        bool, typer.Option("--all", help="every graph of the folder GRAPH, on every setting")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="with --all: folder of the data sets", callback=output_folder
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(help="at once, with --all", callback=whole_number(1, 256))
    ] = 2,
    validate: Annotated[
        bool,
        typer.Option(
            "--validate", help="compare with published measurements that were held out of the fits"
        ),
    ] = False,
    data: Annotated[
        Path, typer.Option(help="with --validate: published measurements and graphs of a checkout")
    ] = Path("datasets"),
) -> None:
    """Simulate the training job of GRAPH, step by step, on a cluster that nobody needs to own.

    Devices and links are those of published data sheets, and what training reaches of them was
    fitted to published measurements: see scripts/studies/simulation/page.md. With --validate, the
    fits are made again without each model and each device in turn, and say what they would have
    predicted of it. With --all, a data set of every setting is written, by default for all known
    GPU settings; the same command goes on where it was stopped.

    Examples:

      driple simulate datasets/examples/resnet50.pbtxt --setting V100-P1w2

      driple simulate graph.pb.gz --setting 2080Ti-P2w2/ho-40G --json

      driple simulate graph.pbtxt --setting V100-P2w2 --plot timeline.png

      driple simulate --validate

      driple simulate graphs/ --all -o datasets/simulated
    """
    from driple.errors import ConfigError

    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    if options.flags and (validate or all_):
        raise ConfigError(
            f"{' and '.join(options.flags)}: these are for one graph file; leave them out with "
            "--all and --validate"
        )
    if validate == (graph is not None) or (validate and all_):
        raise ConfigError("give a graph; or a folder of graphs and --all; or --validate alone")
    if validate:
        from driple.cli.validation import print_validation

        print_validation(data, json=json)
    elif all_:
        if output is None:
            raise ConfigError("--all needs -o FOLDER, where the data sets go")
        _simulate_all(cast("Path", graph), setting or [], steps, seed, processes, output)
    else:
        _simulate_graph(
            cast("Path", graph),
            setting or [],
            options,
            plot,
            {"num_steps": steps, "seed": seed, "placement": placement},
            json=json,
        )


def _simulate_graph(
    graph: Path,
    names: list[str],
    options: GraphOptions,
    plot: Path | None,
    how: dict[str, Any],
    *,
    json: bool,
) -> None:
    """Simulate one graph on some settings, and show what came out."""
    from driple.checks import check_choice
    from driple.cli.source import read_file
    from driple.cluster.setting import Setting
    from driple.cluster.topology import topology_of
    from driple.errors import ConfigError
    from driple.graph.placement import STRATEGIES
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.run import simulate as simulate_graph

    check_choice("--placement", how["placement"], STRATEGIES)
    if plot is not None:
        from driple.plot.timeline import check_picture, plot_timeline

        check_picture(plot)
        if len(names) > 1:
            raise ConfigError("--plot draws one setting; give one --setting")
    if not names:
        note(f"no --setting given; simulating {_DEFAULT_SETTING}")
    wanted = [Setting.parse(name) for name in names or [_DEFAULT_SETTING]]
    places = [(item, topology_of(item), shipped_calibration(item)) for item in wanted]
    for _, scene, calibration in places:  # refuses what is unknown before a large graph is read
        for device in dict.fromkeys(scene.devices):
            calibration.device(device)
    reading = read_file(graph, options)
    reading.show(json=json)
    job = reading.job()
    for item, scene, calibration in places:
        made = simulate_graph(job, item, calibration, scene=scene, **how)
        if plot is not None:
            plot_timeline(made, plot, title=graph.name)
            note(f"wrote {plot}")
        stated = reading.stated_error(item, scene)
        if json:
            found = {**made.to_json_dict(), **reading.to_json_dict()}
            print_json({**found, "stated_error": stated.to_dict()})
        else:
            _print(made, calibration, graph.name)
            print(stated.sentence())


def _simulate_all(
    graphs: Path, names: list[str], steps: int, seed: int, processes: int, output: Path
) -> None:
    """Write a data set of every setting."""
    from driple.cluster.setting import KNOWN_SETTINGS, Setting
    from driple.dataset.graph_store import GraphStore
    from driple.dataset.simulated import SimulationPlan, simulate_store
    from driple.simulate.calibration import is_cpu

    wanted = tuple(Setting.parse(name) for name in names or KNOWN_SETTINGS)
    if not names:
        wanted = tuple(setting for setting in wanted if not is_cpu(setting.device))
    plan = SimulationPlan(settings=wanted, num_steps=steps, seed=seed)
    store = GraphStore.open(graphs)
    with progress_bar() as bar:
        task = bar.add_task("simulating", total=None)
        made = simulate_store(
            store,
            plan,
            output,
            processes=processes,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    for place in made:
        note(f"wrote {place}: {len(store.places)} workloads, simulated")


def _print(made: Simulation, calibration: Calibration, name: str) -> None:
    print(f"{name} on {made.setting.name}: simulated")
    print_assumptions(made.assumptions)
    print_targets(made.targets, made.iteration_time_s)
    times = [record.iteration_time_s for record in made.records]
    rows = [
        [f"worker {i}", device, f"{seconds:.3f} s"]
        for i, (device, seconds) in enumerate(zip(made.scene.devices, times, strict=True))
    ]
    print_table(["", "device", "iteration"], rows)
    kinds = made.scene.labelled_workers()
    if len(kinds) > 1:
        own = f"{sum(kinds.values())} workers on {made.scene.devices[0]}"
        note(f"targets and iteration time are the mean over the {own}")
    models = {device: calibration.device(device).measured_on for device in made.scene.devices}
    for device, source in models.items():
        if device != source:
            of = f"{source} devices" if source else "the usual device"
            note(f"no published run on {device} here: it takes the efficiency of {of}")
