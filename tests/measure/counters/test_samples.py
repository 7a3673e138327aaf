"""Raw samples: what is kept, what is left out, and the traces made of them."""

from pathlib import Path

import numpy as np
import pytest

from driple.errors import TraceError
from driple.measure.counters.samples import Samples, read_samples, write_samples


def samples_of(
    counter: np.ndarray, *, period_s: float = 0.005, late: tuple[int, ...] = ()
) -> Samples:
    """Samples of one counter every `period_s`; rows in `late` took 2 ms to read."""
    before = (np.arange(len(counter)) * period_s * 1e9).astype(np.int64)
    spent = np.full(len(counter), 20_000, dtype=np.int64)
    spent[list(late)] = 2_000_000
    return Samples(
        names=("w0.net_tx",),
        before_ns=before,
        after_ns=before + spent,
        values=counter.astype(np.int64)[:, None],
        period_s=period_s,
    )


def trace_of(samples: Samples, *, grid_s: float = 0.02, end_s: float = 1.0) -> np.ndarray:
    """Its TX in MB/s from 0.1 s on."""
    return samples.to_trace(
        "w0.net_tx",
        resource="net_tx",
        unit="MB/s",
        scale=1e-6,
        grid_s=grid_s,
        start_ns=100_000_000,
        end_ns=int(end_s * 1e9),
    ).amount


def test_steady_counter_gives_its_rate() -> None:
    """A counter that grows by 100 kB every 5 ms is 20 MB/s in every period of the grid."""
    amount = trace_of(samples_of(np.arange(400) * 100_000))
    assert len(amount) == 45
    assert amount == pytest.approx(20.0)


def test_torn_rows_are_left_out_of_the_trace_and_kept_in_the_samples() -> None:
    """A row that took 2 ms to read would be a spike; without it the rate stays."""
    counter = np.arange(400) * 100_000
    counter[200] += 3_000_000
    torn = samples_of(counter, late=(200,))
    assert trace_of(torn, end_s=1.5) == pytest.approx(20.0)
    assert trace_of(samples_of(counter), end_s=1.5).max() > 100
    assert len(torn.values) == 400
    assert torn.whole.sum() == 399


def test_gaps_count_as_disturbed_time() -> None:
    """A quarter of the time without rows is 25 % disturbed."""
    steady = samples_of(np.arange(401))
    assert steady.disturbed_share == 0
    keep = np.r_[0:100, 200:401]
    gappy = Samples(
        names=steady.names,
        before_ns=steady.before_ns[keep],
        after_ns=steady.after_ns[keep],
        values=steady.values[keep],
        period_s=steady.period_s,
    )
    assert gappy.disturbed_share == pytest.approx(0.25, abs=0.01)


def test_update_period_of_a_slow_counter_is_found() -> None:
    """A counter that moves every 100 ms has that update period, whatever the sampling."""
    assert samples_of(np.arange(400) // 20).counter_period_s("w0.net_tx") == pytest.approx(0.1)


def test_traces_need_two_periods_inside_the_samples() -> None:
    """Too short a run is an error that says what to do."""
    with pytest.raises(TraceError, match="measure longer"):
        trace_of(samples_of(np.arange(400)), end_s=0.125)


def test_saved_samples_come_back_equal(tmp_path: Path) -> None:
    """Writing and reading changes nothing."""
    samples = samples_of(np.random.default_rng(0).integers(0, 2**60, 50), late=(3,))
    write_samples(samples, tmp_path / "samples.npz")
    again = read_samples(tmp_path / "samples.npz")
    assert again.names == samples.names
    assert again.period_s == samples.period_s
    for field in ("before_ns", "after_ns", "values"):
        assert (getattr(again, field) == getattr(samples, field)).all()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04broken"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty, foreign and cut files are one-line errors."""
    path = tmp_path / "samples.npz"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="holds no samples"):
        read_samples(path)
