"""`driple simulate`: what a cluster would show, from a simulation of its devices and links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.show import note, print_json, print_table, print_targets

if TYPE_CHECKING:
    from driple.simulate.device import Calibration
    from driple.simulate.run import Simulation

__all__ = ["simulate"]

_DEFAULT_SETTING = "V100-P1w2/ho-PCIe"


def simulate(
    graph: Annotated[Path, typer.Argument(help="GraphDef or SavedModel: .pb, .pbtxt, also .gz")],
    setting: Annotated[
        list[str] | None,
        typer.Option(help="cluster setting, such as V100-P1w2; may be given several times"),
    ] = None,
    steps: Annotated[int, typer.Option(help="training steps to simulate")] = 100,
    seed: Annotated[int, typer.Option(help="of the differences between steps")] = 0,
    placement: Annotated[
        str,
        typer.Option(help="of variables on servers: round_robin, or greedy by bytes"),
    ] = "round_robin",
    json: Annotated[bool, typer.Option("--json", help="one JSON object per setting")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="draw what every worker does into this file (.png, .svg, .pdf)"),
    ] = None,
    max_mib: Annotated[
        float, typer.Option("--max-mib", help="refuse graph files larger than this, in MiB")
    ] = 512,
) -> None:
    """Simulate the training job of GRAPH, step by step, on a cluster that nobody needs to own.

    Devices and links are those of published data sheets, and what training reaches of them was
    fitted to published measurements: see driple env and docs/simulation.md.

    Examples:

      driple simulate datasets/examples/resnet50.pbtxt --setting V100-P1w2

      driple simulate graph.pb.gz --setting 2080Ti-P2w2/ho-40G --json

      driple simulate graph.pbtxt --setting V100-P2w2 --plot timeline.png
    """
    from typing import cast

    from driple.checks import check_choice
    from driple.errors import ConfigError
    from driple.graph import read_graph
    from driple.settings import Setting
    from driple.simulate.device import shipped_calibration
    from driple.simulate.placement import STRATEGIES, Strategy
    from driple.simulate.run import simulate as simulate_graph

    check_choice("--placement", placement, STRATEGIES)
    if plot is not None:
        from driple.cli.timeline import check_picture, plot_timeline

        check_picture(plot)
        if setting is not None and len(setting) > 1:
            raise ConfigError("--plot draws one setting; give one --setting")
    if not setting:
        note(f"no --setting given; simulating {_DEFAULT_SETTING}")
    wanted = [Setting.parse(name) for name in setting or [_DEFAULT_SETTING]]
    calibration = shipped_calibration()
    op_graph = read_graph(graph, max_bytes=int(max_mib * 2**20))
    for remark in op_graph.report.notes:
        note(remark)
    for item in wanted:
        made = simulate_graph(
            op_graph,
            item,
            calibration,
            num_steps=steps,
            seed=seed,
            placement=cast("Strategy", placement),
        )
        if plot is not None:
            plot_timeline(made, plot, title=graph.name)
            note(f"wrote {plot}")
        if json:
            print_json({**made.to_json_dict(), "error": _error(calibration, made)})
        else:
            _print(made, calibration, graph.name)


def _error(calibration: Calibration, made: Simulation) -> dict[str, float]:
    """Error of the iteration time against published measurements of the same kind of cluster."""
    return calibration.error_of(made.setting)


def _print(made: Simulation, calibration: Calibration, name: str) -> None:
    print(f"{name} on {made.setting.name}: simulated")
    print_targets(made.targets, made.iteration_time_s)
    times = [record.iteration_time_s for record in made.records]
    rows = [
        [f"worker {i}", device, f"{seconds:.3f} s"]
        for i, (device, seconds) in enumerate(zip(made.scene.devices, times, strict=True))
    ]
    print_table(["", "device", "iteration"], rows)
    error = _error(calibration, made)
    if error:
        print(
            f"error of simulated iteration times against {error['rows']:.0f} published ones that "
            f"it was not fitted to: median {error['median_pct']:.0f} %, "
            f"90th percentile {error['p90_pct']:.0f} %"
        )
    models = {device: calibration.device(device).measured_on for device in made.scene.devices}
    for device, source in models.items():
        if device != source:
            note(f"nobody has measured {device} here: it takes the efficiency of {source}")
