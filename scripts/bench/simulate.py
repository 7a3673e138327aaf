"""Speed of the simulator: seconds of one core for a workload on a setting of Table 6.

    python -m scripts.bench.simulate [--workloads 26] [--large]

Run it on a machine where nothing else runs. Workloads are taken evenly from all families of
datasets/settings/V100-P1w2_ho-PCIe; the goals are 0.15 s for 100 iterations of a 3,000-op graph
with two workers, and 40 minutes on two cores for 832 workloads on 14 settings.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from driple.cluster.setting import Setting
from driple.dataset.simulated import SimulationPlan
from driple.dataset.store import read_dataset
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from scripts.settings.shipped import FIRST_SIMULATED, ops_of, simulated_folders
from scripts.studies.kit.tables import markdown

STEPS = 100
CORES = 2
LARGE_OPS = range(2_500, 3_501)  # "a 3,000-op graph"


def main() -> None:
    """Simulate a sample on every setting with servers, print a table and the whole."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workloads", type=int, default=26)
    parser.add_argument("--large", action="store_true", help="only graphs of about 3,000 ops")
    arguments = parser.parse_args()
    folders = simulated_folders()
    data = read_dataset(folders[FIRST_SIMULATED])
    some = [ops_of(item) for item in sorted(data.examples, key=lambda item: item.workload)]
    if arguments.large:
        some = [graph for graph in some if len(graph.names) in LARGE_OPS]
    picked = np.unique(np.linspace(0, len(some) - 1, arguments.workloads).round().astype(int))
    graphs = [some[i] for i in picked]
    settings = [served for name in folders if (served := Setting.parse(name)).num_servers]
    plan = SimulationPlan(settings=tuple(settings), num_steps=STEPS)
    simulate(
        PreparedJob(graphs[0]), settings[0], shipped_calibration(), num_steps=2
    )  # loads what it needs

    jobs = [PreparedJob(graph) for graph in graphs]
    rows, whole_s = [], 0.0
    for setting in settings:
        calibration, steps = shipped_calibration(setting), plan.steps_on(setting)
        taken = []
        for job in jobs:
            begin = time.perf_counter()
            simulate(job, setting, calibration, num_steps=steps)
            taken.append(time.perf_counter() - begin)
        whole_s += sum(taken)
        figures = [float(np.median(taken)), float(np.percentile(taken, 90)), max(taken)]
        rows.append([setting.name, str(steps), *(f"{seconds:.3f} s" for seconds in figures)])
    sizes = [len(graph.names) for graph in graphs]
    print(
        f"{len(jobs)} workloads of {min(sizes)} to {max(sizes)} ops (median "
        f"{np.median(sizes):.0f}); the first setting's times include making the graph ready"
    )
    print("\n".join(markdown(["setting", "steps", "median", "90th percentile", "most"], rows)))
    if not arguments.large:
        minutes = whole_s / len(jobs) * len(some) / CORES / 60
        print(f"all {len(some)} on {len(settings)} settings, {CORES} cores: {minutes:.0f} minutes")


if __name__ == "__main__":
    main()
