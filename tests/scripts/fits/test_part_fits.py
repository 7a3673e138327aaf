"""Fits with a part left out are made once, for each part that a program leaves out."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from scripts.fits.gpu_fits import NOTHING, GpuFits, LeftOut
from tests.scripts.fits.test_gpu_fits import RUNS, fits_of


def test_folds_devices_and_sources_of_both_frameworks_are_left_out(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes take the steps of all rows, a minute: without them."""
    monkeypatch.setattr(program, "MADE", ("family", "device", "source"))
    wanted = program.left_out_of_parts()
    assert NOTHING in wanted
    assert {left_out.fold for left_out in wanted} == {None, *range(10)}
    devices = {left_out.device for left_out in wanted}
    assert devices >= {"H100", "K80", "2080Ti", ""}  # the second is of TensorFlow's runs alone
    assert {left_out.source for left_out in wanted} > {"", "timm"}
    assert len(set(wanted)) == len(wanted)


def test_only_missing_fits_are_made_and_those_of_other_rows_go(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    kept = tmp_path / "parts"
    wanted = [NOTHING, LeftOut(device="T4"), LeftOut(fold=1)]

    def fits(*, training: bool) -> GpuFits:
        return fits_of(RUNS, tmp_path, cache=kept)

    monkeypatch.setattr(program, "FITS", kept)
    monkeypatch.setattr(program, "fits", fits)
    monkeypatch.setattr(program, "left_out_of_parts", lambda: wanted)
    monkeypatch.setattr(sys, "argv", ["part_fits", "--processes", "1"])
    program.main()
    files = sorted(kept.iterdir())
    assert {file.name.partition("-")[0] for file in files} == {"T4", "fold", "nothing"}
    content = {file: file.read_bytes() for file in files}
    first = files[0]
    first.unlink()
    (kept / "nothing-0123456789.json.xz").write_bytes(b"of other rows")
    untouched = {file: file.stat().st_mtime_ns for file in files[1:]}
    program.main()
    assert {file: file.read_bytes() for file in sorted(kept.iterdir())} == content
    assert {file: file.stat().st_mtime_ns for file in files[1:]} == untouched
