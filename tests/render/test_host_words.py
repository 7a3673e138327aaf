"""The share of a step in which a GPU waits for its host, in the line on what limits it."""

from __future__ import annotations

import pytest

from driple.answers.step_parts import StepParts
from driple.render.answer_lines import _host_words


@pytest.mark.parametrize(("host_s", "words"), [(0.05, None), (0.3, "waits 30 % of it"), (0.7, "")])
def test_a_wait_is_said_once_and_where_it_matters(host_s: float, words: str | None) -> None:
    """Not again where it is the largest part, and not where it is short."""
    parts = StepParts(computing_s={"matrix products": 1.0 - host_s}, host_s=host_s)
    said = _host_words(parts)
    if words is None:
        assert not said
    else:
        assert words in said and "--what-would-help" in said
        assert ("waits" in said) is bool(words)
    assert parts.host_pct == pytest.approx(100 * host_s)
    assert parts.bottleneck is not None and parts.bottleneck.is_host is (host_s > 0.5)


def test_a_step_without_time_waits_for_nothing() -> None:
    assert StepParts(computing_s={}, host_s=0.0).host_pct == 0
