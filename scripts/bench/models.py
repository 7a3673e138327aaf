"""Time of a million what-if points, and of one closed form of a graph.

python -m scripts.bench.models

Run it on a quiet machine; goal: two seconds for a million points on one core.
"""

from __future__ import annotations

import time

import numpy as np

from driple.analytic.closed_forms import zhang_pipeline
from driple.analytic.job_profile import profile_of
from driple.analytic.sweep import Points, iteration_seconds
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.graph import read_graph
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from scripts.settings.shipped import ROOT

POINTS = 1_000_000


def main() -> None:
    """Measure and print."""
    job = PreparedJob(read_graph(ROOT / "datasets" / "examples" / "resnet50.pbtxt"))
    calibration, setting = shipped_calibration(), Setting.parse("V100-P1w2/ho-10G")
    profile = profile_of(job, calibration.device("V100"))
    random = np.random.default_rng(0)
    points = Points(
        workers=random.integers(1, 65, POINTS),
        servers=random.integers(1, 9, POINTS),
        worker_bytes_per_s=random.uniform(1e8, 1e10, POINTS),
        server_bytes_per_s=random.uniform(1e8, 1e10, POINTS),
        compression=random.uniform(0, 0.9, POINTS),
        deviation=0.02,
    )
    begin, used = time.perf_counter(), time.process_time()
    iteration_seconds(profile, points)
    wall_s, cpu_s = time.perf_counter() - begin, time.process_time() - used
    print(f"{POINTS:,} points: {wall_s:.2f} s, of which {cpu_s:.2f} s of the processor")
    topology = topology_of(setting)
    zhang_pipeline(job, topology, calibration)
    begin = time.perf_counter()
    for _ in range(20):
        zhang_pipeline(job, topology, calibration)
    print(f"one closed form of a graph: {50 * (time.perf_counter() - begin):.2f} ms")


if __name__ == "__main__":
    main()
