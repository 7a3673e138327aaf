"""Speed of synchronous parameter servers: CPU seconds of 100 steps of one job.

    python -m scripts.bench.servers [--in-turn]

With `--in-turn` as many steps as can be waited for are simulated event by event, and their time is
that of 100. The goal is 3 s with 32 workers and 12 servers.
"""

from __future__ import annotations

import argparse
import time

from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.dataset.graph_store import GraphStore
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.run import simulate_steps
from scripts.settings.shipped import DATASETS
from scripts.studies.kit.tables import markdown

STEPS, STEPS_IN_TURN = 100, 3
MODELS = ("alexnet", "resnet50", "inception3")
SETTINGS = (
    "V100-P1w2/ho-PCIe",
    "V100-P4w8/ho-10G",
    "V100-P5w10/he-1G",
    "V100-P12w32/ho-10G",
    "V100-P16w64/ho-10G",
)


def main() -> None:
    """Simulate each model on every setting, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--in-turn", action="store_true", help="event by event, a few steps")
    steps = STEPS_IN_TURN if parser.parse_args().in_turn else STEPS
    graphs = GraphStore.open(DATASETS / "graphs/calibration")
    rows = []
    for model in MODELS:
        graph = graphs.graph(f"{model}/imagenet/b32/sgd/async/nchw")
        job = PreparedJob(graph, program=Program(synchronous=True))
        for name in SETTINGS:
            setting = Setting.parse(name)
            topology, calibration = topology_of(setting), shipped_calibration(setting)
            simulate_steps(job, topology, calibration, num_steps=2)  # makes the plans ready
            begin_s = time.process_time()
            simulate_steps(job, topology, calibration, num_steps=steps)
            taken_s = (time.process_time() - begin_s) * STEPS / steps
            rows.append([model, name, f"{taken_s:.2f} s"])
    print("\n".join(markdown(["model", "setting", f"{STEPS} steps"], rows)))


if __name__ == "__main__":
    main()
