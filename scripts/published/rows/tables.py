"""All published tables from the gathered ones.

    folder of gathered tables + batches of lambda + names of timm -> training and forward rows

Each source has its reader; rows keep the order of the gathered table. Folds are given last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from driple.errors import ConfigError
from driple.runs.published_runs import PublishedRun
from scripts.published.rows import (
    dlperf,
    examples,
    flagperf,
    lambda_runs,
    language,
    megatron,
    mlperf,
    timm_runs,
)
from scripts.published.rows.cells import Raw, number
from scripts.published.rows.families import assign_folds
from scripts.published.rows.timm_runs import TimmName

__all__ = ["Facts", "counts", "forward_rows", "monitored_runs", "training_rows", "with_folds"]


_OTHERS: Mapping[str, Callable[[Iterable[Raw]], Iterable[PublishedRun]]] = MappingProxyType({
    examples.SOURCE: examples.example_rows,
    dlperf.SOURCE: dlperf.dlperf_rows,
    flagperf.SOURCE: flagperf.flagperf_rows,
})  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What the readers need besides the gathered rows.

    Attributes:
        batches: rows of `lambda_batches.csv.gz`.
        names: what timm's names are today.
        util_pct: mean utilisation of monitored runs, by source file.
    """

    batches: lambda_runs.Batches
    names: Mapping[str, TimmName]
    util_pct: Mapping[str, float]

    @classmethod
    def of(cls, batches: Iterable[Raw], names: Iterable[Raw], util: Iterable[Raw]) -> Facts:
        """Facts of the rows of the three tables."""
        means = {row["source_file"]: number(row["util_mean"]) for row in util}
        return cls(
            batches=lambda_runs.read_batches(batches),
            names=timm_runs.read_names(names),
            util_pct={name: mean for name, mean in means.items() if mean is not None},
        )


def training_rows(raw: Sequence[Raw], facts: Facts) -> list[PublishedRun]:
    """Every gathered training row, cleaned; without folds.

    Raises:
        ConfigError: a source that no reader knows, or a row that no reader can take.
    """
    by_source: dict[str, list[Raw]] = defaultdict(list)
    for row in raw:
        # A result that was submitted again to a later round of MLPerf is found as a duplicate.
        rounds = row["source"].startswith(mlperf.SOURCE)
        by_source[mlperf.SOURCE if rounds else row["source"]].append(row)
    rows: list[PublishedRun] = []
    for source, items in by_source.items():
        rows += _without_duplicates(_read(source, items, facts))
    return rows


def _without_duplicates(rows: Iterable[PublishedRun]) -> list[PublishedRun]:
    """The same job with the same time, twice in a source: the second is unused.

    Lambda's rows are left: many of its machines are identical, and its reader knows its tables.
    """
    seen: dict[PublishedRun, str] = {}
    kept = []
    for row in rows:
        if row.usable and row.source not in (lambda_runs.SOURCE, timm_runs.SOURCE):
            bare = replace(
                row, id="-", source="-", source_file="", date="", library="-", framework=""
            )
            first = seen.setdefault(bare, row.id)
            if first != row.id:
                row = replace(row, unused_why=f"duplicate: of {first}")  # noqa: PLW2901
        kept.append(row)
    return kept


def _read(source: str, items: Sequence[Raw], facts: Facts) -> Iterable[PublishedRun]:
    if source == lambda_runs.SOURCE:
        return lambda_runs.lambda_rows(items, facts.batches, facts.util_pct)
    if source == timm_runs.SOURCE:
        return timm_runs.training_rows(items, facts.names)
    for readers in (language.READERS, megatron.READERS):
        if source in readers:
            return map(readers[source], items)
    if source.startswith(mlperf.SOURCE):
        return mlperf.mlperf_rows(items)
    if source in _OTHERS:
        return _OTHERS[source](items)
    raise ConfigError(f"no reader knows the source {source!r} of the gathered rows")


def monitored_runs(
    runs: Iterable[Raw], training: Iterable[Raw], facts: Facts
) -> dict[str, PublishedRun]:
    """Runs of the table of utilisation, read as the monitored training rows are, by source file."""
    rows = list(training)
    canonical = {row["gpu"]: row["gpu_canonical"] for row in rows}
    empty = dict.fromkeys(rows[0], "") if rows else {}
    filled = (
        {**empty, **run, "file": "lambda_run_monitor.csv", "gpu_canonical": canonical[run["gpu"]]}
        for run in runs
    )
    read = lambda_runs.lambda_rows(filled, facts.batches, facts.util_pct)
    return {row.source_file: row for row in read}


def forward_rows(raw: Iterable[Raw], facts: Facts) -> list[PublishedRun]:
    """Every gathered forward pass, cleaned; without folds."""
    return list(timm_runs.forward_rows(raw, facts.names))


def with_folds(
    training: Sequence[PublishedRun], forward: Sequence[PublishedRun], known: Mapping[str, int]
) -> tuple[list[PublishedRun], list[PublishedRun], dict[str, tuple[int, int, int]]]:
    """Both tables with the folds of their families, and fold and usable rows of each family.

    Args:
        training: rows without folds.
        forward: rows without folds.
        known: folds that were given before.
    """
    usable = tuple(
        Counter(row.family for row in rows if row.usable) for rows in (training, forward)
    )
    families = {row.family for rows in (training, forward) for row in rows if row.family}
    sizes = {family: (usable[0][family], usable[1][family]) for family in families}
    folds = assign_folds(sizes, known)

    def folded(rows: Sequence[PublishedRun]) -> list[PublishedRun]:
        return [replace(row, fold=folds.get(row.family)) for row in rows]

    table = {family: (fold, *sizes[family]) for family, fold in folds.items()}
    return folded(training), folded(forward), table


def counts(rows: Iterable[PublishedRun]) -> dict[str, Counter[str]]:
    """How many rows of each source are used (empty reason), and how many not, by reason."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        table[row.source][row.unused_why.partition(":")[0]] += 1
    return table
