"""Study measured: facts of all samples are stored; the reduced samples cannot replace them."""

from __future__ import annotations

import pytest

from driple.cluster.setting import Setting
from driple.dataset.store import read_dataset
from driple.errors import DatasetError
from scripts.settings.shipped import SETTINGS
from scripts.studies.measured.run import read_facts, trace_facts


def test_facts_are_of_all_runs() -> None:
    """As many as each data set was made of."""
    for name, facts in read_facts().items():
        dataset = read_dataset(SETTINGS / Setting.parse(name).file_name)
        assert facts.num_runs == dataset.about.num_runs
        assert facts.num_over_rate <= facts.num_runs
        assert 0 < facts.least_s < facts.most_s


def test_reduced_samples_are_refused() -> None:
    """One run of 144 gives no least and no most of all."""
    dataset = read_dataset(SETTINGS / "CPU-P1w2_ho-400M")
    with pytest.raises(DatasetError, match="samples of 1 of 144 runs; restore all of them"):
        trace_facts(dataset, SETTINGS)
