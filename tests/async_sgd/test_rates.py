"""The compiled sharing of links is the solver of `driple.schemes`."""

from __future__ import annotations

import numpy as np
import pytest

from driple.schemes.fair_shares import max_min_rates

pytest.importorskip("numba")


@pytest.mark.parametrize("seed", range(20))
def test_compiled_rates_are_max_min_fair(seed: int) -> None:
    """Random clusters: workers x servers, unlike links, any set of active streams."""
    from driple.async_sgd.events import _fill

    random = np.random.default_rng(seed)
    workers, servers = random.integers(1, 7, 2)
    active = random.integers(0, 2, (workers, servers))
    server_rate = random.uniform(1e8, 1e9, servers)
    worker_rate = random.uniform(1e8, 1e9, workers)
    rate = np.zeros((workers, servers))
    _fill(active, server_rate, worker_rate, rate)
    streams = [(int(m), int(servers + w)) for w, m in zip(*np.nonzero(active), strict=True)]
    capacities = [*server_rate.tolist(), *worker_rate.tolist()]
    rates = max_min_rates(streams, capacities)
    assert rate[active.astype(bool)] == pytest.approx(rates, rel=1e-9)
