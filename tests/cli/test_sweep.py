"""`driple sweep` on the shipped graph of ResNet-50."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from driple.plot.sweep import apart
from tests.cli.test_main import EXAMPLE, driple, refused
from tests.texts import texts


def test_a_faster_link_saves_time_until_something_else_holds_back() -> None:
    done = driple(
        "sweep",
        EXAMPLE,
        "--bandwidth",
        "1G,10G,100G",
        "--workers",
        "2",
        "--set",
        "copies=off",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    times = result["estimates"]["iteration_time_s"]
    assert times["value"] == sorted(times["value"], reverse=True)
    assert (times["method"], times["source"]) == ("zhang", "simulated")
    assert result["bottleneck"] == ["server_nic", "server_nic", "compute"]


def test_the_table_names_what_holds_back(tmp_path: Path) -> None:
    picture = tmp_path / "sweep.png"
    done = driple("sweep", EXAMPLE, "--workers", "1-4", "--bandwidth", "1G,10G", "--plot", picture)
    assert done.returncode == 0, done.stderr
    assert "held back by" in done.stdout
    assert picture.stat().st_size > 10_000


def test_bad_input_gets_one_line() -> None:
    assert "--workers" in refused("sweep", EXAMPLE, "--workers", "few")
    assert "--bandwidth" in refused("sweep", EXAMPLE, "--bandwidth", "fast")
    assert "--compress" in refused("sweep", EXAMPLE, "--compress", "all")


def test_batch_sizes_show_time_and_memory() -> None:
    """More samples take longer and need more; the largest that fits is named."""
    pytest.importorskip("torch")
    asked = ("sweep", "timm:resnet18", "--setting", "1x2080Ti", "--batch-size", "16-512,700")
    done = driple(*asked, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["clusters"]["batch_size"] == [16, 32, 64, 128, 256, 512, 700]
    for name in ("iteration_time_s", "allocated_bytes", "reserved_bytes", "device_total_bytes"):
        values = result["estimates"][name]["value"]
        assert values == sorted(values)
    fits = result["facts"]["fits"]
    assert fits[0] == "yes" and fits[-1] == "no"
    largest = [size for size, one in zip(result["clusters"]["batch_size"], fits, strict=True)
               if one == "yes"][-1]  # fmt: skip
    assert texts(result["remarks"]) == [
        f"the largest of these batch sizes that fits: {largest:.0f}"
    ]


def test_one_dimension_is_swept_at_a_time() -> None:
    """Several batch sizes beside several links, or a text that is no number, are refused."""
    words = refused("sweep", EXAMPLE, "--batch-size", "8,16", "--workers", "1-4")
    assert "--workers" in words and "--batch-size" in words
    assert "--batch-size needs numbers" in refused("sweep", EXAMPLE, "--batch-size", "many")


def test_the_closed_form_is_the_simulation_on_one_machine() -> None:
    """But for the differences between steps; both have the bridge of the containers."""
    closed = driple("sweep", EXAMPLE, "--setting", "V100-P1w2", "--json")
    simulated = driple(
        "predict",
        EXAMPLE,
        "--method",
        "simulator",
        "--setting",
        "V100-P1w2",
        "--set",
        "steps=40",
        "--json",
    )
    (closed_s,) = json.loads(closed.stdout)["estimates"]["iteration_time_s"]["value"]
    wanted = json.loads(simulated.stdout)["answers"][0]["iteration_time_s"]["value"]
    # The shipped graph is of synchronous training.
    assert abs(closed_s / wanted - 1) < 0.02


def test_parameters_that_come_layer_by_layer_save_time() -> None:
    times = []
    for exchange in ("step", "layer"):
        done = driple("sweep", EXAMPLE, "--set", f"exchange={exchange}", "--json")
        times += json.loads(done.stdout)["estimates"]["iteration_time_s"]["value"]
    assert times[1] < times[0]
    assert "--set exchange" in refused("sweep", EXAMPLE, "--set", "exchange=magic")


def test_copies_bound_what_a_fast_link_brings_unless_left_out() -> None:
    options = ("--bandwidth", "10G,100G", "--workers", "4", "--json")
    copied = driple("sweep", EXAMPLE, *options)
    (slow, fast) = json.loads(copied.stdout)["estimates"]["iteration_time_s"]["value"]
    assert fast < 0.5 * slow
    assert json.loads(copied.stdout)["bottleneck"] == ["server_nic", "server_cpu"]
    assert "--set copies=off" in copied.stderr
    free = driple("sweep", EXAMPLE, *options, "--set", "copies=off")
    (_, fastest) = json.loads(free.stdout)["estimates"]["iteration_time_s"]["value"]
    assert fastest < fast


def test_labels_of_lines_that_end_together_do_not_overlap() -> None:
    """Order is kept, and what is far from the others stays where it is."""
    heights = [100.0, 20.0, 20.0, 23.0, 300.0, 309.0]
    moved = apart(heights, 9)
    assert moved[0] == 100
    assert moved[4:] == [300, 309]
    assert sorted(moved) == [moved[i] for i in (1, 2, 3, 0, 4, 5)]
    pairs = pairwise(sorted(moved))
    assert all(high - low >= 9 - 1e-9 for low, high in pairs)
    assert sum(moved[1:4]) == pytest.approx(63)


def test_sweep_says_when_servers_share_unevenly_and_what_helps() -> None:
    """ResNet-50 in turn: one of two servers holds 59 % of the parameters."""
    done = driple("sweep", EXAMPLE, "--ps", "1,2")
    assert "one server holds 59 % of the parameters with 2 servers" in done.stdout
    assert "--set placement=greedy spreads them" in done.stdout
    better = driple("sweep", EXAMPLE, "--ps", "1,2", "--set", "placement=greedy", "--json")
    worse = driple("sweep", EXAMPLE, "--ps", "1,2", "--json")
    slow, fast = (
        json.loads(item.stdout)["estimates"]["iteration_time_s"]["value"][1]
        for item in (worse, better)
    )
    assert fast < slow
    assert texts(json.loads(better.stdout)["remarks"]) == []
    assert "--set placement" in refused("sweep", EXAMPLE, "--set", "placement=magic")


def test_a_grid_that_does_not_fit_is_refused_before_it_is_made() -> None:
    options = ("--workers", "1-1000000", "--ps", "1-1000", "--compress", "0-0.9")
    assert "points are more than" in refused("sweep", EXAMPLE, *options)


def test_options_of_traces_are_refused_for_jobs_and_the_other_way_round() -> None:
    assert "--set needs NAME=VALUE for a JOB with one of placement" in refused(
        "sweep", EXAMPLE, "--set", "order=tic", "--set", "seed=0"
    )
    assert "--setting: only for a graph or workload" in refused(
        "sweep", "a.npz", "--setting", "V100"
    )
    assert "leave out options of graphs" in refused("sweep", "a.npz", "--batch-size", 8)


def test_a_measured_iteration_sets_the_speed_of_the_devices() -> None:
    done = driple("sweep", EXAMPLE, "--set", "measured=0.8", "--json")
    (time,) = json.loads(done.stdout)["estimates"]["iteration_time_s"]["value"]
    assert time == pytest.approx(0.8, rel=1e-3)
    done = driple("sweep", EXAMPLE, "--set", "measured=0.001")
    assert done.returncode == 2
    assert "--set measured" in done.stderr.splitlines()[-1]
