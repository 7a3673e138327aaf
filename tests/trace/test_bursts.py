"""Splitting traces into bursts and gaps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import KMeans

from driple.trace.bursts import runs, two_means


def test_two_levels_are_told_apart() -> None:
    """Low and high samples, whatever their order."""
    amount = np.array([1.0, 9, 1, 1, 9, 9, 1])
    assert two_means(amount).tolist() == [False, True, False, False, True, True, False]


def test_equal_amounts_are_no_bursts() -> None:
    """Without two levels there is no burst."""
    assert not two_means(np.full(5, 3.0)).any()


def test_same_split_as_scikit_learn_on_noisy_square_waves() -> None:
    """The threshold form of 2-means finds what k-means++ with ten starts finds."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        high = rng.random(400) < rng.uniform(0.2, 0.8)
        amount = np.where(high, 20.0, 3.0) + rng.normal(0, rng.uniform(0.2, 2.5), 400)
        model = KMeans(2, n_init=10, random_state=0).fit(amount[:, None])
        theirs = model.labels_ == int(np.argmax(model.cluster_centers_[:, 0]))
        assert (two_means(amount) == theirs).mean() > 0.995


@given(
    arrays(
        np.float64,
        st.integers(2, 80),
        # Numbers so small that half of them is 0 have no exact scale.
        elements=st.floats(0, 1e6).map(lambda size: size if size > 1e-200 else 0.0),
    ),
    st.floats(1e-3, 1e3),
)
def test_split_does_not_depend_on_the_unit(amount: np.ndarray, factor: float) -> None:
    """Scaling by a power of two, exact in floating point, changes nothing."""
    scale = 2.0 ** round(np.log2(factor))
    assert (two_means(amount) == two_means(amount * scale)).all()


@given(arrays(np.bool_, st.integers(1, 60)))
def test_runs_add_up_and_alternate(is_burst: np.ndarray) -> None:
    """Runs cover the trace once, and neighbours differ."""
    stretches = runs(is_burst, drop_cut=False)
    assert stretches.length.sum() == len(is_burst)
    assert (np.repeat(stretches.is_burst, stretches.length) == is_burst).all()
    assert (stretches.is_burst[1:] != stretches.is_burst[:-1]).all()


def test_runs_at_the_ends_are_left_out_if_enough_remain() -> None:
    """The ends of a trace cut its first and its last run."""
    stretches = runs(np.array([1, 0, 0, 1, 1, 0], dtype=bool))
    assert stretches.length.tolist() == [2, 2]
    assert stretches.is_burst.tolist() == [False, True]
    assert runs(np.array([1, 0, 1], dtype=bool)).length.tolist() == [1, 1, 1]


def test_the_split_begins_between_the_1st_and_the_99th_percentile() -> None:
    """One stray sample of 600 decides nothing; nine of them, which are more than 1 %, do."""
    stray = np.array([0.0] * 300 + [1.0] * 299 + [100.0])
    assert two_means(stray).sum() == 300
    low = np.array([0.0] * 9 + [10.0] * 291 + [11.0] * 300)
    assert two_means(low).sum() == 591


def test_a_sample_half_way_between_the_means_is_idle() -> None:
    assert two_means(np.array([0.0, 1.0, 2.0])).tolist() == [False, False, True]
