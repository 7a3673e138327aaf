"""Collectives over the GPUs of this machine: a process for each, which this module starts and is.

local_links(8) -> 8 x `python -m driple.measure.machine.link_process FILE` -> FILE of the first
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from driple.catalog.machine_file import Collective, MachineFile, machine_text, read_machine
from driple.errors import MeasureError

__all__ = ["local_links"]

_LONGEST_S = 300.0


def local_links(count: int) -> list[Collective]:
    """Measure between processes of this machine, one for each of its GPUs.

    Args:
        count: of processes.

    Raises:
        MeasureError: one of them failed, or they do not end.
    """
    with socket.socket() as probe:  # a port that is free now
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="driple-links-") as name:
        file = Path(name) / "links.toml"
        shared = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}  # fmt: skip
        running: list[subprocess.Popen[bytes]] = []
        try:
            for rank in range(count):
                own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
                running.append(
                    subprocess.Popen(
                        [sys.executable, "-m", __name__, str(file)],
                        env={**os.environ, **shared, **own},
                        stderr=subprocess.PIPE,
                    )
                )
            for process in running:
                _, errors = process.communicate(timeout=_LONGEST_S)
                if process.returncode:
                    last = errors.decode(errors="replace").strip().splitlines()[-1:]
                    raise MeasureError(f"collectives failed: {''.join(last)[:300]}")
        except subprocess.TimeoutExpired as error:
            raise MeasureError(
                f"collectives over {count} processes took over {_LONGEST_S:.0f} s; leave links "
                "out, as in --set parts=host,gpu,copies"
            ) from error
        finally:
            for process in running:
                process.kill()
                process.wait()
        return list(read_machine(file).collectives)


def _run(file: Path) -> None:
    """One of the processes."""
    from driple.measure.machine.links import measure_links, ranks_of_environment

    ranks = ranks_of_environment()
    if ranks is None:
        raise MeasureError("started without RANK and WORLD_SIZE")
    collectives = measure_links(ranks)
    if ranks.rank == 0:
        file.write_text(machine_text(MachineFile(file=str(file), collectives=tuple(collectives))))


if __name__ == "__main__":
    try:
        _run(Path(sys.argv[1]))
    except MeasureError as error:
        sys.exit(str(error))
