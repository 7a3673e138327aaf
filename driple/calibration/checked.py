"""Predictions of held-out runs -> the checked runs whose errors answers state.

HeldOutPrediction, ... of `validate` -> CheckedRun, ... of `driple.estimation.checked_runs`
"""

from __future__ import annotations

from collections.abc import Iterable

from driple.calibration.validate import HeldOutPrediction
from driple.estimation.checked_runs import CheckedRun

__all__ = ["checked_runs"]


def checked_runs(predictions: Iterable[HeldOutPrediction]) -> list[CheckedRun]:
    """The runs that are trained as a simulation trains, with the model or the device held out.

    Left out are runs whose ops a compiler fused, and rings that send gradients only when all are
    computed: no simulated answer is of those.
    """
    return [
        CheckedRun(
            kind=item.run.kind,
            held_out=item.held_out,
            devices=tuple(sorted(set(item.run.devices))),
            num_workers=len(item.run.devices),
            num_servers=item.run.num_servers,
            several_machines=len(item.run.devices) > item.run.gpus_per_machine,
            link=item.run.link,
            half=item.run.half,
            error_pct=round(100 * item.error, 2),
        )
        for item in predictions
        if item.held_out != "nothing"
        and not item.run.fused
        and (item.run.overlapped or item.run.kind != "ring")
    ]
