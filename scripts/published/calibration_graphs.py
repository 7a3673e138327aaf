"""Build the graphs that the simulator is fitted and checked with: writes datasets/calibration/.

    python -m scripts.published.calibration_graphs [--processes 2]

graphs/: every published model at two batch sizes, in single and half precision, of which any batch
size follows. paper/: the workloads of which the Driple paper tells single figures. It needs
TensorFlow.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from driple.cluster.setting import Setting
from driple.dataset.graph_store import build_graphs
from driple.jobs.workload import Workload
from driple.runs.tensorflow_runs import MODELS
from driple.runs.validation.paper_figures import read_facts, workloads_of

DATA = Path(__file__).parents[2] / "datasets"
SETTING = Setting.parse("V100-P1w2/ho-PCIe")
BATCH_SIZES = (32, 64)


def main() -> None:
    """Build what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    processes = parser.parse_args().processes
    models = [
        Workload(
            model=model,
            data_set="imagenet",
            batch_size=batch_size,
            optimizer="sgd",
            sync=False,
            precision=precision,
            data_format="nchw",
        )
        for model in sorted(MODELS)
        for precision in ("fp32", "fp16")
        for batch_size in BATCH_SIZES
    ]
    named = workloads_of(read_facts(DATA / "runs" / "published" / "driple_paper.csv"))
    for folder, jobs in (
        ("calibration", models),
        ("paper", [Workload.parse(name) for name in named]),
    ):
        build_graphs(
            jobs,
            SETTING,
            DATA / "graphs" / folder,
            processes=processes,
            progress=lambda name, done, total: print(f"{done}/{total} {name}", flush=True),
        )


if __name__ == "__main__":
    main()
