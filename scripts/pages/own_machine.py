"""Put into docs/own_machine.md what its commands print now, and measure the machine that it shows.

    python -m scripts.pages.own_machine [--check]   the page, from docs/machine.toml
    python -m scripts.pages.own_machine --measure   docs/machine.toml anew, then the page

The machine has two processes on this host, joined by links of 2 Gbit/s (network namespaces: root,
iproute2). Measure where nothing else runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from driple.catalog.machine_file import read_machine
from driple.errors import MeasureError
from driple.measure.testbed.network import ClusterNetwork
from driple.render.machine_lines import machine_lines
from scripts.pages.commands import printed, refreshed
from scripts.settings.shipped import DOCS, ROOT
from scripts.studies.kit.written import options_of, written

PAGE = DOCS / "own_machine.md"
FILE = "docs/machine.toml"
BITS_PER_S = 2e9
_ROLES = ("m0", "m1")
_LONGEST_S = 300.0


def measure_pair(file: Path, bits_per_s: float, *options: str) -> None:
    """`driple measure --machine` on two processes that are joined by links of a set rate.

    Args:
        file: that the first of them writes.
        bits_per_s: of each link and direction.
        options: of the command, beside the file.

    Raises:
        MeasureError: a process failed, or namespaces cannot be made.
    """
    with ClusterNetwork(_ROLES, bits_per_s) as network:
        host = network.address(_ROLES[0], 0).partition(":")[0]
        running = []
        for rank, role in enumerate(_ROLES):
            own = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1",
                   "MASTER_ADDR": host, "MASTER_PORT": "29531", "OMP_NUM_THREADS": "1"}  # fmt: skip
            command = [sys.executable, "-m", "driple", "measure", "--machine", "-o", str(file)]
            running.append(
                subprocess.Popen(
                    [*network.command_prefix(role), *command, *options], env={**os.environ, **own}
                )
            )
        try:
            statuses = [process.wait(_LONGEST_S) for process in running]
        finally:
            for process in running:
                process.kill()
        if any(statuses):
            raise MeasureError(f"the two processes ended with {statuses}")


def shown(arguments: str) -> str:
    """What a command of the page prints; of measuring, what its file states."""
    if arguments.startswith("measure"):
        return "\n".join(machine_lines(read_machine(ROOT / FILE)))
    return printed(arguments)


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrite the page, or check it."""
    parser = options_of(__doc__)
    parser.add_argument("--measure", action="store_true", help="measure this machine before")
    given = parser.parse_args(argv)
    if given.measure:
        measure_pair(ROOT / FILE, BITS_PER_S)
    text = refreshed(PAGE.read_text(encoding="utf-8"), shown)
    return written({PAGE: text}, check=given.check, program="python -m scripts.pages.own_machine")


if __name__ == "__main__":
    sys.exit(main())
