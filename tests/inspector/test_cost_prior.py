"""The cost law: a sum of rates, joined to the context, refused where it makes no sense."""

from __future__ import annotations

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.features import InputConfig
from driple.inspector.cost_prior import LAW_NAMES, CostPrior, columns_of, sums_of
from driple.trace.targets import TARGET_NAMES
from driple.training.cost_prior import fit_cost_law

from .examples import random_input

NAMES = InputConfig(context="costs").context_names
FLOOR = np.full(12, 1e-6)


def contexts(seed: int, rows: int) -> np.ndarray:
    """Logarithms of sums between 1 and 10^6."""
    return np.log1p(10 ** np.random.default_rng(seed).uniform(0, 6, size=(rows, len(NAMES))))


def random_labels(seed: int, rows: int) -> np.ndarray:
    """Whatever they are, none is negative."""
    return np.random.default_rng(seed).uniform(0, 1, size=(rows, 12))


def test_the_law_of_made_up_rates_is_found_again() -> None:
    """Labels that are exactly such a sum, many enough for the ridge not to matter, come out."""
    generator = np.random.default_rng(1)
    sums = sums_of(contexts(0, 4000), columns_of(NAMES))
    rates = generator.uniform(0.5, 2, size=(12, sums.shape[1])) / sums.mean(axis=0)
    law = fit_cost_law(contexts(0, 4000), sums @ rates.T, FLOOR, NAMES)
    seen = np.exp(law.log_targets(contexts(2, 50)))
    expected = sums_of(contexts(2, 50), law.columns) @ rates.T
    durations = [name.endswith("duration") for name in TARGET_NAMES]
    np.testing.assert_allclose(seen[:, durations], expected[:, durations], rtol=0.05)


def test_amounts_do_not_grow_with_the_work() -> None:
    """A link is not faster because there is more to send."""
    law = fit_cost_law(contexts(0, 30), np.ones((30, 12)), FLOOR, NAMES)
    amounts = [name.endswith("amount") for name in TARGET_NAMES]
    few = law.log_targets(contexts(5, 1))[:, amounts]
    np.testing.assert_array_equal(law.log_targets(contexts(5, 1) + 3.0)[:, amounts], few)


def test_rates_are_never_negative_and_more_work_never_takes_less() -> None:
    """Whatever the labels: a law can be trusted far from them."""
    law = fit_cost_law(contexts(4, 30), random_labels(3, 30), FLOOR, NAMES)
    assert (law.rates >= 0).all()
    few = contexts(5, 1)
    assert (law.log_targets(few + 1.0) >= law.log_targets(few)).all()


def test_what_the_law_says_ends_the_context() -> None:
    """Twelve more entries, the logarithms of the targets."""
    law = fit_cost_law(contexts(0, 30), np.ones((30, 12)), FLOOR, NAMES)
    graph_input = random_input(0, 5, len(NAMES))
    joined = law.join(graph_input)
    assert joined.context.shape == (len(NAMES) + 12,)
    base = law.log_targets(graph_input.context[None, :])[0]
    np.testing.assert_allclose(joined.context[len(NAMES) :], base, rtol=1e-6)


def test_a_law_at_another_level_is_found_with_few_labels() -> None:
    """All it takes is one factor for each target, and the prior has the rest."""
    prior = fit_cost_law(contexts(4, 300), random_labels(3, 300), FLOOR, NAMES)
    factors = np.random.default_rng(6).uniform(0.01, 100, 12)
    labels = np.exp(prior.log_targets(contexts(0, 20))) * factors
    law = fit_cost_law(contexts(0, 20), labels, FLOOR, NAMES, prior=prior)
    np.testing.assert_allclose(law.rates, prior.rates * factors[:, None], rtol=1e-6, atol=1e-15)


def test_many_labels_count_for_more_than_the_prior() -> None:
    """A law that has nothing in common with it is found all the same."""
    prior = fit_cost_law(contexts(4, 300), random_labels(3, 300), FLOOR, NAMES)
    labels = np.exp(
        fit_cost_law(contexts(7, 300), random_labels(8, 300), FLOOR, NAMES).log_targets(
            contexts(0, 4000)
        )
    )
    law = fit_cost_law(contexts(0, 4000), labels, FLOOR, NAMES, prior=prior)
    np.testing.assert_allclose(
        np.exp(law.log_targets(contexts(2, 50))),
        np.exp(fit_cost_law(contexts(0, 4000), labels, FLOOR, NAMES).log_targets(contexts(2, 50))),
        rtol=0.05,
    )


def test_what_is_read_stays_that_of_the_prior() -> None:
    """The inspector was trained to read it; of two transfers in a row, the first one's."""
    laws = [fit_cost_law(contexts(4, 30), random_labels(3, 30), FLOOR, NAMES)]
    for seed in (5, 6):
        laws.append(
            fit_cost_law(contexts(4, 30), random_labels(seed, 30), FLOOR, NAMES, prior=laws[-1])
        )
    graph_input = random_input(0, 5, len(NAMES))
    for law in laws[1:]:
        assert law.read is laws[0]
        np.testing.assert_array_equal(
            law.join(graph_input).context, laws[0].join(graph_input).context
        )
        assert not np.allclose(law.rates, laws[0].rates)


def test_a_law_survives_the_checkpoint() -> None:
    """To the last bit, with the law that is read, if it is another; files of old have none."""
    law = fit_cost_law(contexts(0, 30), np.ones((30, 12)), FLOOR, NAMES)
    moved = fit_cost_law(contexts(0, 30), random_labels(3, 30), FLOOR, NAMES, prior=law)
    again = CostPrior.from_dict(moved.to_dict(), len(NAMES))
    assert again.columns == law.columns
    np.testing.assert_array_equal(again.rates, moved.rates)
    assert again.read is not None
    np.testing.assert_array_equal(again.read.rates, law.rates)
    without = {name: value for name, value in law.to_dict().items() if name != "read"}
    assert CostPrior.from_dict(without, len(NAMES)).read is None


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("columns", [[10**6]], "rates of a cost law have shape"),
        ("columns", "flops", "columns must be a list"),
        ("rates", [["many"]], "rates must be a list of finite numbers"),
        ("rates", [[1.0]], "shape"),
        ("floor", [0.0] * 12, "floor"),
        ("read", [1.0], "read must be an object"),
        ("read", {"read": {}}, "read.columns is missing"),
        ("read", {"columns": []}, "read.rates is missing"),
    ],
)
def test_odd_fields_are_refused(name: str, value: object, words: str) -> None:
    """In one line that names what is odd."""
    law = fit_cost_law(contexts(0, 30), np.ones((30, 12)), FLOOR, NAMES)
    with pytest.raises(ConfigError, match=words):
        CostPrior.from_dict({**law.to_dict(), name: value}, len(NAMES))


def test_columns_outside_of_the_context_are_refused() -> None:
    law = fit_cost_law(contexts(0, 30), np.ones((30, 12)), FLOOR, NAMES)
    columns = [[10**6], *(list(entries) for entries in law.columns[1:])]
    with pytest.raises(ConfigError, match="columns of a cost law are no lists of entries below"):
        CostPrior.from_dict({**law.to_dict(), "columns": columns}, len(NAMES))


def test_a_context_without_costs_is_refused() -> None:
    """The law needs sums that sizes do not tell."""
    with pytest.raises(ConfigError, match="set the input's context to costs"):
        columns_of(InputConfig(context="sizes").context_names)
    assert all(name in NAMES for names in LAW_NAMES for name in names)


def test_a_law_of_other_sums_reads_no_more() -> None:
    """What is not among its names changes nothing that it says."""
    names = (("num_nodes",), ("sent_bytes", "received_bytes"))
    law = fit_cost_law(contexts(0, 30), np.ones((30, 12)), FLOOR, NAMES, law_names=names)
    assert law.rates.shape == (12, 3)
    other = contexts(5, 4)
    other[:, NAMES.index("flops_matmul")] += 1.0
    np.testing.assert_array_equal(law.log_targets(other), law.log_targets(contexts(5, 4)))
