"""Training configs of other tools, one file per tool: what they say of a job.

file -> read_training_config -> TrainingConfig
"""

from driple.jobs.training_config.config import (
    TrainingConfig,
    Undecided,
    undecided_remark,
    undecided_remarks,
)
from driple.jobs.training_config.read import FORMATS, read_training_config

__all__ = [
    "FORMATS",
    "TrainingConfig",
    "Undecided",
    "read_training_config",
    "undecided_remark",
    "undecided_remarks",
]
