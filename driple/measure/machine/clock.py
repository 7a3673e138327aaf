"""Times of short PyTorch programs: the host's and the device's, repeated until they are steady.

step, Clock -> seconds of a step;  step, Clock -> seconds of the device for one run of its kernels
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

__all__ = ["Clock", "Effort"]

_WARM_UPS = 3
_MOST_ROUNDS = 10_000
_STEADY = 1.1  # of the median and the fastest round
_ENOUGH_AHEAD = 0.8  # share of the device's time within which the host must enqueue it


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """How long is measured.

    Attributes:
        rounds: of each program; their median counts.
        round_s: least seconds of a round.
        tries: how often rounds that differ are measured again.
    """

    rounds: int = 5
    round_s: float = 0.03
    tries: int = 3


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock of one device.

    Attributes:
        device: such as `cuda:0`, or `cpu`, on which the same code is tested.
        effort: how long is measured.
    """

    device: torch.device
    effort: Effort = Effort()

    @classmethod
    def of(cls, device: str, effort: Effort | None = None) -> Clock:
        """A clock of a device by its name."""
        return cls(torch.device(device), effort or Effort())

    def wait(self) -> None:
        """Until the device has done all that it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def step_s(self, step: Callable[[], object]) -> float:
        """Seconds of a step, of many one after another without waiting between them.

        Of a single thread without a GPU it is its processor time, which other programs do not
        lengthen.
        """
        for _ in range(_WARM_UPS):
            step()
        self.wait()
        count = self._count(lambda: self._wall_s(step, 1))
        return self._steady(lambda: self._wall_s(step, count) / count)

    def kernel_s(self, run: Callable[[], object]) -> float | None:
        """Seconds of the device for a run; None if the host could not keep it busy.

        Between two events of a CUDA stream; on processors as the wall clock has it.
        """
        for _ in range(_WARM_UPS):
            run()
        self.wait()
        if self.device.type != "cuda":
            return self.step_s(run)
        count = self._count(lambda: self._between_events(run, 1)[0])
        is_ahead = True

        def once() -> float:
            nonlocal is_ahead
            device_s, host_s = self._between_events(run, count)
            is_ahead = host_s < _ENOUGH_AHEAD * device_s
            return device_s / count

        seconds = self._steady(once)
        return seconds if is_ahead else None

    def _count(self, once: Callable[[], float]) -> int:
        """Runs of a round."""
        seconds = max(min(once(), once()), 1e-7)
        return max(1, min(_MOST_ROUNDS, round(self.effort.round_s / seconds)))

    def _steady(self, once: Callable[[], float]) -> float:
        """The median of some rounds; of the steadiest try if other load disturbs all."""
        medians: list[float] = []
        for _ in range(self.effort.tries):
            rounds = [once() for _ in range(self.effort.rounds)]
            medians.append(median(rounds))
            if median(rounds) < _STEADY * min(rounds):
                break
        return min(medians)

    def _wall_s(self, step: Callable[[], object], count: int) -> float:
        is_alone = self.device.type != "cuda" and torch.get_num_threads() == 1
        now = time.thread_time if is_alone else time.perf_counter
        self.wait()
        begin = now()
        for _ in range(count):
            step()
        self.wait()
        return now() - begin

    def _between_events(self, run: Callable[[], object], count: int) -> tuple[float, float]:
        """Seconds of the device, and of the host until all was enqueued."""
        with torch.cuda.device(self.device):
            first = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # of torch
            last = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # of torch
            self.wait()
            begin = time.perf_counter()
            first.record()
            for _ in range(count):
                run()
            last.record()
            host_s = time.perf_counter() - begin
            last.synchronize()
        return first.elapsed_time(last) / 1e3, host_s
