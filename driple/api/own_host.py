"""`measure --calibrate`: what a few known workloads tell of this machine.

setting -> its shipped inspector;  runs of a campaign, inspector -> HostTuning
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from driple.errors import CheckpointError, ConfigError, MeasureError, PredictionError
from driple.graph.opgraph import OpGraph

if TYPE_CHECKING:
    from driple.cluster.setting import Setting
    from driple.inspector.checkpoint import Checkpoint
    from driple.inspector.host import HostTuning
    from driple.jobs import Workload
    from driple.measure.testbed.campaign import CampaignRecord

__all__ = ["HOST_FILE", "host_of_campaign", "known_inspector", "known_workloads"]

HOST_FILE = "host.json"
_KNOWN = 6
_NAME = "host"


def known_workloads() -> Sequence[Workload]:
    """Six of the measured list, of different families."""
    from driple.jobs import cpu_workloads

    every = cpu_workloads()
    return every[:: len(every) // _KNOWN][:_KNOWN]


def known_inspector(setting: Setting) -> Checkpoint:
    """The inspector that learned from measured labels of a setting.

    Raises:
        ConfigError: there is none.
    """
    from driple.inspector.checkpoint import load_checkpoint
    from driple.inspector.checkpoint_places import checkpoint_path

    try:
        checkpoint = load_checkpoint(checkpoint_path(setting, "default"))
    except CheckpointError as error:
        raise ConfigError(f"--calibrate needs an inspector of the setting: {error}") from error
    if checkpoint.provenance != "measured":
        raise ConfigError(
            f"--calibrate is for measured settings, and the labels of {setting.name} are "
            f"{checkpoint.provenance}; give a CPU setting, such as CPU-P1w2"
        )
    return checkpoint


def host_of_campaign(folder: Path, about: CampaignRecord, setting: Setting) -> HostTuning:
    """What the measured runs of a campaign tell of this machine.

    Raises:
        ConfigError: fewer than four workloads were measured, or there is no such inspector.
        MeasureError: runs without labels.
    """
    from driple.inspector.host import host_tuning
    from driple.inspector.predict import predict
    from driple.measure.testbed.collect import collect_dataset

    checkpoint = known_inspector(setting)
    data = collect_dataset(folder, name=_NAME, about=about)
    names, predicted, measured = [], [], []
    for example in data.examples:
        if not isinstance(example.graph, OpGraph) or example.iteration_time_s is None:
            raise MeasureError(f"{example.workload} of {folder} has no graph or no step time")
        try:
            predicted.append(predict(example.graph, checkpoint))
        except PredictionError as error:
            raise ConfigError(
                f"the inspector of {setting.name} knows no step time of {example.workload}; "
                "measure other workloads"
            ) from error
        names.append(example.workload)
        measured.append(example.iteration_time_s)
    return host_tuning(setting.name, names, predicted, np.array(measured))
