"""The twelve targets and their order."""

import numpy as np
import pytest

from driple.errors import TraceError
from driple.trace import Trace
from driple.trace.targets import NUM_TARGETS, RESOURCES, TARGET_NAMES, Targets


def test_flat_order_is_resource_by_resource() -> None:
    """Flat values, names and the nested form agree."""
    targets = Targets(np.arange(12.0).reshape(4, 3))
    assert len(TARGET_NAMES) == NUM_TARGETS == 12
    nested = targets.to_dict()
    for name, value in zip(TARGET_NAMES, targets.flat, strict=True):
        resource, figure = name.split(".")
        assert nested[resource][figure] == value


@pytest.mark.parametrize("longer", ["net_tx", "net_rx"])
def test_iteration_time_is_the_longer_period_of_the_network(longer: str) -> None:
    """One burst and one gap, of TX or of RX; those of the device do not count."""
    values = np.full((4, 3), 9.0)
    values[RESOURCES.index("net_tx") :] = 1.0
    values[RESOURCES.index(longer)] = (50.0, 2.0, 3.0)
    assert Targets(values).iteration_time_s == 5.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_trace_refuses_what_is_no_number(bad: float) -> None:
    """NaN and infinity never enter a trace."""
    with pytest.raises(TraceError, match="not finite"):
        Trace(resource="net_tx", unit="MB/s", amount=np.array([1.0, bad]), period_s=0.1)


def test_trace_refuses_a_period_of_zero_and_knows_its_times() -> None:
    """Samples stand at the end of their period."""
    with pytest.raises(TraceError, match="above 0"):
        Trace(resource="net_tx", unit="MB/s", amount=np.ones(3), period_s=0)
    trace = Trace(resource="net_tx", unit="MB/s", amount=np.ones(3), period_s=0.5, start_s=1.0)
    assert trace.time_s.tolist() == [1.5, 2.0, 2.5]
