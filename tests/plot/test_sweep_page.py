"""`sweep --html`: every point with its unit, and the rate as a picture."""

from __future__ import annotations

from pathlib import Path

import driple
from driple.analytic.whatif import GridOptions
from driple.plot.sweep_page import page_text
from tests.cli.test_main import driple as command
from tests.plot.pages import check_page


def test_a_sweep_of_devices_and_one_of_servers() -> None:
    devices = driple.sweep("mobilenet_v2", "8xA100", batch_sizes=[8, 16, 32])
    grid = GridOptions(workers=(1, 2, 4), bandwidths_bits_per_s=(1e9, 1e10))
    servers = driple.sweep("datasets/examples/resnet20.pbtxt", grid=grid)
    for result, words in (
        (devices, ("8 to 32 samples per device", "samples/s against samples per device", "GiB")),
        (servers, ("10G", "devices", "bottleneck")),
    ):
        text = page_text(result)
        check_page(text)
        assert text.count("<tr") == 1 + len(result.rows())
        assert text.count("<svg") == 1
        for word in words:
            assert word in text, word


def test_the_command_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "sweep.html"
    command("sweep", "mobilenet_v2", "--setting", "4xA100", "--batch-size", "8,16", "--html", file)
    check_page(file.read_text())
