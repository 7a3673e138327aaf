"""Machines for step 5: orders and answers of a group, and torchrun itself on this machine."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from driple.errors import MeasureError
from driple.profiler.launch import cores_of_devices
from driple.profiler.machines import JoinedMachines, free_port, own_machine, stand_in_machines
from driple.profiler.profile_records import RankResult, SeenGradients
from driple.profiler.stall_profile import read_profile


class Store:
    """What a group uses of PyTorch's TCPStore, within one process."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: str) -> None:
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def get(self, key: str) -> Any:
        return self.values[key].encode()

    def wait(self, keys: list[str], how_long: Any) -> None:
        with self.changed:
            if not self.changed.wait_for(
                lambda: all(key in self.values for key in keys), how_long.total_seconds()
            ):
                raise RuntimeError("wait timeout")


def result(rank: int, order: int) -> RankResult:
    return RankResult(
        rank=rank,
        batch_size=order,
        iterations_s=(0.5, 0.25),
        wrapped=True,
        bucket_mib=None,
        meter_s=1e-6,
        device="CPU",
        backend="gloo",
        gradients=SeenGradients(nbytes=(4.0,), ready_s=(0.1,), step_s=0.2),
    )


def pair() -> tuple[JoinedMachines, JoinedMachines]:
    store = Store()
    leader, other = (JoinedMachines(rank=rank, size=2, master="a", store=store) for rank in (0, 1))
    return leader, other


def test_all_machines_launch_and_the_leader_gets_every_rank() -> None:
    """Two orders, then the end: the follower launched twice at the leader's ports."""
    leader, other = pair()
    ports: list[int] = []

    def launch(port: int, number: int) -> list[RankResult]:
        ports.append(port)
        return [result(1, number)]

    thread = threading.Thread(target=lambda: other.follow(launch))
    thread.start()
    for number in range(2):
        results = leader.order(1000 + number, 10, lambda: [result(0, number)])  # noqa: B023  # called at once
        assert results == [result(0, number), result(1, number)]
    leader.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert ports == [1000, 1001]


def test_a_machine_that_fails_is_named() -> None:
    leader, other = pair()

    def launch(port: int, number: int) -> list[RankResult]:
        raise MeasureError("the script crashed")

    thread = threading.Thread(target=lambda: other.follow(launch), daemon=True)
    thread.start()
    with pytest.raises(MeasureError, match="machine 1: the script crashed"):
        leader.order(1, 10, list)
    leader.stop()
    thread.join(10)


def test_a_machine_that_does_not_answer_is_named() -> None:
    leader, _ = pair()
    with pytest.raises(MeasureError, match="machine 1 does not answer"):
        leader.order(1, 0.01, list)


def test_the_environment_of_torchrun_makes_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """None without it; several profilers on a machine are refused."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert JoinedMachines.of_environment() is None
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(MeasureError, match="--nproc-per-node 1"):
        JoinedMachines.of_environment()


def test_without_root_there_are_no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MeasureError, match="need root"), stand_in_machines(2, 2, 1e9):
        pass


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs a network")
def test_a_core_takes_in_all_packets_of_a_connection() -> None:
    """They would overtake each other, and TCP would take that for loss."""
    with stand_in_machines(2, 2, 1e9) as (places, _):
        queue = "/sys/class/net/{}/queues/rx-0/rps_cpus"
        for i, place in enumerate(places):
            space = place.prefix[-1].rpartition("/")[2]
            inside = ["ip", "netns", "exec", space, "cat", queue.format("eth0")]
            ends = [subprocess.check_output(inside, text=True),
                    Path(queue.format(f"dplm{i}")).read_text()]  # fmt: skip
            assert [int(end, 16) for end in ends] == [(1 << (os.cpu_count() or 1)) - 1] * 2


def test_devices_share_no_core() -> None:
    """As many cores for each, none twice; no pinning where there are more devices than cores."""
    mine = os.sched_getaffinity(0)
    cores = cores_of_devices(len(mine))
    assert cores is not None
    assert sorted(core for device in cores for core in device) == sorted(mine)
    assert cores_of_devices(len(mine) + 1) is None
    (place,), (host, port) = own_machine(3)
    assert (place.processes, host) == (3, "127.0.0.1")
    assert 0 < port < 65536


@pytest.mark.slow
def test_torchrun_joins_two_machines(tmp_path: Path) -> None:
    """Two profilers, both here: machine 0 has the result of step 5 with both ranks in it."""
    port = free_port()

    def machine(rank: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"),
                *("--node-rank", str(rank), "--nproc-per-node", "1"),
                *("--master-addr", "127.0.0.1", "--master-port", str(port)),
                *("-m", "driple.cli.main", "profile", "run", "--output", str(tmp_path / str(rank))),
                *(
                    "--devices",
                    "2",
                    "--set",
                    "steps=2,5",
                    "--set",
                    "repeats=1",
                    "--set",
                    "tries=1",
                    "--set",
                    "iterations=3",
                ),
                *("--set", "warmup=3", "--set", "timeout=120", "--"),
                *("-m", "driple.profiler.train", "bert-tiny", "--length", "8", "--batch-size", "2"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    machines = [machine(0), machine(1)]
    outputs = [one.communicate(timeout=300)[0] for one in machines]
    assert [one.returncode for one in machines] == [0, 0], outputs
    profile = read_profile(tmp_path / "0")
    assert profile.launches[5, 0].processes == 2
    assert len(profile.launches[5, 0].ranks_s) == 2
    assert set(profile.stalls()) == {"network"}
    assert "took part in 1 launches" in outputs[1]
