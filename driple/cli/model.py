"""`driple model`: the iteration time by the closed forms of the papers, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

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
from driple.cli.numbers import finite_number
from driple.cli.outputs import output_file
from driple.cli.show import note, print_assumptions, print_json, print_table
from driple.cli.source import SOURCE_HELP
from driple.codec import Json, to_dict

if TYPE_CHECKING:
    from driple.analytic.closed_forms import ClosedForm, MethodError
    from driple.analytic.sweep import Exchange
    from driple.cli.graphoptions import GraphOptions
    from driple.cli.source import Reading
    from driple.cluster.setting import Setting
    from driple.cluster.topology import Topology
    from driple.simulate.calibration import Calibration
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["METHODS", "model_app"]

model_app = typer.Typer(
    help="Iteration time by the closed forms of the papers, in milliseconds.",
    rich_markup_mode=None,
)

_DEFAULT_SETTING = "V100-P1w2/ho-PCIe"
METHODS = {
    "zeng": "Zeng, as published",
    "zeng-repaired": "Zeng, repaired",
    "zhang": "Zhang",
}

_Source = Annotated[str, typer.Argument(metavar="GRAPH|WORKLOAD", help=SOURCE_HELP)]
_SettingOption = Annotated[str, typer.Option(help="cluster setting with parameter servers")]
_Json = Annotated[bool, typer.Option("--json", help="one JSON object")]
_Plot = Annotated[
    Path | None,
    typer.Option(help="draw the parts as bars (.png, .svg, .pdf)", callback=output_file),
]


@model_app.command("zeng")
def zeng(
    source: _Source,
    setting: _SettingOption = _DEFAULT_SETTING,
    fma: Annotated[
        bool, typer.Option("--fma/--no-fma", help="published model: a product and a sum per cycle")
    ] = True,
    json: _Json = False,
    plot: _Plot = None,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
) -> None:
    """Zeng et al.: FLOPs, peaks and queues at the server, as published and repaired.

    Published: every device reaches its peak, every link its rate, one server, and a backward pass
    whose FLOPs do not grow with the batch. Repaired: what devices and links were measured to
    reach, copies between host and device, a start-up cost of each push, several servers.

    Examples:

      driple model zeng datasets/examples/resnet50.pbtxt --setting V100-P1w2

      driple model zeng resnet50/imagenet/b64/sgd/sync --setting 2080Ti-P2w2/ho-10G --plot zeng.png
    """
    from driple.analytic.closed_forms import (
        shipped_closed_forms,
        work_of,
        zeng_published,
        zeng_repaired,
    )

    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    asked = _prepare(source, setting, plot, options, json=json)
    work = work_of(asked.job)
    exchange = shipped_closed_forms().exchange
    forms = [
        zeng_published(asked.job, asked.scene, fma=fma, work=work),
        zeng_repaired(asked.job, asked.scene, asked.calibration, exchange, work=work),
    ]
    facts: dict[str, Json] = {
        "forward_flops": work.forward_flops,
        "parameter_bytes": work.nbytes,
        "pushes": work.num_pushes,
        "ops_of_unknown_flops": dict(work.unknown),
        "bytes_share_of_unknown": work.unknown_share,
    }
    if not json:
        print(
            f"forward pass {work.forward_flops / 1e9:.1f} GFLOP a step, parameters "
            f"{work.nbytes / 1e6:.1f} MB in {work.num_pushes} pushes"
        )
    _show(source, asked, forms, facts, plot, json=json)


@model_app.command("zhang")
def zhang(
    source: _Source,
    setting: _SettingOption = _DEFAULT_SETTING,
    exchange: Annotated[
        str,
        typer.Option(
            help="when parameters come: step (at the next step's beginning, TensorFlow) or layer "
            "(as soon as a layer is added up, BytePS)"
        ),
    ] = "step",
    background: Annotated[
        float,
        typer.Option(
            help="share of the servers' links that other traffic takes, below 1",
            callback=finite_number(least=0, below=1),
        ),
    ] = 0.0,
    measured: Annotated[
        float | None,
        typer.Option(
            help="seconds of an iteration that you measured on this very setting",
            callback=finite_number(above=0, most=1e6),
        ),
    ] = None,
    json: _Json = False,
    plot: _Plot = None,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
) -> None:
    """Zhang et al.: a pipeline of layers over links and servers, with stragglers.

    Examples:

      driple model zhang datasets/examples/resnet50.pbtxt --setting V100-P1w2

      driple model zhang vgg16/imagenet/b32/sgd/sync --setting 2080Ti-P2w2/ho-40G --json

      driple model zhang graph.pbtxt --setting V100-P2w4/ho-10G --background 0.3 --plot zhang.png
    """
    from driple.analytic.advice import BOTTLENECKS
    from driple.analytic.closed_forms import work_of, zhang_pipeline
    from driple.analytic.sweep import EXCHANGES
    from driple.checks import check_choice

    check_choice("--exchange", exchange, EXCHANGES)
    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    asked = _prepare(source, setting, plot, options, json=json)
    form = zhang_pipeline(
        asked.job,
        asked.scene,
        asked.calibration,
        exchange=cast("Exchange", exchange),
        background=background,
        measured_s=measured,
    )
    work = work_of(asked.job)
    facts: dict[str, Json] = {
        "exchange": exchange,
        "bottleneck": form.bottleneck,
        "communication_ratio": form.communication_ratio,
        "ops_of_unknown_flops": dict(work.unknown),
        "bytes_share_of_unknown": work.unknown_share,
    }
    _show(source, asked, [form], facts, plot, json=json)
    if not json:
        print(
            f"held back by {BOTTLENECKS[form.bottleneck]}; the busiest link works "
            f"{form.communication_ratio:.2f} times as long as a device"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What a closed form is asked about."""

    setting: Setting
    scene: Topology
    calibration: Calibration
    job: PreparedJob
    reading: Reading


def _prepare(
    source: str, setting: str, plot: Path | None, options: GraphOptions, *, json: bool
) -> _Asked:
    """Read what was asked for; all that can be refused before the graph is read is."""
    from driple.analytic.job_profile import link_loads
    from driple.cli.source import read_source
    from driple.cluster.setting import Setting
    from driple.cluster.topology import topology_of
    from driple.simulate.calibration import shipped_calibration

    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)
    wanted = Setting.parse(setting)
    scene, calibration = topology_of(wanted), shipped_calibration(wanted)
    link_loads(scene, 1.0, 1.0)
    for device in dict.fromkeys(scene.devices):
        calibration.device(device)
    reading = read_source(source, wanted, options)
    reading.show(json=json)
    return _Asked(
        setting=wanted, scene=scene, calibration=calibration, job=reading.job(), reading=reading
    )


def _show(
    source: str,
    asked: _Asked,
    forms: list[ClosedForm],
    facts: Mapping[str, Json],
    plot: Path | None,
    *,
    json: bool,
) -> None:
    """A table, or JSON, and a picture."""
    from driple.analytic.closed_forms import PARTS, shipped_closed_forms
    from driple.simulate.prepared_job import closed_form_assumptions

    setting, reading = asked.setting, asked.reading
    assumed = closed_form_assumptions(reading.graph, setting)
    errors: dict[str, MethodError | None] = {form.method: None for form in forms}
    if not reading.has_unknown:  # errors are of graphs without unknown sizes
        shipped = shipped_closed_forms()
        errors = {form.method: shipped.error_of(asked.scene, form.method) for form in forms}
    if plot is not None:
        from driple.plot.closed_forms import plot_parts

        bars = [(METHODS[form.method], form.parts_s) for form in forms]
        plot_parts(bars, plot, title=f"{Path(source).name} on {setting.name}")
        note(f"wrote {plot}")
    if json:
        models = {
            form.method: {
                "iteration_time_s": form.iteration_time_s,
                "parts_s": dict(form.parts_s),
                "error": {} if (known := errors[form.method]) is None else to_dict(known),
            }
            for form in forms
        }
        found = {"setting": setting.name, "provenance": "simulated", "models": models}
        print_json({**found, **facts, "assumptions": list(assumed), **reading.to_json_dict()})
        return
    print(f"{Path(source).name} on {setting.name}, a synchronous iteration")
    print_assumptions(assumed)
    rows = [[part, *(f"{form.parts_s[part]:.4f} s" for form in forms)] for part in PARTS]
    rows.append(["iteration", *(f"{form.iteration_time_s:.4f} s" for form in forms)])
    print_table(["", *(METHODS[form.method] for form in forms)], rows)
    for method, error in errors.items():
        if error is None:
            why = "no measurement of such a cluster"
            if reading.has_unknown:
                why = reading.unknown_words
            print(f"error of {METHODS[method]}: not known, {why}")
        else:
            print(
                f"error of {METHODS[method]}, on {error.rows} measured iterations: mean "
                f"{error.mean_pct:.0f} %, 90th percentile {error.p90_pct:.0f} %"
            )
