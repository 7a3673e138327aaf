"""Parts of a step in words: they follow one another, and nothing of the time is lost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.graph.step_facts import Phase
from driple.step.phases import PHASE_WORDS, STEP_PHASES, PhasePart, parts_between

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=12,
)


def sums_of(columns: list[list[int]]) -> list[npt.NDArray[np.float64]]:
    return [np.concatenate(([0.0], np.cumsum(column))) for column in columns]


@given(ROWS, st.data())
def test_parts_add_up_to_the_ops_between_two_places(
    rows: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(rows) - 1))
    end = data.draw(st.integers(begin + 1, len(rows)))
    phases = np.array([row[0] for row in rows])
    columns = [[row[i] for row in rows] for i in (1, 2, 3, 1)]
    parts = parts_between(phases, sums_of(columns), begin, end)
    assert sum(part.duration_s for part in parts) == sum(columns[0][begin:end])
    assert all(part.duration_s > 0 for part in parts)
    assert {part.phase for part in parts} <= set(STEP_PHASES)
    assert all(part.exchange_s == part.duration_s for part in parts)
    # Kernel and memory time of ops without a duration is left out with them.
    assert sum(part.busy_s for part in parts) <= sum(columns[1][begin:end])
    assert sum(part.memory_s for part in parts) <= sum(columns[2][begin:end])


def test_a_part_ends_where_the_phase_changes() -> None:
    phases = np.array([Phase.FORWARD, Phase.FORWARD, Phase.RECOMPUTE, Phase.BACKWARD,
                       Phase.BACKWARD, Phase.UPDATE, Phase.UPDATE])  # fmt: skip
    sums = sums_of([[1, 2, 4, 8, 16, 0, 0], [1, 1, 1, 1, 1, 0, 0], [0] * 7, [0, 0, 2, 0, 3, 0, 0]])
    assert parts_between(phases, sums, 0, 7) == (
        PhasePart("forward", 3, 2, 0), PhasePart("recompute", 4, 1, 0, 2),
        PhasePart("backward", 24, 2, 0, 3),
    )  # fmt: skip
    assert parts_between(phases, sums, 1, 4) == (
        PhasePart("forward", 2, 1, 0), PhasePart("recompute", 4, 1, 0, 2),
        PhasePart("backward", 8, 1, 0),
    )  # fmt: skip
    assert parts_between(phases, sums, 5, 7) == ()


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_its_words(phase: Phase) -> None:
    (part,) = parts_between(np.array([phase]), sums_of([[1], [1], [1], [0]]), 0, 1)
    assert part.phase == phase.name.lower()
    assert part.phase in PHASE_WORDS
    assert set(PHASE_WORDS) == set(STEP_PHASES)
