"""Some of the steps of published memory rows are traced alone, and the others stay."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import ModuleType

from scripts.fits.memory_rows import MEMORY_FILE
from scripts.fits.memory_store import MEMORY_STEPS_FILE, MemoryStore, write_memory_steps


def test_one_of_so_many_steps_is_traced(program: ModuleType, tmp_path: Path) -> None:
    """What is traced is what ships; a store that is there keeps its other steps."""
    lines = gzip.decompress((program.PUBLISHED / MEMORY_FILE).read_bytes()).decode().splitlines()
    chosen = [line for line in lines if ",mlp:" in line][:3]
    rows = gzip.compress("\n".join([lines[0], *chosen, ""]).encode())
    (tmp_path / MEMORY_FILE).write_bytes(rows)
    command = [
        "--published", str(tmp_path), "--work", str(tmp_path / "work"), "--every", "2",
        "--processes", "1",
    ]  # fmt: skip
    file = tmp_path / MEMORY_STEPS_FILE

    assert program.main(command) == 0
    traced = MemoryStore.open(file).steps
    ship = MemoryStore.open(program.PUBLISHED / MEMORY_STEPS_FILE).steps
    assert len(traced) == 2
    again = tmp_path / "again.xz"
    write_memory_steps(again, {name: ship[name] for name in traced})
    assert file.read_bytes() == again.read_bytes()
    assert not (tmp_path / "memory_failures.csv").exists()

    other = next(name for name in ship if name not in traced)
    write_memory_steps(file, {other: ship[other]})
    assert program.main(command) == 0
    assert set(MemoryStore.open(file).steps) == {other, *traced}
