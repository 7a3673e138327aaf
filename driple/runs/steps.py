"""The step of each row as a job that the simulator takes, from a store or made anew.

MeasuredRun --StepSource.prepared--> PreparedJob
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Protocol

from driple.cluster.setting import Setting
from driple.errors import DripleError
from driple.jobs.load import JobOptions, load_job
from driple.runs.measured_run import MeasuredRun
from driple.runs.users_table import COLUMNS
from driple.simulate.prepared_job import PreparedJob

__all__ = ["LoadedSteps", "StepSource"]

_OPTION = re.compile(r"--([a-z-]+)")
_KEPT = 32  # jobs that stay in memory; rows of one job follow each other


class StepSource(Protocol):
    """Where the steps of rows come from."""

    def lacks(self, row: MeasuredRun) -> str:
        """Why there is no step of a row; empty if there may be one."""

    def prepared(self, row: MeasuredRun) -> PreparedJob:
        """The step of one device.

        Raises:
            DripleError: there is none.
        """


class LoadedSteps:
    """Steps that are made anew, as `driple predict` makes them."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[object, ...], PreparedJob] = OrderedDict()

    def lacks(self, row: MeasuredRun) -> str:  # of the protocol
        """Whether a job can be made is known when it is made."""
        return ""

    def prepared(self, row: MeasuredRun) -> PreparedJob:
        """The step of a row's job with the row's options.

        Raises:
            ConfigError: no such job, an option that it does not have, or a package is missing;
                the message names the line and the column.
        """
        key = row.step_key
        if key not in self._made:
            setting = Setting.parse(row.setting)
            try:
                job = load_job(row.job, _options(row), setting=setting, forward=True)
                self._made[key] = PreparedJob.of_job(job)
            except DripleError as error:
                raise type(error)(
                    f"{row.named}, column {_column(error)}: {error} (options are columns of the "
                    "table)"
                ) from error
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return self._made[key]


def _options(row: MeasuredRun) -> JobOptions:
    """The options of a row's job.

    Raises:
        ConfigError: no job takes one of them.
    """
    return JobOptions(
        batch_size=row.batch_size,
        seq_len=row.seq_len,
        input_shape=row.input_shape,
        precision=row.precision or None,
        optimizer=row.optimizer or None,
        grad_accumulation=row.grad_accumulation if row.grad_accumulation > 1 else None,
        activation_checkpointing=row.activation_checkpointing or None,
        compiled=row.compiled,
        cuda_graphs=row.cuda_graphs,
        channels_last=row.channels_last,
        task=row.task,
        library=row.library or "torch2",
    )


def _column(error: DripleError) -> str:
    """The column that an error is about: of the option that it begins with, else of the job."""
    option = _OPTION.match(str(error))
    name = "" if option is None else option[1].replace("-", "_")
    return name if name in COLUMNS else "job"
