"""`driple data simulate`: data sets with simulated labels, one for each setting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driple.cli.numbers import MOST_SEED, whole_number
from driple.cli.outputs import output_folder
from driple.cli.show import note, print_json, progress_bar

__all__ = ["simulate"]


def simulate(
    graphs: Annotated[Path, typer.Argument(help="folder that driple jobs build --all wrote")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="folder to write", callback=output_folder)
    ],
    setting: Annotated[
        list[str] | None,
        typer.Option(help="setting, may be given several times; default: all known GPU settings"),
    ] = None,
    steps: Annotated[
        int, typer.Option(help="training steps to simulate", callback=whole_number(2, 100_000))
    ] = 100,
    seed: Annotated[int, typer.Option(help="random seed", callback=whole_number(0, MOST_SEED))] = 0,
    processes: Annotated[
        int, typer.Option(help="parallel processes", callback=whole_number(1, 256))
    ] = 2,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
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

    wanted = tuple(Setting.parse(name) for name in setting or KNOWN_SETTINGS)
    if not setting:
        wanted = tuple(item for item in wanted if not is_cpu(item.device))
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
    if json:
        print_json({"folders": [str(place) for place in made], "examples": len(store.places)})
