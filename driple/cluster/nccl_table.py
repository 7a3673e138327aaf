"""The table that all_reduce_perf of nccl-tests prints, read without trusting what it claims.

    #       size  count  type  redop  root     time   algbw   busbw #wrong ...
      134217728   ...                       5871.07   22.86   22.86      0 ...
    -> NcclTable (sizes, seconds, ranks, machines)

`busbw` is algbw = size / time, times 2 (n - 1) / n of n ranks: the rate at which the slowest hop of
a ring is crossed, whatever n is (nccl-tests, doc/PERFORMANCE.md). Times are those out of place.
Lines of a log around the table, and tags of mpirun before each line, do no harm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.storedfiles import read_bytes

__all__ = ["NcclTable", "read_nccl_table"]

FloatArray = npt.NDArray[np.float64]
_MAX_BYTES = 16 * 2**20
_MOST_ROWS = 10_000
_MOST_SIZE = 2**50  # bytes of one message
_TAG = re.compile(r"^(?:\[[\d,]+\]<std(?:out|err)>:|\s*\d+:(?= ))")  # of mpirun and of srun
_RANK = re.compile(r"#\s*Rank\s+(?P<rank>\d{1,7})\b.{0,200}?\bon\s+(?P<host>\S{1,255})\s+device\b")
_COLUMNS = ("size", "count", "type", "time", "algbw", "busbw")
_LARGE = 2**20  # bytes, from which on columns have the digits that tell the number of ranks
_FACTOR_ERROR = 0.02


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NcclTable:
    """Measured all-reduces.

    Attributes:
        sizes: shape [n], bytes of each message, rising.
        seconds: shape [n], time of one all-reduce.
        ranks: devices that took part.
        machines: that they are of; None if the table does not list them.
    """

    sizes: FloatArray
    seconds: FloatArray
    ranks: int
    machines: int | None

    @property
    def bytes_per_s(self) -> FloatArray:
        """Bus bandwidth of each message, shape [n]."""
        rates: FloatArray = 2 * (self.ranks - 1) / self.ranks * self.sizes / self.seconds
        return rates


def read_nccl_table(file: Path) -> NcclTable:
    """The table of a file.

    Args:
        file: output of all_reduce_perf.

    Raises:
        ConfigError: it cannot be read, has no such table, or the table is of another collective.
    """
    try:
        content = read_bytes(file, _MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error})") from error
    if len(content) > _MAX_BYTES:
        raise ConfigError(
            f"{file} has over {_MAX_BYTES // 2**20} MB; give the output of all_reduce_perf alone"
        )
    lines = [_TAG.sub("", line) for line in content.decode(errors="replace").splitlines()]
    rows = _rows(lines)
    if not rows:
        raise ConfigError(
            f"{file} has no table of all_reduce_perf (a line '# size count type ... time algbw "
            "busbw' and rows below it); give the output of nccl-tests"
        )
    if len(rows) > _MOST_ROWS:
        raise ConfigError(f"{file} has over {_MOST_ROWS} rows; give the output of one run")
    matches = [match for match in map(_RANK.search, lines) if match is not None]
    listed = len({match["rank"] for match in matches})
    ranks = _ranks(rows, listed, file)
    times: dict[float, list[float]] = {size: [] for size, *_ in sorted(rows)}
    for size, seconds, *_ in rows:
        times[size].append(seconds)
    return NcclTable(
        sizes=np.array([*times], dtype=np.float64),
        seconds=np.array([float(np.mean(those)) for those in times.values()]),
        ranks=ranks,
        machines=len({match["host"] for match in matches}) or None,
    )


_Row = tuple[float, float, float, float]  # bytes, seconds, algbw, busbw


def _rows(lines: list[str]) -> list[_Row]:
    """Rows below a header, by its columns."""
    places: list[int] | None = None
    rows: list[_Row] = []
    for line in lines:
        words = line.strip().lstrip("#").split()
        if all(name in words for name in _COLUMNS):
            places = [words.index(name) for name in ("size", "time", "algbw", "busbw")]
        elif places is not None and not line.lstrip().startswith("#"):
            row = _row(words, places)
            if row is not None:
                rows.append(row)
    return rows


def _row(words: list[str], places: list[int]) -> _Row | None:
    """Numbers of a row; None of any other line, and of a row without a time."""
    try:
        size, time_us, algbw, busbw = (float(words[place]) for place in places)
    except (IndexError, ValueError):
        return None
    if not (
        0 < size <= _MOST_SIZE and 0 < time_us < 1e12 and 0 <= algbw < 1e7 and 0 <= busbw < 1e7
    ):
        return None
    return size, time_us / 1e6, algbw, busbw


def _ranks(rows: list[_Row], listed: int, file: Path) -> int:
    """How many devices took part: busbw over algbw is 2 (n - 1) / n of an all-reduce."""
    factors = [busbw / algbw for size, _, algbw, busbw in rows if size >= _LARGE and algbw > 0]
    if not factors:
        raise ConfigError(
            f"{file} has no message of {_LARGE // 2**20} MiB or more, which tell the rate; run "
            "all_reduce_perf -b 8 -e 1G -f 2"
        )
    factor = float(np.median(factors))
    ranks = listed or (round(2 / (2 - factor)) if factor < 2 - 1e-3 else 1000)
    if ranks < 2 or abs(factor - 2 * (ranks - 1) / ranks) > _FACTOR_ERROR:
        raise ConfigError(
            f"{file}: busbw is {factor:.3g} times algbw, and 2 (n - 1) / n of an all-reduce over n "
            "devices is from 1 to 2"
            + (f", {2 * (listed - 1) / listed:.3g} for {listed}" if listed else "")
            + "; give the output of all_reduce_perf on two devices or more"
        )
    return ranks
