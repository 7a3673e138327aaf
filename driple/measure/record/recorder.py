"""Run a command, or watch a process, and record it until it ends.

    command -> process with marks on -> rows every period, a block every second -> folder

The job outlives its recorder: if that is killed, or its disk is full, the job goes on. SIGINT and
SIGTERM to the recorder reach the job; the record ends when the job does.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from driple.errors import ConfigError, MeasureError
from driple.files import wrap_os_error
from driple.locks import locked
from driple.marks import STEPS_HEAD_BYTES, STEPS_VARIABLE
from driple.measure.counters.machine import host_facts
from driple.measure.counters.memory import AllocationCounter, build_alloc_counter
from driple.measure.counters.sampler import sample_rows
from driple.measure.record.network import find_network
from driple.measure.record.signals import forwarding_to, handling
from driple.measure.record.sources import CPU, Sources, open_sources
from driple.measure.record.store import (
    RECORD_FORMAT,
    SAMPLES_FILE,
    STEPS_FOLDER,
    BlockWriter,
    RecordAbout,
    RecordEnd,
    write_about,
)

__all__ = ["LiveView", "RecordPlan", "record_command", "record_process"]

_LOCK_FILE = "recorder.lock"
_BLOCK_S = 1.0
# A job starts its processes in the first seconds; later ones are looked for less often.
_YOUNG_BLOCKS, _RARE_BLOCKS = 15, 5


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordPlan:
    """How a record is made.

    Attributes:
        folder: to write; without a record in it.
        period_s: seconds between two rows.
        interfaces: network interfaces to count; empty for those that carry traffic of the host.
        allocations: count allocated bytes of a command on machines without a GPU.
        version: of Driple.
    """

    folder: Path
    period_s: float = 0.01
    interfaces: tuple[str, ...] = ()
    allocations: bool = True
    version: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveView:
    """The last second of a record.

    Attributes:
        seconds: since the start.
        cores: cores in use.
        memory_bytes: resident memory.
        mb_per_s: sent and received, MB/s; None without counters.
        gpu_pct: mean utilisation of the GPUs, percent; None without any.
        steps: marked by the process with the most marks.
    """

    seconds: float
    cores: float
    memory_bytes: int
    mb_per_s: tuple[float, float] | None
    gpu_pct: float | None
    steps: int


Show = Callable[[LiveView], None]
Say = Callable[[str], None]


def record_command(
    command: Sequence[str], plan: RecordPlan, *, show: Show, say: Say, nvml: Any = None
) -> int:
    """Run a command and record it; its exit status, 128 and the signal if one ended it.

    Args:
        command: words of the command.
        plan: how to record.
        show: called every second.
        say: called with what a user should know, a sentence each.
        nvml: the module `pynvml`, or one of the same form.

    Raises:
        ConfigError: the command cannot be started.
        MeasureError: the folder cannot be written, or the disk is full; the command has ended.
    """
    with ExitStack() as stack:
        _prepare(plan.folder, stack)
        environment, host = dict(os.environ), host_facts(bandwidth=False)
        environment[STEPS_VARIABLE] = str((plan.folder / STEPS_FOLDER).absolute())
        if plan.allocations and not _has_gpu(nvml):
            counted = _count_allocations(stack, say)
            if counted:
                environment |= counted
                host = host_facts()
        if plan.interfaces:
            find_network(os.getpid(), plan.interfaces)  # before the command starts
        process = _start(command, environment)
        try:
            recording = _Recording(
                process.pid, tuple(command), plan, is_child=True, show=show, say=say, nvml=nvml
            )
        except MeasureError as error:
            say(f"nothing is recorded, the job goes on: {error}")
            process.wait()
            raise
        with forwarding_to(process):
            failure = recording.run(host, recording.sources.tree.is_over)
            status = process.wait()
        status = 128 - status if status < 0 else status
        recording.finish(status, failure)
    return status


def record_process(pid: int, plan: RecordPlan, *, show: Show, say: Say, nvml: Any = None) -> None:
    """Record a running process until it ends, or until SIGINT or SIGTERM.

    Args:
        pid: number of the process.
        plan: how to record.
        show: as for `record_command`.
        say: as for `record_command`.
        nvml: as for `record_command`.

    Raises:
        MeasureError: no such process, a folder that cannot be written, or a full disk.
    """
    with ExitStack() as stack:
        os.close(_handle(pid))
        _prepare(plan.folder, stack)
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        except OSError:
            words = []
        command = tuple(word.decode(errors="backslashreplace") for word in words)
        recording = _Recording(pid, command, plan, show=show, say=say, nvml=nvml)
        stopped: list[int] = []
        with handling(lambda number, _: stopped.append(number)):
            failure = recording.run(
                host_facts(bandwidth=False),
                lambda: bool(stopped) or recording.sources.tree.is_over(),
            )
        recording.finish(None, failure)


class _Recording:
    """One record while it is made."""

    def __init__(
        self,
        pid: int,
        command: tuple[str, ...],
        plan: RecordPlan,
        *,
        is_child: bool = False,
        show: Show,
        say: Say,
        nvml: Any,
    ) -> None:
        self._plan, self._command, self._show, self._say = plan, command, show, say
        self._begin_s, self._cpu_s = time.monotonic(), time.process_time()
        self.sources: Sources = open_sources(pid, plan.interfaces, nvml, is_child=is_child)
        self._names = list(self.sources.columns)
        self._numbers = {name: i for i, name in enumerate(self.sources.gauges)}
        self._num_blocks = 0
        self._wall_ahead_ns: int | None = None
        self._about: RecordAbout | None = None
        self._failure: MeasureError | None = None

    def run(self, host: Any, is_over: Callable[[], bool]) -> MeasureError | None:
        """Sample until the job is over; why sampling failed before, if it did."""
        sources, plan = self.sources, self._plan
        self._about = RecordAbout(
            format=RECORD_FORMAT,
            driple=plan.version,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            command=self._command,
            period_s=plan.period_s,
            columns=tuple(self._names),
            gauges=sources.gauges,
            missing=dict(sources.missing),
            log=tuple(sources.log),
            interfaces=sources.interfaces,
            cores=sources.cores,
            gpus=tuple(sources.gpus.names),
            boot_id=_boot_id(),
            clock_error_s=_clock_error_s(),
            host=host,
        )
        for sentence in sources.log:
            self._say(sentence)
        try:
            write_about(plan.folder, self._about)
            writer = BlockWriter(plan.folder, len(self._names))
        except MeasureError as error:
            return self._failed(error)

        def flush(rows: array[int]) -> None:
            if self._failure is not None:
                return
            try:
                self._add(writer, rows)
            except MeasureError as error:
                self._failed(error)

        sample_rows(
            list(sources.columns.values()),
            round(plan.period_s * 1e9),
            is_over=lambda: self._failure is not None or is_over(),
            flush=flush,
            rows_per_flush=max(1, round(_BLOCK_S / plan.period_s)),
        )
        try:
            writer.close()
        except MeasureError as error:
            self._failed(error)
        return self._failure

    def _failed(self, error: MeasureError) -> MeasureError:
        if self._failure is None:
            self._say(f"recording has stopped, the job goes on: {error}")
        self._failure = self._failure or error
        return self._failure

    def _add(self, writer: BlockWriter, rows: array[int]) -> None:
        """One block: readings of the gauges, both clocks, and the live line."""
        self._num_blocks += 1
        if self._num_blocks < _YOUNG_BLOCKS or self._num_blocks % _RARE_BLOCKS == 0:
            self.sources.tree.refresh()
        readings = self.sources.read_gauges()
        monotonic_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        ahead_ns = wall_ns - monotonic_ns
        if self._wall_ahead_ns is not None and abs(ahead_ns - self._wall_ahead_ns) > 100_000_000:
            jump_s = (ahead_ns - self._wall_ahead_ns) / 1e9
            self._remark(
                f"the wall clock jumped by {jump_s:+.3g} s; samples and steps use the monotonic "
                "clock and are not affected"
            )
        self._wall_ahead_ns = ahead_ns
        writer.add(
            rows,
            [(self._numbers[name], at_ns, value) for name, at_ns, value in readings],
            wall_ns=wall_ns,
            monotonic_ns=monotonic_ns,
        )
        width = len(self._names) + 2
        if len(rows) >= 2 * width:
            self._show(
                self._view(
                    rows[:width], rows[-width:], {name: value for name, _, value in readings}
                )
            )

    def _remark(self, sentence: str) -> None:
        self.sources.log.append(sentence)
        self._say(sentence)

    def _view(self, first: array[int], last: array[int], gauges: dict[str, int]) -> LiveView:
        seconds = (last[0] - first[0]) / 1e9
        rates = {name: (last[i + 2] - first[i + 2]) / seconds for i, name in enumerate(self._names)}
        busy = [value for name, value in gauges.items() if name.endswith(".device_util")]
        return LiveView(
            seconds=time.monotonic() - self._begin_s,
            cores=rates[CPU] / 1e9,
            memory_bytes=gauges["memory_bytes"],
            mb_per_s=(rates["net_tx"] / 1e6, rates["net_rx"] / 1e6) if "net_tx" in rates else None,
            gpu_pct=sum(busy) / len(busy) if busy else None,
            steps=_marked(self._plan.folder / STEPS_FOLDER),
        )

    def finish(self, status: int | None, failure: MeasureError | None) -> None:
        """Write how the record ended, and give all handles back.

        Raises:
            MeasureError: the failure, once the job has ended.
        """
        self.sources.close()
        if failure is not None:
            raise MeasureError(f"{failure} (the record is whole up to there)") from failure
        if self._about is None:
            return
        end = RecordEnd(
            status=status,
            seconds=time.monotonic() - self._begin_s,
            sampler_cpu_s=time.process_time() - self._cpu_s,
        )
        about = replace(
            self._about,
            missing={**self._about.missing, **self.sources.missing, **self.sources.gpus.missing},
            log=tuple(self.sources.log),
            end=end,
        )
        write_about(self._plan.folder, about)


def _prepare(folder: Path, stack: ExitStack) -> None:
    """Make the folder and lock it; refuse one with a record."""
    with wrap_os_error(MeasureError, f"write {folder}"):
        (folder / STEPS_FOLDER).mkdir(parents=True, exist_ok=True)
    held = f"-o {folder}: another recorder writes to it; give another folder"
    stack.enter_context(locked(folder / _LOCK_FILE, error=MeasureError, held=held))
    if (folder / SAMPLES_FILE).exists():
        raise MeasureError(
            f"-o {folder} holds a record already; give another folder, or remove this one first"
        )


def _start(command: Sequence[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(command), env=environment)
    except OSError as error:
        raise ConfigError(
            f"cannot start {command[0]}: {error.strerror}; give a command after --, such as "
            "driple record -- python train.py"
        ) from error


def _has_gpu(nvml: Any) -> bool:
    from driple.measure.counters.nvml import gpu_names

    return bool(gpu_names(nvml))


def _count_allocations(stack: ExitStack, say: Say) -> dict[str, str]:
    """Environment with which a command counts what it allocates; empty without a compiler."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="driple-record-")))
    try:
        library = build_alloc_counter(folder)
    except MeasureError as error:
        say(f"device_mem_util is not recorded: {error}")
        return {}
    counter = AllocationCounter("record")
    stack.callback(counter.close)
    environment = counter.environment(library)
    loaded = os.environ.get("LD_PRELOAD")
    if loaded:
        environment["LD_PRELOAD"] += f":{loaded}"
    return environment


def _handle(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (OSError, OverflowError) as error:
        raise MeasureError(
            f"--pid {pid}: {getattr(error, 'strerror', error)}; give the number of a running "
            "process (ps, pgrep)"
        ) from error


def _marked(folder: Path) -> int:
    """Steps of the process with the most marks, by the sizes of the files."""
    try:
        sizes = [entry.stat().st_size for entry in os.scandir(folder)]
    except OSError:
        return 0
    marks = (max(sizes, default=0) - STEPS_HEAD_BYTES) // 8
    return max(marks - 1, 0)  # the first mark begins the first step


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _clock_error_s() -> float | None:
    """Bound of the wall clock's error that the kernel states; None where nothing sets the clock."""
    import ctypes

    words = (ctypes.c_long * 64)()  # struct timex, mode 0: read
    state = ctypes.CDLL(None).adjtimex(ctypes.byref(words))
    max_error_us, status = words[3], words[5] & 0xFFFFFFFF
    is_unset = state < 0 or bool(status & 0x40)  # STA_UNSYNC
    return None if is_unset else max_error_us / 1e6
