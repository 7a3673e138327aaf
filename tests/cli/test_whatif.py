"""`driple whatif` on the shipped graph of ResNet-50."""

import json
from pathlib import Path

from tests.cli.test_main import EXAMPLE, driple, refused


def test_a_faster_link_saves_time_until_the_device_holds_back() -> None:
    done = driple("whatif", EXAMPLE, "--bandwidth", "1G,10G,100G", "--workers", "2", "--json")
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


def test_the_closed_form_comes_near_the_simulation_on_one_machine() -> None:
    """Both have the bridge of the containers between the roles."""
    closed = driple("whatif", EXAMPLE, "--setting", "V100-P1w2", "--json")
    simulated = driple("simulate", EXAMPLE, "--setting", "V100-P1w2", "--steps", 20, "--json")
    (found,) = json.loads(closed.stdout)["columns"]["iteration_time_s"]
    # The closed form lets more of the transfers pass beside the computing.
    assert 0.5 < found / json.loads(simulated.stdout)["iteration_time_s"] < 1.05
