"""`driple inspect`: facts of a job on a setting, as a user reads them."""

from __future__ import annotations

import pytest

from tests.cli.test_main import EXAMPLE, driple


@pytest.mark.parametrize(
    ("job", "setting", "words"),
    [
        (EXAMPLE, "1xH100", "one device, nothing is sent"),
        ("bert-tiny", "1xH100", "one device, nothing is sent"),
        (EXAMPLE, "V100-R8/ho-NVLink", "are all-reduced over 8 devices in a step"),
        ("bert-tiny", "2x8xH100/400G", "are all-reduced over 16 devices in a step"),
        (EXAMPLE, "V100-P1w2/ho-PCIe", "parameter servers: "),
        ("bert-tiny", "V100-P1w2/ho-PCIe", "parameter servers: "),
    ],
)
def test_the_network_is_that_of_the_setting(job: str, setting: str, words: str) -> None:
    """Whatever layout the graph was written for: only a setting with servers names them."""
    done = driple("inspect", job, "--setting", setting)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("  network ")]
    assert words in line
    assert ("server" in line) is ("-P1" in setting)
