"""The wheel has all of the package, the shipped checkpoints, and nothing else."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Files that a wheel of this checkout installs, but for its own facts."""
    folder = tmp_path_factory.mktemp("wheel")
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        return {name for name in packed.namelist() if ".dist-info/" not in name}


def test_a_wheel_has_what_git_tracks_of_the_package(installed: set[str]) -> None:
    """No module, table or checkpoint is left out, and no file of a developer comes in."""
    command = ["git", "ls-files", "-z", "driple", "checkpoints"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    tracked = {
        name if name.startswith("driple/") else f"driple/{name}"
        for name in listed.stdout.split("\0")
        if name and (ROOT / name).is_file()
    }
    assert installed == tracked


def test_a_wheel_is_typed_and_has_checkpoints(installed: set[str]) -> None:
    assert "driple/py.typed" in installed
    assert "driple/checkpoints/V100-P1w2_ho-PCIe/default.safetensors" in installed
