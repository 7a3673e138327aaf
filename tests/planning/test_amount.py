"""How many samples are trained on: what the user says, else what the data set says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.errors import ConfigError
from driple.graph.cost import cost_of_graph
from driple.jobs.job import Job, JobOrigin
from driple.jobs.pytorch.workloads import IMAGENET_SAMPLES
from driple.planning.amount import Amount, AmountAsked, amount_of
from tests.simulate.jobs import net

GRAPH = net(4)
COST = cost_of_graph(GRAPH)


def job(
    *, seq_len: int | None = None, samples: int | None = None, shape: tuple[int, ...] | None = None
) -> Job:
    """A job whose samples are texts, images of some shape, or unknown."""
    return Job(
        source="a job", origin=JobOrigin(name="file"), graph=GRAPH, cost=COST, batch_size=4,
        seq_len=seq_len, samples=samples, input_shape=shape,
    )  # fmt: skip


@given(st.integers(1, 10**12), st.integers(1, 5000), st.floats(0.5, 100))
def test_tokens_fill_samples_of_their_length(tokens: int, seq_len: int, epochs: float) -> None:
    """No token is left out, and no sample is without one."""
    amount = amount_of(job(seq_len=seq_len), AmountAsked(tokens=tokens, epochs=max(epochs, 1)))
    assert (amount.samples_per_epoch - 1) * seq_len < tokens <= amount.samples_per_epoch * seq_len
    assert amount.samples == amount.samples_per_epoch * max(epochs, 1)
    assert amount.source.code == "samples_by_tokens"
    assert dict(amount.source.values) == {"tokens": tokens, "seq_len": seq_len}


@given(st.floats(1, 1e12))
def test_samples_of_the_user_win_and_are_whole(samples: float) -> None:
    known = job(seq_len=7, samples=3, shape=(3, 8, 8))
    amount = amount_of(known, AmountAsked(samples=samples))
    assert amount.samples_per_epoch == math.ceil(samples)
    assert amount.source.code == "samples_by_option"
    assert amount.epochs == 1.0


def test_without_a_word_of_the_user_the_data_set_counts() -> None:
    own = amount_of(job(samples=123, shape=(3, 8, 8)), AmountAsked(epochs=2))
    assert own.samples == 246.0
    assert own.source.code == "samples_of_data_set"
    images = amount_of(job(shape=(3, 224, 224)), AmountAsked())
    assert images.samples_per_epoch == IMAGENET_SAMPLES
    assert images.source.code == "samples_of_imagenet"


@pytest.mark.parametrize(
    ("seq_len", "asked", "words"),
    [
        (None, AmountAsked(tokens=9), "--tokens needs a job whose samples are texts"),
        (None, AmountAsked(), r"not known; give --samples N$"),
        (64, AmountAsked(), "not known; give --samples N or --tokens N$"),
        (None, AmountAsked(samples=3, epochs=0.1), "3 samples and --epochs 0.1 are less than one"),
    ],
)
def test_an_amount_that_is_not_known_is_refused(
    seq_len: int | None, asked: AmountAsked, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        amount_of(job(seq_len=seq_len, shape=None if seq_len else (7,)), asked)


def test_one_sample_in_all_is_enough() -> None:
    assert amount_of(job(), AmountAsked(samples=4, epochs=0.25)).samples == 1.0


@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("--samples", {"samples": 0}),
        ("--tokens", {"tokens": -1}),
        ("--epochs", {"epochs": 0}),
        ("--samples", {"samples": 1.1e15}),
        ("give one of them", {"samples": 1, "tokens": 1}),
    ],
)
def test_amounts_out_of_range_name_their_flag(flag: str, values: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=flag):
        AmountAsked(**values)
    AmountAsked(samples=10**15)


def test_equal_amounts_are_written_alike() -> None:
    assert repr(AmountAsked(epochs=2)) == repr(AmountAsked(epochs=2.0))
    amount = Amount(samples_per_epoch=3, epochs=2.0, source=amount_of(job(samples=3),
                 AmountAsked()).source)  # fmt: skip
    assert amount.samples == 6.0
