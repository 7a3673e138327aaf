"""Streams take turns as in figure 12, and their errors are those of the ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.async_sgd.overhead import Overhead
from driple.errors import TraceError
from scripts.studies.throughput.streams import stream_ends, stream_errors
from tests.async_sgd.jobs import RATE, job_of, trace_of

MB = 1e6


def test_a_stream_beyond_the_window_waits_once_and_then_goes_to_its_end() -> None:
    """Sizes 7, 2, 5 and window 3 at rate 1: 3 + 2 + 3, then the rests 4 and 2."""
    ends = stream_ends([0, 0, 0], [7, 2, 5], 1.0, 3.0)
    assert ends.tolist() == [12, 5, 14]
    assert stream_ends([0, 0, 0], [7, 2, 5], 1.0, np.inf).tolist() == [7, 9, 14]


def test_a_stream_that_comes_meanwhile_waits_before_the_rest_of_another() -> None:
    assert stream_ends([0, 1], [7, 2], 1.0, 3.0).tolist() == [9, 5]
    assert stream_ends([0, 20], [7, 2], 1.0, 3.0).tolist() == [7, 22]


def test_errors_are_nought_where_the_trace_is_the_model() -> None:
    line = Overhead(1e-10, 1e-3)
    begins, sizes = [0.0, 0.0, 0.01], [40 * MB, 5 * MB, 20 * MB]
    ends = stream_ends(begins, sizes, RATE, 28 * MB) + line.of(sizes)
    job = job_of([(2, [size] * 2, []) for size in sizes])
    spans = {i: (begins[i], float(ends[i])) for i in range(3)}
    trace = trace_of(job, [spans] * 2)
    errors = stream_errors(trace, line, RATE, 28 * MB)
    assert (errors.average, errors.maximum) == pytest.approx((0, 0), abs=1e-9)
    assert errors.num_streams == 6
    # The first stream would end after 0.4 s, not after 0.53 s, were it not cut.
    whole = stream_errors(trace, line, RATE, np.inf)
    assert whole.maximum > 0.2
    assert whole.median <= whole.p95 <= whole.maximum


def test_a_trace_without_parameters_is_refused() -> None:
    trace = trace_of(job_of([(2, [MB] * 2, [])]), [{0: (0.0, 0.1)}] * 2)
    with pytest.raises(TraceError, match="no parameter"):
        stream_errors(replace(trace, sizes=np.zeros(1, dtype=np.int64)), Overhead(), RATE, MB)
