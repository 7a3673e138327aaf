"""Devices of CPU settings: the CPU quota of each worker.

    CPU     the plan's share (0.4 of a core)         CPU25   a quarter of a core

A heterogeneous cluster alternates between two devices, as the paper's clusters have two GPUs:
`CPU-P1w2/he-200M` is the `CPU` worker of a cluster whose other worker is a `CPU25`, and vice versa.
"""

from __future__ import annotations

import re

from driple.cluster.setting import Setting
from driple.errors import MeasureError

__all__ = ["labelled_workers", "worker_names", "worker_shares"]

_DEVICE = re.compile(r"CPU(\d{1,3})?")
_PARTNERS = {"CPU": "CPU25", "CPU25": "CPU"}


def worker_names(setting: Setting) -> tuple[str, ...]:
    """Roles of the workers: `w0`, `w1`, ..."""
    return tuple(f"w{i}" for i in range(setting.num_workers))


def labelled_workers(setting: Setting) -> tuple[str, ...]:
    """The workers with the setting's own device, which the labels describe."""
    return worker_names(setting)[:: 1 if setting.homogeneous else 2]


def worker_shares(setting: Setting, share: float) -> dict[str, float]:
    """Cores that each worker may use.

    Args:
        setting: a CPU setting.
        share: cores of the device `CPU`.

    Raises:
        MeasureError: a device without a quota, or without a partner for a heterogeneous cluster.
    """
    own = _share(setting, setting.device, share)
    if setting.homogeneous:
        return dict.fromkeys(worker_names(setting), own)
    if setting.device not in _PARTNERS or setting.num_workers < 2:
        raise MeasureError(
            f"{setting.name} mixes two devices over two or more workers; devices that can be "
            f"mixed are {', '.join(_PARTNERS)}"
        )
    other = _share(setting, _PARTNERS[setting.device], share)
    mine = labelled_workers(setting)
    return {name: own if name in mine else other for name in worker_names(setting)}


def _share(setting: Setting, device: str, share: float) -> float:
    match = _DEVICE.fullmatch(device)
    if match is None or match[1] == "0":
        raise MeasureError(
            f"this machine can measure CPU settings with a parameter server and a rate, such "
            f"as CPU-P1w2/ho-200M or CPU25-P1w2/ho-200M; got {setting.name}"
        )
    return share if match[1] is None else int(match[1]) / 100
