"""A trace: when its samples end, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from driple.errors import TraceError
from driple.trace import Trace


def test_samples_end_with_their_periods() -> None:
    trace = Trace(resource="net_tx", unit="MB/s", amount=np.ones(3), period_s=0.5, start_s=1.0)
    assert trace.time_s.tolist() == [1.5, 2.0, 2.5]


def test_a_trace_begins_at_0_and_has_no_counter_unless_told() -> None:
    trace = Trace(resource="net_tx", unit="MB/s", amount=np.ones(2), period_s=0.25)
    assert (trace.start_s, trace.counter_period_s) == (0.0, 0.0)
    assert trace.time_s.tolist() == [0.25, 0.5]


@pytest.mark.parametrize("amount", [np.ones((2, 2)), np.array([1.0, np.nan]), np.array(1.0)])
def test_what_is_no_row_of_finite_numbers_is_refused(amount: np.ndarray) -> None:
    with pytest.raises(TraceError, match="not finite numbers in one row"):
        Trace(resource="net_tx", unit="MB/s", amount=amount, period_s=0.25)
