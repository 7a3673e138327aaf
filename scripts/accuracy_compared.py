"""One setting of docs/accuracy.md: errors of each method, compared on the seeds that they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from driple.targets import TARGET_NAMES
from driple.training.arena import ALL, SMAPE, TIME, ArenaResult, SplitKind, Spread, TableRow
from driple.training.methods import TRANSFERRED
from driple.training.sureness import Coverage

SPLITS: tuple[SplitKind, ...] = get_args(SplitKind)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One setting: both splits, as far as there are folds."""

    setting: str
    about: str
    results: dict[SplitKind, ArenaResult]
    left_out: dict[str, str]

    @property
    def is_measured(self) -> bool:
        """Whether the labels come from real runs."""
        first = next(iter(self.results.values()))
        return all(item.label_source == "measured" for item in first.dataset.examples)

    @property
    def shipped(self) -> str:
        """The method of the shipped inspector: a transferred one, where there is a way to one."""
        everywhere = all(TRANSFERRED in result.methods for result in self.results.values())
        return TRANSFERRED if everywhere else "default"

    def explained(self, split: SplitKind) -> str | None:
        """Whose error is looked into: the shipped inspector's, or else the best method's."""
        return self.shipped if self.shipped in self.results[split].methods else self.best(split)

    def best(self, split: SplitKind) -> str | None:
        """The method with the least SMAPE over all targets; None where none can be compared."""
        row = self._rows[split].get((SMAPE, ALL))
        return None if row is None else row.best

    def seeds(self, split: SplitKind, methods: Iterable[str]) -> tuple[int, ...]:
        """Seeds that some methods share."""
        return self.results[split].common_seeds(tuple(methods))

    def smape(self, split: SplitKind, method: str, seeds: Sequence[int] = ()) -> Spread | None:
        """SMAPE over all targets, over these seeds or all that the method has; None if none."""
        return self._spread(split, method, (SMAPE, ALL), seeds)

    def time_median(
        self, split: SplitKind, method: str, seeds: Sequence[int] = ()
    ) -> Spread | None:
        """Median error of the iteration time, percent, likewise."""
        return self._spread(split, method, (TIME, "median"), seeds)

    def coverage(self, split: SplitKind) -> Coverage | None:
        """What the intervals of the shipped inspector held; None without folds or intervals."""
        return self._coverages[split]

    @cached_property
    def _coverages(self) -> dict[SplitKind, Coverage | None]:
        return {split: result.coverage(self.shipped) for split, result in self.results.items()}

    def _spread(
        self, split: SplitKind, method: str, name: tuple[str, str], seeds: Sequence[int]
    ) -> Spread | None:
        row = self._rows[split].get(name)
        known = {} if row is None else row.by_seed.get(method, {})
        values = [known[seed] for seed in seeds or known if seed in known]
        return Spread.of(values) if values else None

    @cached_property
    def _rows(self) -> dict[SplitKind, dict[tuple[str, str], TableRow]]:
        """What the tables show, by split, section and name."""
        return {
            split: {(row.section, row.name): row for row in result.rows()}
            for split, result in self.results.items()
        }

    @property
    def floor_pct(self) -> float | None:
        """SMAPE between two runs of one workload."""
        values = self._repeated_pct
        return sum(values[name] for name in TARGET_NAMES) / len(TARGET_NAMES) if values else None

    @property
    def time_floor_pct(self) -> float | None:
        """SMAPE between the iteration times of two runs of one workload, likewise."""
        return self._repeated_pct.get("iteration_time")

    @property
    def _repeated_pct(self) -> dict[str, float]:
        about = next(iter(self.results.values())).dataset.about
        return {} if about.repeatability is None else dict(about.repeatability.smape_pct)


def seed_words(seeds: Sequence[int]) -> str:
    """Such as `seed 0`, `seeds 0 to 4`, `seeds 0, 2`."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


def with_seeds(text: str, seeds: Sequence[int], usual: Sequence[int]) -> str:
    """A cell, with its seeds where they are not the usual ones."""
    return text if not seeds or seeds == usual else f"{text} ({seed_words(seeds)})"
