"""State the simulator's errors anew in what was made with it: data sets and inspectors.

    python -m scripts.settings.restate_errors

For when a calibration's errors were taken anew (scripts/fits/calibration_gpu.py,
scripts/fits/calibration_cpu.py) and its numbers stayed: then no label
changes, and nothing has to be simulated or trained again. A data set that was made with other
numbers is refused; simulate it (scripts/settings/simulate.py).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.codec import to_dict, to_json
from driple.dataset.store import ABOUT_FILE
from driple.errors import DripleError
from driple.files import atomic_write
from driple.inspector.checkpoint import load_checkpoint, save_checkpoint
from driple.simulate.calibration import shipped_calibration
from driple.trace.provenance import TimeError
from scripts.settings.shipped import ROOT, SIMULATED_CPU, simulated_folders


def restate(folder: Path) -> TimeError | None:
    """Write the error of today's calibration into a data set, and give it."""
    file = folder / ABOUT_FILE
    about = json.loads(file.read_bytes())
    setting = Setting.parse(about["setting"])
    calibration = shipped_calibration(setting)
    if about["calibration"] != to_json(calibration.about):
        raise SystemExit(
            f"{file}: made with a calibration of {about['calibration'].get('fitted')}, "
            "which is not today's; simulate it again"
        )
    error = calibration.error_of(setting, topology_of(setting).link)
    stored = None if error is None else to_dict(error)
    if about.get("iteration_time_error") != stored:
        about["iteration_time_error"] = stored or {}
        text = json.dumps(about, indent=2) + "\n"
        atomic_write(file, text.encode(), error=DripleError)
        print(f"{file.relative_to(ROOT)}: {error}")
    return error


def main() -> None:
    """Data sets first, then the inspectors that learned from them."""
    for folder in sorted(SIMULATED_CPU.glob("CPU*")):
        restate(folder)
    for setting, folder in simulated_folders().items():
        error = restate(folder)
        name = Setting.parse(setting).file_name
        for file in sorted((ROOT / "checkpoints" / name).glob("*.safetensors")):
            checkpoint = load_checkpoint(file)
            if checkpoint.provenance == "simulated" and checkpoint.trained_on.label_error != error:
                trained_on = replace(checkpoint.trained_on, label_error=error)
                save_checkpoint(replace(checkpoint, trained_on=trained_on), file)
                print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
