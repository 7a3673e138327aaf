"""The question `transfer --from gpu`: the simulator tuned to one device by a user's own runs.

table of runs, setting -> TuningResult (factors, errors), written as a row of a catalogue file
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from driple.api.results import Cell, Result
from driple.catalog.fields import EARLIER_TRAINING, TUNED
from driple.catalog.machine_file import MachineFile, machine_text
from driple.catalog.rows import Row, Value
from driple.codec import Json, to_dict
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.api.json_types.validate import TunedStepJson, TuningJson
    from driple.catalog import Device
    from driple.cluster.setting import Setting
    from driple.runs.measured_run import MeasuredRun
    from driple.runs.tuning import FloatArray, Tuning

__all__ = ["TuningResult", "tune_device", "write_tuning"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class TuningResult(Result):
    """A device as a user's own runs have it.

    Attributes:
        device: its name in the catalogue.
        table: file of the runs.
        runs: that it was tuned to.
        tuning: factors and errors.
        start: the device that the runs were compared with: untuned, or as the machine file has it.
        machine: measured before; its links and all else stay.
        remarks: which rows of the table were left aside, and why.
    """

    device: str
    table: str
    runs: tuple[MeasuredRun, ...]
    tuning: Tuning
    start: Device
    machine: MachineFile | None = None
    remarks: tuple[Remark, ...] = ()

    @property
    def factors(self) -> dict[str, float]:
        """Factors on what is assumed without any: of the runs, on those of the machine file."""
        before = {name: float(self.start.find(f"tuned_{name}") or 1.0) for name in TUNED}
        return {name: self.tuning.factors[name] * before[name] for name in TUNED}

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple transfer --from gpu --json` prints."""
        from driple.runs.tuning import errors_pct

        before = errors_pct(self.tuning.before)
        tuned: TuningJson = {
            "question": "tune",
            "device": self.device,
            "dataset": self.table,
            "runs": len(self.runs),
            "factors": self.factors,
            "median_pct": self.tuning.median_pct,
            "p90_pct": self.tuning.p90_pct,
            "before_median_pct": _quantile(before, 0.5),
            "before_p90_pct": _quantile(before, 0.9),
            "helps": self.tuning.helps,
            "host_runs": self.tuning.host_runs,
            "steps": self._steps(),
        }
        return to_dict(tuned)

    def rows(self) -> list[dict[str, Cell]]:
        """One row per run: measured, predicted before, and predicted by the other runs."""
        return [cast("dict[str, Cell]", step) for step in self._steps()]

    def _steps(self) -> list[TunedStepJson]:
        return [
            {
                "run": row.id,
                "job": row.job,
                "measured_s": row.step_s,
                "before_s": row.step_s * before,
                "left_out_s": row.step_s * left_out,
            }
            for row, before, left_out in zip(
                self.runs,
                self.tuning.before.tolist(),
                self.tuning.left_out.tolist(),
                strict=True,
            )
        ]


def tune_device(
    table: Path,
    setting: Setting,
    *,
    machine: MachineFile | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> TuningResult:
    """Tune what the simulator knows of a setting's device to measured runs on it.

    Args:
        table: CSV with the columns job, setting and seconds, and others that `driple validate
            --rows` takes; remarks name columns that are not read.
        setting: whose devices it is for; runs on one of them count.
        machine: of `driple measure --machine`, from whose rates the runs tune on.
        progress: called with each step of the work.

    Raises:
        ConfigError: the table is not as described, or has too few runs on one such device.
        DripleError: a row's job cannot be made.
    """
    from driple.runs.steps import LoadedSteps
    from driple.runs.tuning import LEAST_RUNS, tune, tuned_step
    from driple.runs.users_table import read_runs
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.own_machine import measured_device, with_machine

    if not setting.homogeneous:
        raise ConfigError(
            f"{setting.name} has unlike devices; tune to one kind at a time, such as --to "
            f"1x{setting.device}"
        )
    device = setting.device
    remarks: list[Remark] = []
    rows = read_runs(table, remarks.append)
    own = [row for row in rows if row.device == device]
    single = [row for row in own if row.num_devices == 1]
    if len(own) < len(rows):
        remarks.append(
            remark("rows_of_other_devices", num_rows=len(rows) - len(own), num_all=len(rows))
        )
    if len(single) < len(own):
        remarks.append(remark("rows_of_several_devices", num_rows=len(own) - len(single)))
    if len(single) < LEAST_RUNS:
        raise ConfigError(
            f"{table}: {len(single)} of {len(rows)} rows are of one {device}; tuning needs "
            f"{LEAST_RUNS} or more with the setting 1x{device}"
        )
    start = _untuned(setting.worker)
    if machine is not None:
        with_machine(setting, machine)  # refuses one of another GPU
        start = measured_device(start, machine)
    steps, calibrated = LoadedSteps(), shipped_calibration().device(start)
    rows_and_steps = []
    for row in sorted(single, key=lambda one: repr(one.step_key)):
        progress(row.job)
        job = steps.prepared(row)
        step = tuned_step(job, calibrated, name=row.named, group=row.job, seconds=row.step_s)
        rows_and_steps.append((row, step))
    tuning = tune([step for _, step in rows_and_steps], progress)
    return TuningResult(
        device=device,
        table=str(table),
        runs=tuple(row for row, _ in rows_and_steps),
        tuning=tuning,
        start=start,
        machine=machine,
        remarks=tuple(remarks),
    )


def write_tuning(result: TuningResult, file: Path) -> None:
    """Write the row of the device, for `--catalog` or `--machine`.

    With a machine file, all else of it stays, so that the new file takes its place.

    Raises:
        ConfigError: the file cannot be written.
    """
    tuning, today = result.tuning, datetime.datetime.now(tz=datetime.UTC).date()
    before = result.machine or MachineFile(file=str(file))
    measured = [row for row in before.rows if row.name == result.device]
    values: dict[str, Value] = dict(measured[0].values) if measured else {}
    for name in ("tuned_kernels", *EARLIER_TRAINING):
        values.pop(name, None)
    values |= {
        **{f"tuned_{name}": factor for name, factor in result.factors.items()},
        "tuned_host_runs": tuning.host_runs,
        "tuned_runs": len(result.runs),
        "tuned_median_pct": tuning.median_pct,
        "tuned_p90_pct": tuning.p90_pct,
        "source": f"tuned to {len(result.runs)} runs of {Path(result.table).name}",
        "date": today,
    }
    row = Row(name=result.device, values=values, file=str(file), own=True)
    others = tuple(one for one in before.rows if one.name != result.device)
    text = machine_text(
        replace(before, rows=(row, *others)),
        [
            f"What {result.device} reaches in {len(result.runs)} runs: factors on what is",
            "assumed without them. host: how many times as long the host takes.",
        ],
    )
    atomic_write(file, text.encode(), error=ConfigError)


def _untuned(device: Device) -> Device:
    """The device without factors of an earlier tuning, which the new ones replace."""
    kept = {key: value for key, value in device.facts.items() if not key.startswith("tuned_")}
    return replace(device, facts=kept)


def _quantile(values: FloatArray, share: float) -> float:
    return float(np.quantile(values, share))
