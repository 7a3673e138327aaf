"""`driple simulate --all`: data sets with simulated labels, one for each setting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driple.cli.numbers import MOST_SEED, whole_number
from driple.cli.outputs import output_folder
from driple.cli.show import note, progress_bar

__all__ = ["simulate"]


def simulate(
    graphs: Annotated[Path, typer.Argument(help="folder that driple zoo build --all wrote")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="folder of the data sets", callback=output_folder),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="cluster setting, may be given several times; default: all GPU settings"),
    ] = None,
    steps: Annotated[
        int, typer.Option(help="training steps to simulate", callback=whole_number(2, 100_000))
    ] = 100,
    seed: Annotated[
        int,
        typer.Option(help="random seed of the jitter", callback=whole_number(0, MOST_SEED)),
    ] = 0,
    all_: Annotated[
        bool, typer.Option("--all", help="every graph of the folder, on every setting")
    ] = False,
    processes: Annotated[
        int, typer.Option(help="parallel processes", callback=whole_number(1, 256))
    ] = 2,
) -> None:
    """Simulate every graph of a folder on every setting; the same command continues a stopped run.

    For one graph: driple predict JOB --method simulator.

    Example:

      driple simulate graphs/ --all -o datasets/simulated
    """
    from driple.cluster.setting import KNOWN_SETTINGS, Setting
    from driple.dataset.graph_store import GraphStore
    from driple.dataset.simulated import SimulationPlan, simulate_store
    from driple.errors import ConfigError
    from driple.simulate.calibration import is_cpu

    if not all_:
        raise ConfigError(f"for one graph: driple predict {graphs} --method simulator")
    if output is None:
        raise ConfigError("--all needs -o FOLDER, where the data sets go")
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
