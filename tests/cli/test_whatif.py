"""`driple whatif` on the shipped graph of ResNet-50."""

import json
from pathlib import Path

from tests.cli.test_main import EXAMPLE, driple, refused


def test_a_faster_link_saves_time_until_the_device_holds_back() -> None:
    done = driple(
        "whatif", EXAMPLE, "--bandwidth", "1G,10G,100G", "--workers", "2", "--no-limit", "--json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    columns = found["columns"]
    assert columns["iteration_time_s"] == sorted(columns["iteration_time_s"], reverse=True)
    assert columns["bottleneck"] == ["server_nic", "server_nic", "compute"]
    assert found["provenance"] == "simulated"


def test_the_table_names_what_holds_back(tmp_path: Path) -> None:
    picture = tmp_path / "whatif.png"
    done = driple("whatif", EXAMPLE, "--workers", "1-4", "--bandwidth", "1G,10G", "--plot", picture)
    assert done.returncode == 0, done.stderr
    assert "held back by" in done.stdout
    assert picture.stat().st_size > 10_000


def test_bad_input_gets_one_line() -> None:
    assert "--workers" in refused("whatif", EXAMPLE, "--workers", "few")
    assert "--bandwidth" in refused("whatif", EXAMPLE, "--bandwidth", "fast")
    assert "--compress" in refused("whatif", EXAMPLE, "--compress", "all")


def test_the_closed_form_is_the_simulation_on_one_machine() -> None:
    """But for the differences between steps; both have the bridge of the containers."""
    closed = driple("whatif", EXAMPLE, "--setting", "V100-P1w2", "--json")
    simulated = driple("simulate", EXAMPLE, "--setting", "V100-P1w2", "--steps", 40, "--json")
    (found,) = json.loads(closed.stdout)["columns"]["iteration_time_s"]
    wanted = json.loads(simulated.stdout)["iteration_time_s"]
    # The shipped graph is of synchronous training.
    assert abs(found / wanted - 1) < 0.02


def test_parameters_that_come_layer_by_layer_save_time() -> None:
    times = []
    for exchange in ("step", "layer"):
        done = driple("whatif", EXAMPLE, "--exchange", exchange, "--json")
        times += json.loads(done.stdout)["columns"]["iteration_time_s"]
    assert times[1] < times[0]
    assert "--exchange" in refused("whatif", EXAMPLE, "--exchange", "magic")


def test_servers_pass_no_more_than_published_ones_unless_told_to() -> None:
    options = ("--bandwidth", "10G,100G", "--workers", "4", "--json")
    limited = driple("whatif", EXAMPLE, *options)
    (slow, same) = json.loads(limited.stdout)["columns"]["iteration_time_s"]
    assert slow == same
    assert json.loads(limited.stdout)["columns"]["bottleneck"] == ["server_cpu", "server_cpu"]
    assert "--no-limit" in limited.stderr
    free = driple("whatif", EXAMPLE, *options, "--no-limit")
    (slow, fast) = json.loads(free.stdout)["columns"]["iteration_time_s"]
    assert fast < 0.5 * slow
