"""Initial weights that pass embeddings on: graphs still differ after fifty layers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from driple.errors import ConfigError
from driple.inspector.batch import make_batch
from driple.inspector.config import InspectorConfig
from driple.inspector.model import Inspector, repeated_tanh
from driple.training.start import start_passing
from tests.inspector.examples import random_input


def spread_after(depth: int, *, passing: bool) -> float:
    """Deviation between four graphs of the mean embedding after so many layers."""
    torch.manual_seed(0)
    model = Inspector(InspectorConfig(depth=depth), 100)
    if passing:
        start_passing(model)
    inputs = [random_input(i, 20) for i in range(4)]
    inputs = [replace(x, features=x.features + i) for i, x in enumerate(inputs)]
    with torch.no_grad():
        h = model.kept_layers(make_batch(inputs)).x
    return float(h.mean(dim=1).std(dim=0).mean())


def test_graphs_still_differ_after_fifty_layers() -> None:
    """A seventh of the spread or more is left; with torch's weights a hundredth at most."""
    assert spread_after(50, passing=True) > spread_after(1, passing=True) / 7
    assert spread_after(50, passing=False) < 0.01 * spread_after(1, passing=False)


def test_the_closed_form_is_that_of_the_layers() -> None:
    """Embeddings of a model that is shortened are those after all of its layers, within 3 %."""
    torch.manual_seed(0)
    model = Inspector(InspectorConfig(), 100)
    start_passing(model)
    batch = make_batch([random_input(i, 20) for i in range(8)])
    with torch.no_grad():
        whole = model.kept_layers(batch).x
        model.shorten(49)
        short = repeated_tanh(model.kept_layers(batch).x, 49)
    assert float((short - whole).abs().mean()) < 0.03 * float(short.abs().mean())


def test_other_layers_are_refused() -> None:
    """There is no gate to set."""
    with pytest.raises(ConfigError, match="start usual"):
        start_passing(Inspector(InspectorConfig(update="residual"), 10))
