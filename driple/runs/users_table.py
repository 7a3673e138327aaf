"""A user's own table of measured runs.

FILE.csv --read_runs--> MeasuredRun, MeasuredRun, ...

Needed are the columns `job`, `setting` and `seconds`; the others of `COLUMNS` may be there. Further
ones are not read, which a remark says; one that is called almost as one of these is refused. A job
is named as on the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from driple.errors import CatalogError, ConfigError, SettingError
from driple.remarks import Remark
from driple.runs.measured_run import (
    TASKS,
    MeasuredRun,
    family_of_job,
    full_setting_name,
    unique_ids,
)
from driple.runs.tables import USERS, Line, ignored_columns, read_table
from driple.simulate.gpu_kernels import LIBRARIES

__all__ = ["COLUMNS", "read_runs"]

COLUMNS = (
    "id", "job", "setting", "seconds", "family", "source", "mode", "framework", "library",
    "precision", "compiled", "cuda_graphs", "domain", "layout", "batch_size", "seq_len", "input",
    "optimizer",
    "grad_accumulation", "activation_checkpointing", "weight",
)  # fmt: skip
_PRECISIONS = (
    "fp32", "tf32", "fp16", "bf16", "amp-fp16", "amp-bf16", "fp8", "amp-fp8", "half", "",
)  # fmt: skip


def read_runs(file: Path, report: Callable[[Remark], None] = lambda _: None) -> list[MeasuredRun]:
    """The runs of a table.

    Args:
        file: of the table.
        report: called with a remark on columns that are not read, if there are any.

    Raises:
        ConfigError: the table, or a cell of it, is not as described, or a column is called almost
            as one that is read; the message names the line and the column.
    """
    lines = read_table(file, ("job", "setting", "step_s"), USERS)
    ignored = ignored_columns(lines, COLUMNS, ("device",))
    if ignored is not None:
        report(ignored)
    return unique_ids([_run(line) for line in lines], str(file))


def _run(line: Line) -> MeasuredRun:
    job = line.text("job")
    if not job:
        raise line.error("job", "the cell is empty; name a job as on the command line")
    try:
        setting = full_setting_name(line.text("setting"))
    except (SettingError, CatalogError, ConfigError) as error:
        raise line.error("setting", str(error)) from error
    run = MeasuredRun(
        id=line.text("id", str(line.number)),
        job=job,
        setting=setting,
        step_s=line.number_of("step_s"),
        family=line.text("family", family_of_job(job)),
        source=line.text("source", "given"),
        task=line.choice("task", TASKS, "train"),
        framework=line.text("framework", "pytorch"),
        library=line.choice("library", ("", *LIBRARIES), ""),
        domain=line.text("domain"),
        precision=line.choice("precision", _PRECISIONS, ""),
        compiled=line.is_set("compiled") or line.is_set("cuda_graphs"),
        cuda_graphs=line.is_set("cuda_graphs"),
        channels_last=line.choice("channels_last", ("", "nchw", "channels_last"), "")
        == "channels_last",
        batch_size=line.whole("batch_size"),
        seq_len=line.whole("seq_len"),
        input_shape=_shape(line),
        optimizer=line.text("optimizer"),
        grad_accumulation=line.whole("grad_accumulation") or 1,
        activation_checkpointing=line.text("activation_checkpointing"),
        weight=line.number_of("weight", 1.0),
        where=f"{line.where} ({line.text('id')})" if line.text("id") else line.where,
    )
    given = line.text("device")
    if given and given != run.device:
        stated = f"the setting {line.text('setting')} has a {run.device}"
        raise line.error("device", f"is {given[:40]!r}, {stated}")
    return run


def _shape(line: Line) -> tuple[int, ...] | None:
    text = line.text("input_shape")
    if not text:
        return None
    try:
        shape = tuple(int(side) for side in text.replace("x", ",").split(","))
    except ValueError:
        shape = (0,)
    if any(side < 1 for side in shape):
        problem = f"needs a shape of one sample such as 3,224,224, got {text[:40]}"
        raise line.error("input_shape", problem)
    return shape
