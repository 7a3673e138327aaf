"""Engines by name."""

from __future__ import annotations

import pytest

from driple.engine.engine import ENGINES, open_engine
from driple.errors import ConfigError


def test_an_unknown_engine_and_no_workers_are_refused() -> None:
    assert ENGINES == ("local", "ray")
    with pytest.raises(ConfigError, match="engine must be one of local, ray, got 'dask'"):
        open_engine("dask")
    with pytest.raises(ConfigError, match="number of workers"):
        open_engine("local", workers=0)


def test_the_usual_engine_is_of_this_machine() -> None:
    with open_engine(workers=1) as engine:
        assert engine.workers == 1
