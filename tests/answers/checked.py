"""Checked runs made up by hand."""

from __future__ import annotations

from math import log1p

from driple.answers.checked_runs import CheckedRun
from driple.answers.op_mix import MIX_KINDS
from driple.runs.measured_run import MeasuredRun

__all__ = ["CONV", "checked_run", "mix_of"]


def mix_of(**shares: float) -> tuple[float, ...]:
    """A mix with these shares."""
    return tuple(shares.get(name, 0.0) for name in MIX_KINDS)


CONV = mix_of(dense_conv=0.7, norm=0.2, elementwise=0.1)


def checked_run(
    kind: str, device: str, error_pct: float, *, held_out: str = "model", workers: int = 1,
    servers: int = 0, several: bool = False, link: str = "", half: bool = False,
    family: str = "resnet", mix: tuple[float, ...] = CONV, task: str = "train",
    distance: float = 0.0, end: str = "", framework: str = "tensorflow", weight: float = 1.0,
    compiled: bool = False,
) -> CheckedRun:  # fmt: skip
    """A run that is this far off."""
    return CheckedRun(
        run=MeasuredRun(
            framework=framework, family=family, task=task, weight=weight, compiled=compiled
        ),
        kind=kind, held_out=held_out, devices=(device,), num_devices=workers,
        num_servers=servers, several_machines=several, link=link, half=half,
        log_ratio=log1p(error_pct / 100), mix=mix, distance=distance, end=end,
    )  # fmt: skip
