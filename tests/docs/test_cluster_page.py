"""The page "Your cluster": its own device gives an answer, as one device and over NVLink."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from driple.catalog.fields import SIMULATION_FACTS
from tests.cli.test_main import EXAMPLE, ROOT, driple

PAGE = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^driple predict graph.pbtxt (--catalog .*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("options", COMMANDS)
def test_the_device_of_the_page_is_simulated(options: str, tmp_path: Path) -> None:
    (row,) = re.findall(r"```toml\n# mine.toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.toml").write_text(row)
    done = driple("predict", EXAMPLE, *options.split(), "--explain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "MyGPU" in done.stdout
    assert "efficiency of Hopper devices" in " ".join(done.stdout.split())


def test_the_page_names_the_facts_that_a_simulation_needs() -> None:
    assert len(COMMANDS) == 2
    (listed,) = re.findall(r"needs nine facts: (.*?)\. ", PAGE, re.DOTALL)
    assert tuple(re.findall(r"`(\w+)`", listed)) == SIMULATION_FACTS
