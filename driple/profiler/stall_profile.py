"""A stall profile as stored in its folder: command, plan, and measurements of each launch.

profile.json, step2.r0.json ... -> Profile -> times, stalls, warnings
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from driple.codec import Json, from_json, to_dict
from driple.errors import MeasureError
from driple.estimate import Estimate
from driple.profiler.estimate import Stall, StallJson, Times, measured, stalls_of, warnings_of
from driple.profiler.profile_records import (
    FORMAT,
    LaunchRecord,
    PlanRecord,
    ProfiledHost,
    ProfileRecord,
    SeenGradients,
)
from driple.profiler.steps import STEPS
from driple.remarks import Remark, remark
from driple.storedfiles import read_json

__all__ = [
    "FORMAT",
    "ProfileJson",
    "StallProfile",
    "StepTimeJson",
    "disturbance",
    "read_profile",
]

# Cores that others may use before a warning is printed, and the name of each kind.
_MOST_CORES = {"other_cores": 0.3, "stolen_cores": 0.1}


class StepTimeJson(TypedDict):
    """Iteration time of a step of the profile, mean over its repetitions.

    Attributes:
        title: what runs in the step.
        epoch_s: null if the script's loader has no length.
    """

    title: str
    iteration_time_s: Estimate
    repeats: int
    epoch_s: Estimate | None


class ProfileJson(TypedDict):
    """A stall profile.

    Attributes:
        steps: by number.
        stalls: by name.
        left_out: why this machine cannot run a step.
        overhead_pct: upper bound on the profiler's own overhead, percent of a launch.
    """

    command: Sequence[str]
    plan: PlanRecord
    host: ProfiledHost
    steps: Mapping[int, StepTimeJson]
    stalls: Mapping[str, StallJson]
    left_out: Mapping[int, str]
    warnings: Sequence[Remark]
    overhead_pct: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StallProfile:
    """A stall profile, complete or partial.

    Attributes:
        folder: folder of the profile.
        about: command, plan and machine.
        launches: measurements of each launch, by step and repetition.
    """

    folder: Path
    about: ProfileRecord
    launches: dict[tuple[int, int], LaunchRecord]

    @property
    def left_out(self) -> Mapping[int, str]:
        """Reason for each step that this machine cannot run."""
        return self.about.left_out

    @property
    def times(self) -> Times:
        """Iteration times in seconds, by step and repetition."""
        times: dict[int, dict[int, float]] = {}
        for (step, repeat), launch in sorted(self.launches.items()):
            times.setdefault(step, {})[repeat] = launch.iteration_s
        return times

    @property
    def batches_per_epoch(self) -> int | None:
        """Iterations of an epoch with all devices; None if the script's loader has no length."""
        counts = [launch.batches_per_epoch for (step, _), launch in self.launches.items()
                 if step != 1]  # fmt: skip
        return next((count for count in counts if count is not None), None)

    @property
    def gradients(self) -> SeenGradients | None:
        """Bytes and ready time of each gradient, from the first launch of step 1."""
        gradients = [launch.gradients for (step, _), launch in sorted(self.launches.items())
                 if step == 1]  # fmt: skip
        return next((one for one in gradients if one is not None), None)

    def stalls(self) -> dict[str, Stall]:
        """The stalls whose steps were measured."""
        return stalls_of(self.times)

    def warnings(self) -> list[Remark]:
        """Warnings about the reliability of the figures."""
        remarks = warnings_of(self.stalls())
        for cores, most in _MOST_CORES.items():
            used = [(getattr(launch, cores), step) for (step, _), launch in self.launches.items()
                    if getattr(launch, cores) > most]  # fmt: skip
            if used:
                steps = tuple(sorted({step for _, step in used}))
                remarks.append(
                    remark("cores_of_others", cores=cores, most_cores=max(used)[0], steps=steps)
                )
        if any(step != 1 and not launch.wrapped for (step, _), launch in self.launches.items()):
            remarks.append(remark("no_data_parallelism"))
        versions = {launch.script for launch in self.launches.values()}
        if len(versions) > 1:
            remarks.append(remark("script_changed"))
        return remarks

    def overhead_pct(self) -> float:
        """Upper bound on the profiler's own overhead, percent of a launch."""
        return max((launch.overhead_pct for launch in self.launches.values()), default=0.0)

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple profile run --json` prints."""
        per_epoch = self.batches_per_epoch
        facts: ProfileJson = {
            "command": self.about.command,
            "plan": self.about.plan,
            "host": self.about.host,
            "steps": {
                step: {
                    "title": STEPS[step].title,
                    "iteration_time_s": measured(sum(values.values()) / len(values)),
                    "repeats": len(values),
                    "epoch_s": None
                    if per_epoch is None
                    else measured(per_epoch * sum(values.values()) / len(values)),
                }
                for step, values in self.times.items()
            },
            "stalls": {name: stall.to_dict(per_epoch) for name, stall in self.stalls().items()},
            "left_out": self.left_out,
            "warnings": self.warnings(),
            "overhead_pct": self.overhead_pct(),
        }
        return to_dict(facts, where="profile")


def disturbance(launch: LaunchRecord) -> float:
    """Cores that others used during a launch, over the limit; above 1 is disturbed."""
    return max(float(getattr(launch, cores)) / most for cores, most in _MOST_CORES.items())


def read_profile(folder: Path) -> StallProfile:
    """The profile of a folder.

    Raises:
        MeasureError: it holds none, or a damaged one.
    """
    try:
        about = read_json(folder / "profile.json")
        if not isinstance(about, dict):
            raise ValueError(f"profile.json holds {about!r:.80}, not an object")
        records = {}
        for file in folder.glob("step*.r*.json"):
            step, repeat = file.name.removeprefix("step").removesuffix(".json").split(".r")
            records[int(step), int(repeat)] = read_json(file)
    except (OSError, ValueError) as error:
        raise MeasureError(
            f"{folder} holds no stall profile ({error}); make one with driple profile run --output "
            f"{folder}"
        ) from error
    if about.get("format") != FORMAT:
        raise MeasureError(
            f"{folder} holds a stall profile of format {about.get('format')!r}, and this version "
            f"reads {FORMAT}; measure anew with driple profile run --output ANOTHER"
        )
    damaged = f"{folder} holds a damaged stall profile"
    advice = "measure anew with driple profile run --output ANOTHER"
    launches = {}
    for (number, time), launch in records.items():
        where = f"{damaged}: step {number}, repetition {time}"
        if number not in STEPS:
            raise MeasureError(f"{where}: there are steps 1 to 5; {advice}")
        launches[number, time] = from_json(
            LaunchRecord, launch, where=where, error=MeasureError, advice=advice
        )
    record = from_json(ProfileRecord, about, where=damaged, error=MeasureError, advice=advice)
    return StallProfile(folder=folder, about=record, launches=launches)
