"""`driple.profiler.profile`, for functions that build a model and a data set."""

from pathlib import Path

import pytest

from driple import profiler
from driple.errors import ConfigError
from driple.jobs.import_path import reference_of
from tests.profiler.builders import build_dataset, build_model, mean_square


def test_functions_are_profiled(tmp_path: Path) -> None:
    """The data set has 64 samples, a batch 8: eight iterations in an epoch of one device."""
    profile = profiler.profile(
        build_model,
        build_dataset,
        loss=mean_square,
        batch_size=8,
        out=tmp_path / "out",
        processes=1,
        steps=[2],
        iterations=2,
        warmup=3,
        repeats=1,
        tries=1,
    )
    assert set(profile.times) == {2}
    assert profile.batches_per_epoch == 8
    assert profile.launches[2, 0].batch_size == 8


def test_how_other_processes_find_a_function() -> None:
    """By module and name; what has no name at the top of a module is refused."""
    assert reference_of("x", build_model) == "tests.profiler.builders:build_model"
    with pytest.raises(ConfigError, match="at the top of a module"):
        reference_of("build_model", lambda: None)

    def inner() -> None: ...

    with pytest.raises(ConfigError, match=r"build_dataset is .*inner"):
        reference_of("build_dataset", inner)
