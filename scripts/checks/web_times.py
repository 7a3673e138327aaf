"""How long `driple serve` takes for one question after another, on this machine.

    driple serve <- one job on many clusters, a batch of these, graphs that it has not seen
    -> seconds of 50 and 99 in 100 answers, predictions a second

    python -m scripts.checks.web_times --write

A question about a job that is read already names other clusters each time, so that no answer is a
kept one; a graph is one of datasets/examples with another comment each time, so that it is read
anew. A finding is a status other than 200. `--write` puts the figures, with the date, into
scripts/checks/web_times.json. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from scripts.checks.clean_install import dated
from scripts.checks.web_server import ROOT, RunningServer, running_server

__all__ = ["Times", "cluster_names", "main", "times"]

RESULT = Path(__file__).with_suffix(".json")
EXAMPLES = ROOT / "datasets" / "examples"
JOB = "mobilenet_v2"
_MACHINES, _RATES = (1, 2, 4, 8, 16), (10, 25, 40, 50, 100, 200, 400, 800)
_DEVICES = ("A100", "H100", "V100", "A100-80G", "H200", "A800", "H800", "B200")
_LOOKS_S = 0.02


@dataclass(kw_only=True, slots=True)
class Times:
    """What questions took.

    Attributes:
        read_job_p50_s: a job that is read already on another cluster: half of the answers, seconds.
        read_job_p99_s: the same, 99 in 100.
        graph_p50_s: a graph of examples, which is read anew.
        graph_p99_s: the same, 99 in 100.
        batch_per_s: predictions a second in a batch of one read job on many clusters.
        questions: of each kind.
        findings: answers that are none.
    """

    read_job_p50_s: float = 0.0
    read_job_p99_s: float = 0.0
    graph_p50_s: float = 0.0
    graph_p99_s: float = 0.0
    batch_per_s: float = 0.0
    questions: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)


def cluster_names() -> list[str]:
    """Names of clusters, no two alike."""
    return [
        f"{machines}x8x{device}/NVLink+{rate}G" if machines > 1 else f"{rate // 5}x{device}"
        for rate in _RATES
        for machines in _MACHINES
        for device in _DEVICES
    ]


def times(server: RunningServer, *, questions: int, graphs: int) -> Times:
    """Ask one question after another.

    Args:
        server: that is asked.
        questions: about a job that is read already, 320 at most.
        graphs: that are read anew.
    """
    result = Times()

    def asked(path: str, body: object) -> float:
        begin_s = time.monotonic()
        status, content = server.ended(path, body, looks_s=_LOOKS_S)
        taken_s = time.monotonic() - begin_s
        if status != 200:
            result.findings.append(f"{path}: status {status}: {content[:200].decode()}")
        return taken_s

    clusters = cluster_names()[:questions]
    for device in _DEVICES:  # which run other kernels, so that the job is read for each
        server.answer("/v1/predict", {"job": JOB, "clusters": [f"1x{device}"]})
    read_s = [asked("/v1/predict", {"job": JOB, "clusters": [name]}) for name in clusters]
    # Another seed than above, so that each of these is worked out here; before
    # the graphs, of which the server would keep 64 in place of the job.
    body = {"jobs": [JOB], "clusters": clusters, "seed": 1}
    batch_s = asked("/v1/predict:batch", body)
    graph_s = []
    files = sorted(EXAMPLES.glob("*.pbtxt"))
    for number in range(graphs):
        content = files[number % len(files)].read_bytes() + f"# {number}\n".encode()
        job = {"graph": base64.b64encode(content).decode()}
        graph_s.append(asked("/v1/predict", {"job": job, "clusters": ["1xA100"]}))
    for name, taken in (("read_job", read_s), ("graph", graph_s)):
        setattr(result, f"{name}_p50_s", round(float(np.quantile(taken, 0.5)), 3))
        setattr(result, f"{name}_p99_s", round(float(np.quantile(taken, 0.99)), 3))
        result.questions[name] = len(taken)
    result.batch_per_s = round(len(clusters) / batch_s)
    result.questions["batch"] = len(clusters)
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--questions", type=int, default=320, help="about a job that is read")
    parser.add_argument("--graphs", type=int, default=100, help="that are read anew")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    given = parser.parse_args(argv)
    with running_server() as server:
        result = times(server, questions=given.questions, graphs=given.graphs)
    facts = dated(asdict(result))
    print(json.dumps(facts, indent=1))
    if given.write:
        RESULT.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
