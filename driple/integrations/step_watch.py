"""What both callbacks share: steps that are timed, the answer beside them, and a table of runs.

    StepWatch(job, setting)   begin() -> Answer;  step_done(), ... -> numbers(), line();  end()

A step lasts from the end of the one before to its own end, as a user waits for it. Its time is the
median after the warm-up, so that a pause for a checkpoint does not count.
"""

from __future__ import annotations

import csv
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from driple.errors import ConfigError
from driple.jobs.load import JobOptions
from driple.quantities import duration, size, timed

if TYPE_CHECKING:
    from driple.api.predicting import Answer
    from driple.memory.memory_estimate import Bytes

__all__ = ["TABLE_COLUMNS", "WARM_UP_STEPS", "StepWatch", "with_options"]

WARM_UP_STEPS = 5
"""Steps that are not timed: allocators fill, kernels are picked."""
TABLE_COLUMNS = (
    "job", "setting", "seconds", "batch_size", "seq_len", "input", "precision", "optimizer",
    "grad_accumulation", "activation_checkpointing", "compiled", "cuda_graphs", "layout", "library",
)  # fmt: skip
"""Of the table of runs, as `driple transfer --from gpu` reads it."""
_GIB = 2.0**30


class StepWatch:
    """Steps of one training, beside what was predicted for them.

    Args:
        job: JOB as on the command line, such as `hf:PATH`; it names the run in the table.
        setting: where it runs, such as `1xH100`.
        options: batch size and the like.
        table: CSV file that the run is appended to; None for none.
        clock: seconds that only grow.

    Raises:
        ConfigError: a table that has other columns.
    """

    def __init__(
        self,
        job: str,
        setting: str,
        *,
        options: JobOptions | None = None,
        table: Path | str | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.job, self.setting = job, setting
        self.options = options or JobOptions()
        self.table = None if table is None else Path(table)
        self.answer: Answer | None = None
        self.memory_bytes: float | None = None
        self._clock = clock
        self._last: float | None = None
        self._steps_left = WARM_UP_STEPS
        self._times: list[float] = []
        _check_table(self.table)

    def begin(self) -> Answer:
        """Predict, before the first step.

        Raises:
            DripleError: the job, the setting or an option is none.
        """
        from driple.api.predicting import predict

        (self.answer,) = predict(self.job, self.setting, options=self.options).answers
        self._last = None
        return self.answer

    def step_done(self) -> None:
        """One update of the parameters ended now."""
        now = self._clock()
        if self._last is not None:
            if self._steps_left > 0:
                self._steps_left -= 1
            else:
                self._times.append(now - self._last)
        self._last = now

    def pause(self) -> None:
        """Something that is no step follows, such as an evaluation: the next step is not timed."""
        self._last = None

    @property
    def step_s(self) -> float | None:
        """Median time of a step, seconds; None before one was timed."""
        return statistics.median(self._times) if self._times else None

    @property
    def num_steps(self) -> int:
        """Steps that were timed."""
        return len(self._times)

    def numbers(self) -> dict[str, float]:
        """Predicted and measured, by the names that they are logged by; empty before a step."""
        step_s, answer = self.step_s, self.answer
        if step_s is None or answer is None:
            return {}
        predicted_s = answer.iteration_time_s.value
        values: dict[str, float | None] = {
            "driple/step_s_predicted": predicted_s,
            "driple/step_s_measured": step_s,
            "driple/step_measured_over_predicted": step_s / predicted_s if predicted_s else None,
        }
        allocated = self._predicted_bytes()
        values["driple/memory_gib_predicted"] = (
            None if allocated is None else allocated.value / _GIB
        )
        values["driple/memory_gib_measured"] = (
            None if self.memory_bytes is None else self.memory_bytes / _GIB
        )
        return {name: value for name, value in values.items() if value is not None}

    def line(self) -> str:
        """Predicted beside measured, for people."""
        step_s, answer = self.step_s, self.answer
        if step_s is None or answer is None:
            return f"driple: fewer than {WARM_UP_STEPS + 2} steps, so none was timed"
        time_s, parts = answer.iteration_time_s, []
        ratio = step_s / time_s.value if time_s.value else float("nan")
        parts.append(
            f"step {duration(step_s)} measured ({self.num_steps} steps), {timed(time_s)} "
            f"predicted on {answer.setting.name}, ratio {ratio:.2f}"
        )
        allocated = self._predicted_bytes()
        if self.memory_bytes is not None and allocated is not None:
            parts.append(
                f"memory {size(self.memory_bytes)} allocated, {size(allocated.value)} predicted"
            )
        return "driple: " + "; ".join(parts)

    def end(self) -> None:
        """Print the line, and append the run; a table that cannot be written is a warning."""
        print(self.line())
        try:
            self.append()
        except OSError as error:
            warnings.warn(f"the run was not added to {self.table}: {error}", stacklevel=3)

    def append(self) -> bool:
        """Add the run to the table; whether there was something to add."""
        step_s, answer = self.step_s, self.answer
        if self.table is None or step_s is None or answer is None:
            return False
        job = answer.job
        shape = job.input_shape
        row = {
            "job": self.job,
            "setting": answer.setting.name,
            "seconds": f"{step_s:.6g}",
            "batch_size": job.batch_size or "",
            "seq_len": job.seq_len or "",
            "input": "" if shape is None else "x".join(str(side) for side in shape),
            "precision": job.precision,
            "optimizer": job.optimizer,
            "grad_accumulation": job.grad_accumulation,
            "activation_checkpointing": job.activation_checkpointing,
            "compiled": int(job.compiled),
            "cuda_graphs": int(job.cuda_graphs),
            "layout": "channels_last" if job.stated("channels_last") else "",
            "library": job.library or "",
        }
        is_new = not self.table.exists() or self.table.stat().st_size == 0
        with self.table.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, TABLE_COLUMNS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        return True

    def _predicted_bytes(self) -> Bytes | None:
        memory = None if self.answer is None else self.answer.memory
        return None if memory is None or memory.estimate is None else memory.estimate.allocated


def with_options(options: JobOptions, **read: object) -> JobOptions:
    """The options, with what a trainer states where the user gave nothing.

    Args:
        options: of the user.
        read: of the trainer, by the names of `JobOptions`; None where it states nothing.
    """
    usual = JobOptions()
    open_fields = {
        name: value
        for name, value in read.items()
        if value is not None and getattr(options, name) == getattr(usual, name)
    }
    return replace(options, **open_fields)  # type: ignore[arg-type]  # names of its fields


def _check_table(table: Path | None) -> None:
    if table is None or not table.exists() or table.stat().st_size == 0:
        return
    with table.open(newline="", encoding="utf-8") as file:
        columns = next(csv.reader(file), [])
    if tuple(columns) != TABLE_COLUMNS:
        raise ConfigError(
            f"table {table} has the columns {','.join(columns)[:80]}, and a callback appends rows "
            f"of {','.join(TABLE_COLUMNS)}; give another file"
        )
