"""Provenance of labels: the records that data sets and checkpoints keep.

    campaign.json, simulator, importer  ->  Provenance  <->  dataset.json  (`driple.codec`)

Most fields belong to one kind of labels: measured, simulated or imported. The file omits unknown
fields. Unrecognised keys are kept in `others`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from driple.codec import Json, json_field

__all__ = ["Dates", "MeasuringHost", "Provenance", "Repeatability", "RunPlan", "TimeError"]

_OPTIONAL = json_field(optional=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """Settings of a measured run.

    Attributes:
        share: cores that each worker of the device `CPU` may use.
        server_share: cores that each parameter server may use.
        warmup: iterations before the measured ones.
        min_iterations: minimum number of measured iterations.
        max_iterations: maximum number of measured iterations.
        seconds: target length of the run, seconds.
        max_seconds: maximum length of the run, seconds; never below 10 iterations.
        sample_period_s: seconds between two samples.
    """

    share: float = 0.4
    server_share: float = 0.4
    warmup: int = 4
    min_iterations: int = 30
    max_iterations: int = 100
    seconds: float = 9.0
    max_seconds: float = 16.0
    sample_period_s: float = 0.005

    def iterations(self, iteration_s: float) -> int:
        """Number of iterations to measure when one takes this long."""
        wanted = max(self.min_iterations, math.ceil(self.seconds / iteration_s))
        affordable = max(10, int(self.max_seconds / iteration_s))
        return min(wanted, self.max_iterations, affordable)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuringHost:
    """The machine that measured; no names, no paths.

    Attributes:
        cpu: model of the CPU.
        cores: number of logical cores; None if the system does not report it.
        memory_gib: main memory, GiB.
        kernel: release of the kernel.
        memory_write_bytes_per_s: write bandwidth of one core, bytes/s.
    """

    cpu: str = field(default="", metadata=_OPTIONAL)
    cores: int | None = field(default=None, metadata=_OPTIONAL)
    memory_gib: float | None = field(default=None, metadata=_OPTIONAL)
    kernel: str = field(default="", metadata=_OPTIONAL)
    memory_write_bytes_per_s: int | None = field(default=None, metadata=_OPTIONAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Dates:
    """Days of the first and of the last measured run, ISO format."""

    first: str
    last: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeatability:
    """Run-to-run variation of the labels of one workload.

    Attributes:
        workloads: how many ran more than once; without any, the other fields are empty.
        median_cv: coefficient of variation by target, median over the workloads.
        smape_pct: mean SMAPE between two runs, percent, by target and of `iteration_time`.
        smape_pct_by_workload: the same by workload, mean over the 12 targets.
    """

    workloads: int = 0
    median_cv: Mapping[str, float] = field(default_factory=dict, metadata=_OPTIONAL)
    smape_pct: Mapping[str, float] = field(default_factory=dict, metadata=_OPTIONAL)
    smape_pct_by_workload: Mapping[str, float] = field(default_factory=dict, metadata=_OPTIONAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeError:
    """Error of simulated iteration times against measured or published ones.

    Attributes:
        rows: number of runs compared.
        median_pct: median of the errors, percent.
        p90_pct: their 90th percentile, percent.
        devices: devices of the runs; empty for runs of one setting.
        new_device: whether the device in question was left out of the fit.
        one_device: whether the runs are of one device without an exchange.
        setting: the setting whose own runs these are; None otherwise.
    """

    rows: int
    median_pct: float
    p90_pct: float
    devices: tuple[str, ...] = field(default=(), metadata=_OPTIONAL)
    new_device: bool = field(default=False, metadata=_OPTIONAL)
    one_device: bool = field(default=False, metadata=_OPTIONAL)
    setting: str | None = field(default=None, metadata=_OPTIONAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """Provenance of the labels of a data set.

    Attributes:
        plan: how each workload was measured.
        host: the machine that measured.
        created: when the campaign began, ISO format; it is the campaign's name, too.
        versions: versions of what ran, by name.
        label_source: `measured`, `simulated` or `published`.
        licence: licence of the labels.
        collected: day on which the labels were made.
        label_grid_s: sampling period of the traces that were labelled.
        steps: simulated steps of each worker.
        seed: random seed of the simulated differences between steps.
        iteration_time_error: error of the simulator on such clusters.
        calibration: sources and date of the simulator's calibration.
        source: what was imported.
        file: name of the imported file.
        note: caveats of imported labels.
        num_workloads: workloads of one campaign among several.
        num_runs: runs behind the labels.
        measured: dates of the first and the last run.
        repeatability: repeatability of labels from run to run.
        origins: the campaigns, if there are several.
        others: unrecognised keys.
    """

    plan: RunPlan | None = field(default=None, metadata=_OPTIONAL)
    host: MeasuringHost | None = field(default=None, metadata=_OPTIONAL)
    created: str | None = field(default=None, metadata=_OPTIONAL)
    versions: Mapping[str, str] | None = field(default=None, metadata=_OPTIONAL)
    label_source: str | None = field(default=None, metadata=_OPTIONAL)
    licence: str | None = field(default=None, metadata=_OPTIONAL)
    collected: str | None = field(default=None, metadata=_OPTIONAL)
    label_grid_s: float | None = field(default=None, metadata=_OPTIONAL)
    steps: int | None = field(default=None, metadata=_OPTIONAL)
    seed: int | None = field(default=None, metadata=_OPTIONAL)
    iteration_time_error: TimeError | None = field(default=None, metadata=_OPTIONAL)
    calibration: Mapping[str, Json] | None = field(default=None, metadata=_OPTIONAL)
    source: str | None = field(default=None, metadata=_OPTIONAL)
    file: str | None = field(default=None, metadata=_OPTIONAL)
    note: str | None = field(default=None, metadata=_OPTIONAL)
    num_workloads: int | None = field(default=None, metadata=_OPTIONAL)
    num_runs: int | None = field(default=None, metadata=_OPTIONAL)
    measured: Dates | None = field(default=None, metadata=_OPTIONAL)
    repeatability: Repeatability | None = field(default=None, metadata=_OPTIONAL)
    origins: tuple[Provenance, ...] = field(default=(), metadata=_OPTIONAL)
    others: Mapping[str, Json] = field(default_factory=dict, metadata=json_field(rest=True))
