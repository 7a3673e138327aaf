"""Raw counter samples of the sampler, and their conversion to traces.

    sampler -> Samples (int64, every row with the time before and after it) -> to_trace -> Trace

A row that took long to read was interrupted by a pause of the machine: it stays in the file, but
traces leave it out. Monotonic counters are interpolated onto an even grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError, TraceError
from driple.files import atomic_replace, wrap_os_error
from driple.storedfiles import read_npz
from driple.trace import Trace
from driple.units import counted

__all__ = ["Samples", "differences", "read_samples", "write_samples"]

_TORN_S = 1e-3
_GAP_PERIODS = 4
_ARRAYS = ("names", "before_ns", "spent_ns", "values", "period_s")
_MAX_BYTES = 256 * 2**20  # limit of all arrays of a file; a run of 16 s has 2
_MOST_PERIODS = 10_000_000  # of a trace


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """Rows of counter values over time.

    Attributes:
        names: name of each counter, such as `w0.net_tx`.
        before_ns: shape [n], int64, monotonic clock before a row was read.
        after_ns: shape [n], int64, monotonic clock after it.
        values: shape [n, len(names)], int64.
        period_s: seconds between two rows, as asked for.
    """

    names: tuple[str, ...]
    before_ns: npt.NDArray[np.int64]
    after_ns: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    period_s: float

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Shape [n]: rows that were read without a pause."""
        return (self.after_ns - self.before_ns) < _TORN_S * 1e9

    @property
    def disturbed_share(self) -> float:
        """Fraction of the time in gaps between whole rows of more than four periods."""
        time_s = self.before_ns[self.whole] / 1e9
        if len(time_s) < 2:
            return 1.0
        gaps = np.diff(time_s)
        return float(gaps[gaps > _GAP_PERIODS * self.period_s].sum() / (time_s[-1] - time_s[0]))

    def counter_period_s(self, name: str) -> float:
        """Update period of a counter: seconds between two changes while it is active."""
        rows = self.whole
        column = self.values[rows, self.names.index(name)]
        time_s = self.before_ns[rows] / 1e9
        changes = time_s[1:][np.diff(column) != 0]
        return float(np.median(np.diff(changes))) if len(changes) > 2 else 0.0

    def to_trace(
        self,
        name: str,
        *,
        resource: str,
        unit: str,
        scale: float,
        grid_s: float,
        start_ns: int,
        end_ns: int,
    ) -> Trace:
        """Rate of a growing counter on an even grid between two times.

        Args:
            name: name of the counter.
            resource: resource of the trace.
            unit: unit of the trace.
            scale: factor from counter units per second to the trace's unit.
            grid_s: sampling period of the trace.
            start_ns: start, on the monotonic clock.
            end_ns: end, on the monotonic clock.

        Raises:
            TraceError: the samples do not cover two periods of that time.
        """
        rows = self.whole
        time_ns = (self.before_ns[rows] + self.after_ns[rows]) / 2
        column = self.values[rows, self.names.index(name)]
        num = int((end_ns - start_ns) / 1e9 / grid_s)
        if num < 2 or len(time_ns) < 2 or time_ns[0] > end_ns or time_ns[-1] < start_ns:
            raise TraceError(
                f"samples of {name} cover {counted(num, 'period')} of {grid_s} s; a trace needs 2 "
                "or more; measure longer, with driple measure --set iterations=100"
            )
        if num > _MOST_PERIODS:
            raise TraceError(
                f"run of {(end_ns - start_ns) / 1e9:.3g} s has {num} periods of {grid_s} s, at "
                f"most {_MOST_PERIODS} are laid on a grid; restore run.json"
            )
        grid_ns = start_ns + 1e9 * grid_s * np.arange(num + 1)
        at = np.interp(grid_ns, time_ns, (column - column[0]).astype(np.float64))
        return Trace(
            resource=resource,
            unit=unit,
            amount=np.diff(at) / grid_s * scale,
            period_s=grid_s,
            start_s=0.0,
            counter_period_s=self.counter_period_s(name),
        )


def write_samples(samples: Samples, path: Path) -> None:
    """Save samples, compressed: growing counters are stored as differences.

    Raises:
        ConfigError: the file cannot be written.
    """
    columns: dict[str, Any] = {
        "names": np.array(samples.names),
        "before_ns": differences(samples.before_ns),
        "spent_ns": samples.after_ns - samples.before_ns,
        "values": differences(samples.values),
        "period_s": np.float64(samples.period_s),
    }
    with (
        wrap_os_error(ConfigError, f"write {path}"),
        atomic_replace(path) as (part,),
        part.open("wb") as file,
    ):
        np.savez_compressed(file, **columns)


def read_samples(path: Path) -> Samples:
    """Load samples.

    Raises:
        TraceError: the file holds no samples.
    """
    try:
        arrays = read_npz(path, _ARRAYS, _MAX_BYTES)
        before_ns = np.cumsum(arrays["before_ns"], axis=0)
        return Samples(
            names=tuple(str(name) for name in arrays["names"]),
            before_ns=before_ns,
            after_ns=before_ns + arrays["spent_ns"],
            values=np.cumsum(arrays["values"], axis=0),
            period_s=float(arrays["period_s"]),
        )
    except (OSError, ValueError, TypeError) as error:
        raise TraceError(f"{path} holds no samples ({error}); measure again") from error


def differences(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """First row and differences between rows, which compress well."""
    return np.diff(values, axis=0, prepend=np.zeros_like(values[:1]))
