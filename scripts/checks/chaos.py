"""Nodes of a cluster are killed at random during runs: each result is there once, and as without.

    4 nodes of Ray on this machine -> predict --jobs, data simulate -> 1 or 2 nodes die -> SHA-256

    python -m scripts.checks.chaos --rounds 100

A round kills the processes of its nodes when a random share of the results is there, and begins
with four nodes again. It fails if a node was not alive before or is alive afterwards, nothing was
left to do, a result is missing or there twice, or a byte differs from the run without kills.
`--write` puts the counts, with the date, into scripts/checks/chaos.json.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import logging
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from driple.api.predicting_jobs import predict_jobs
from driple.cluster.setting import Setting
from driple.dataset.graph_store import GraphStore
from driple.dataset.simulated import SimulationPlan, simulate_store

__all__ = ["Chaos", "main", "nodes_of_ray", "write_jobs"]

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "scripts" / "checks" / "chaos.json"
_JOB = ROOT / "datasets" / "examples" / "resnet20.pbtxt"
_GRAPHS = ROOT / "datasets" / "graphs" / "paper"
_DEVICES = ("A100", "H100", "V100", "T4", "L4")
_NODES = 4
_DEATH_S = 60.0  # until Ray has seen that a node is gone

Progress = Callable[[int, int], None]


class Chaos:
    """A cluster whose nodes die.

    Args:
        cluster: of `ray.cluster_utils`.
        seed: random seed of when and whom.
    """

    def __init__(self, cluster: Any, seed: int) -> None:
        self.cluster, self._random = cluster, random.Random(seed)  # noqa: S311  # of no secret
        self.landed = 0

    def kill(self, num_nodes: int, run: Callable[[Progress], None]) -> float:
        """Kill nodes in the middle of a run.

        Args:
            num_nodes: that die.
            run: calls the function that it gets with (results, results in all).

        Returns:
            Share of the results that were there when the nodes died.

        Raises:
            RuntimeError: a kill did not land, or nothing was left to do.
        """
        at = self._random.uniform(0.0, 0.7)
        killed: list[float] = []

        def progress(done: int, total: int) -> None:
            if not killed and total > done >= at * total:
                killed.append(done / total)
                self._kill(num_nodes)

        run(progress)
        if not killed:
            raise RuntimeError("the run ended before a node was killed; give it more to do")
        for _ in range(num_nodes):
            self.cluster.add_node(num_cpus=1)
        self.cluster.wait_for_nodes()
        return killed[0]

    def _kill(self, num_nodes: int) -> None:
        victims = self._random.sample(sorted(self.cluster.worker_nodes, key=_name), num_nodes)
        names = {_name(node) for node in victims}
        before = names & _alive()
        for node in victims:
            self.cluster.remove_node(node, allow_graceful=False)
        until_s = time.monotonic() + _DEATH_S
        while names & _alive() and time.monotonic() < until_s:
            time.sleep(0.2)
        if before != names or names & _alive():
            raise RuntimeError(f"a kill did not land: {len(before)} of {len(names)} were alive")
        self.landed += num_nodes


def _name(node: Any) -> str:
    return str(node.node_id)


def _alive() -> set[str]:
    ray: Any = import_module("ray")
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


@contextmanager
def nodes_of_ray() -> Iterator[Any]:
    """Four nodes on this machine, each with a processor, and one that only directs them."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray: Any = import_module("ray")
    utils: Any = import_module("ray.cluster_utils")
    cluster = utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        for _ in range(_NODES):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def write_jobs(file: Path, lines: int = 640) -> None:
    """A file of jobs for `predict --jobs`."""
    texts = [
        json.dumps({"job": str(_JOB), "setting": f"{2 + number % 7}x{device}", "seed": number})
        for number in range(lines)
        for device in (_DEVICES[number % len(_DEVICES)],)
    ]
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")


def predicted(jobs: Path, output: Path, engine: str, progress: Progress) -> str:
    """Digest of the answers, each of which is there once.

    Raises:
        RuntimeError: a line is missing, or there twice.
    """
    predict_jobs(jobs, output, engine=engine, workers=1, progress=progress)
    rows = [json.loads(line)["line"] for line in output.read_text(encoding="utf-8").splitlines()]
    lines = len(jobs.read_text(encoding="utf-8").splitlines())
    if rows != [*range(1, lines + 1)]:
        raise RuntimeError(f"{len(rows)} rows for {lines} lines, or out of order")
    return hashlib.sha256(output.read_bytes()).hexdigest()


def simulated(folder: Path, engine: str, progress: Progress) -> str:
    """Digest of a data set that is built of the graphs of the paper's models."""
    plan = SimulationPlan(settings=(Setting.parse("4xV100"), Setting.parse("2xV100")), num_steps=20)
    store = GraphStore.open(_GRAPHS)
    simulate_store(store, plan, folder, processes=1, engine=engine, progress=progress)
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(folder)).encode() + b"\0")
        digest.update(file.read_bytes())
    return digest.hexdigest()


def nothing(done: int, total: int) -> None:
    """The progress of a run that nobody disturbs."""


def rounds(count: int, seed: int, most_s: float) -> dict[str, Any]:
    """Run rounds, in turn with one and two dead nodes, of both kinds of runs.

    Args:
        count: of rounds.
        seed: random seed.
        most_s: no round begins after so many seconds.

    Returns:
        Counts.

    Raises:
        RuntimeError: a round that failed.
    """
    begin_s = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        jobs = folder / "jobs.jsonl"
        write_jobs(jobs)
        undisturbed = {
            "predict": predicted(jobs, folder / "whole.jsonl", "local", nothing),
            "simulate": simulated(folder / "whole", "local", nothing),
        }
        done = dict.fromkeys(undisturbed, 0)
        with nodes_of_ray() as cluster:
            chaos = Chaos(cluster, seed)
            for number in range(count):
                if time.monotonic() - begin_s > most_s:
                    break
                kind = "simulate" if number % 4 >= 2 else "predict"
                out = folder / f"{number}.jsonl"

                def run(progress: Progress, kind: str = kind, out: Path = out) -> None:
                    outcome = (
                        predicted(jobs, out, "ray", progress)
                        if kind == "predict"
                        else simulated(out.with_suffix(""), "ray", progress)
                    )
                    if outcome != undisturbed[kind]:
                        raise RuntimeError(f"{kind} differs from the run without kills")

                share = chaos.kill(1 + number % 2, run)
                done[kind] += 1
                words = f"{kind}, {1 + number % 2} of {_NODES} nodes killed at {share:.0%}"
                print(f"round {number + 1}: {words}", flush=True)
            return {
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "rounds": done,
                "nodes_killed": chaos.landed,
                "failed": 0,
                "seed": seed,
                "digests": undisturbed,
                "seconds": round(time.monotonic() - begin_s),
            }


def main() -> None:
    """Run the rounds, and print or store the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-s", type=float, default=7200.0, help="no round begins later")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    result = json.dumps(rounds(given.rounds, given.seed, given.most_s), indent=1)
    print(result)
    if given.write:
        RESULT.write_text(f"{result}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
