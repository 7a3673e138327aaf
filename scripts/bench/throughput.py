"""Speed of the throughput simulation: Inception v3, 1,000 steps of each of 2 to 10 workers.

    python -m scripts.bench.throughput

Run it on a machine where nothing else runs. Li et al. need over 60 s (section 4.5); the goal is 5 s
on one core and less than 500 MB. The trace is one of tests/data/throughput, of a narrow Inception
v3, which has as many ops as the published one.
"""

from __future__ import annotations

import os
import resource
import time

from driple.async_sgd.curve import throughput_curve
from driple.async_sgd.jobtrace import read_job_trace
from driple.async_sgd.overhead import Overhead
from driple.async_sgd.scaling import ScaledCluster, job_of_trace
from scripts.settings.shipped import ROOT

TRACE = ROOT / "tests" / "data" / "throughput" / "inception3.npz"
WORKERS = range(2, 11)
STEPS = 1000


def main() -> None:
    """Compile, simulate on one core and on all, print."""
    begin = time.perf_counter()
    trace = read_job_trace(TRACE)
    job = job_of_trace(trace, trace.about.overhead or Overhead())
    cluster = ScaledCluster(num_workers=1, bytes_per_s=trace.bytes_per_s)
    print(
        f"{len(trace.names)} ops, merged to {job.num_ops}; reading, merging and loading the "
        f"compiled loop took {time.perf_counter() - begin:.1f} s"
    )
    for threads in sorted({1, os.cpu_count() or 1}):
        begin = time.perf_counter()
        curve = throughput_curve(job, cluster, [*WORKERS], num_steps=STEPS, threads=threads)
        taken_s = time.perf_counter() - begin
        events = sum(made.num_events for made in curve)
        print(
            f"{threads} core(s): {taken_s:.2f} s, {events / 1e6:.1f} million events, "
            f"{events / taken_s / 1e6:.1f} million a second"
        )
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory at most {peak_mb:.0f} MiB")


if __name__ == "__main__":
    main()
