"""`driple data simulate`: data sets with simulated labels, one for each setting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.checks import MOST_SEED
from driple.cli.joboptions import EngineOption
from driple.cli.outputs import JsonOption, output_folder
from driple.cli.overrides import override, set_option, whole
from driple.cli.progress import progress_bar
from driple.render.show import note, print_json
from driple.units import counted

if TYPE_CHECKING:
    from driple.api.json_types.commands import DataSimulatedJson

__all__ = ["simulate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of simulated data sets."""

    steps: int = whole(100, "training steps to simulate", 2, 100_000)
    seed: int = whole(0, "random seed", 0, MOST_SEED)
    processes: int = whole(2, "parallel processes", 1, 256)


def simulate(
    graphs: Annotated[Path, typer.Argument(help="folder that driple jobs build --list wrote")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="folder to write", callback=output_folder)
    ],
    setting: Annotated[
        list[str] | None,
        typer.Option(help="setting, may be given several times; default: all known GPU settings"),
    ] = None,
    engine: EngineOption = "local",
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: JsonOption = False,
) -> None:
    """Simulate every graph of a folder on every setting, and write a data set of each setting.

    The same command continues where it was stopped.

    Example:

      driple data simulate graphs/ --setting V100-P1w2 -o datasets/simulated
    """
    from driple.cluster.setting import KNOWN_SETTINGS, Setting
    from driple.dataset.graph_store import GraphStore
    from driple.dataset.simulated import SimulationPlan, simulate_store
    from driple.simulate.calibration import is_cpu

    values = override(_Values, set_)
    wanted = tuple(Setting.parse(name) for name in setting or KNOWN_SETTINGS)
    if not setting:
        wanted = tuple(item for item in wanted if not is_cpu(item.device))
    plan = SimulationPlan(settings=wanted, num_steps=values.steps, seed=values.seed)
    store = GraphStore.open(graphs)
    with progress_bar() as bar:
        task = bar.add_task("simulating", total=None)
        folders = simulate_store(
            store,
            plan,
            output,
            processes=values.processes,
            engine=engine,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    for place in folders:
        note(f"wrote {place}: {counted(len(store.places), 'workload')}, simulated")
    if json:
        simulated: DataSimulatedJson = {
            "folders": [str(place) for place in folders],
            "examples": len(store.places),
        }
        print_json(simulated, "data_simulated")
