"""Write docs/benchmark.md, the data card of the benchmark and all its scores.

    python -m scripts.pages.benchmark [--check]

rows, entries of datasets/runs/benchmark, held-out predictions -> scores.csv, README.md, the page
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.contest import HELD_OUT
from driple.runs.validation.entry import SIMULATOR, EntryScore, errors_on
from driple.runs.validation.predictions import Predictions, read_predictions
from driple.runs.validation.shipped import HELD_OUT as HELD_OUT_FILE
from driple.runs.validation.shipped import Shipped
from scripts.entries.table import BENCHMARK, ENTRIES, benchmark_rows
from scripts.fits.heldout import PUBLISHED, shipped
from scripts.settings.shipped import DOCS
from scripts.studies.kit.page import fill
from scripts.studies.kit.written import Table, options_of, written

__all__ = ["PUBLIC", "Scored", "files", "main", "page_table", "read_entries", "scored"]

PAGE, CARD, SCORES = DOCS / "benchmark.md", BENCHMARK / "README.md", BENCHMARK / "scores.csv"
TEMPLATE = Path(__file__).with_name("benchmark.in.md")
CARD_TEMPLATE = Path(__file__).with_name("benchmark_card.in.md")
LIST = BENCHMARK / "entries.csv"
PUBLIC = ("llm-analysis", "torch-runtime-estimator")
INSPECTOR = "inspector"
_ALL, _BOTH = "all", "both"
_NOTHING = "nothing"
_EMPTY = "-"
_MOST_REASONS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """Errors of an entry in a split, on some of the rows.

    Attributes:
        on: `all`, or the entry whose rows these are; `both` for the rows of all public ones.
        score: the errors; `rows` of it are those that count, `refused` those without a prediction.
    """

    on: str
    score: EntryScore


def read_entries() -> dict[str, dict[str, str]]:
    """The lines of the list of entries, by entry."""
    with LIST.open(encoding="utf-8", newline="") as file:
        return {line["entry"]: line for line in csv.DictReader(file)}


def predictions_of(name: str, rows: Sequence[MeasuredRun]) -> Predictions:
    """The committed predictions of an entry."""
    if name == SIMULATOR:
        return read_predictions(PUBLISHED / HELD_OUT_FILE)
    return read_predictions(ENTRIES / f"{name}.csv.gz", {row.id for row in rows})


def scored(rows: Sequence[MeasuredRun], entries: Mapping[str, Predictions]) -> list[Scored]:
    """Every entry in every split on all rows, and on the rows of each public predictor and of both.

    Args:
        rows: of the benchmark.
        entries: predictions by entry.
    """
    by_split = {
        (split, name): [given.of(row.id, split) for row in rows]
        for name, given in entries.items()
        for split in (_NOTHING, *HELD_OUT)
    }
    covered = {
        name: [entries[name].of(row.id, HELD_OUT[0]) is not None for row in rows]
        for name in PUBLIC
        if name in entries
    }
    if INSPECTOR in entries:
        covered[INSPECTOR] = [entries[INSPECTOR].of(row.id, _NOTHING) is not None for row in rows]
    sets = {_ALL: [True] * len(rows), **covered}
    if set(PUBLIC) <= set(covered):
        sets[_BOTH] = [all(pair) for pair in zip(*(covered[name] for name in PUBLIC), strict=True)]
    scores = []
    for on, inside in sets.items():
        places = [place for place, counts in enumerate(inside) if counts]
        some = [rows[place] for place in places]
        for (split, name), predictions in by_split.items():
            chosen = [predictions[place] for place in places]
            if any(chosen):
                score = errors_on(some, chosen, split=split, predictor=name)
                scores.append(Scored(on=on, score=score))
    return scores


def scores_csv(scores: Sequence[Scored]) -> str:
    """All scores with more digits than the page has."""
    head = ["on", *(field.name for field in fields(EntryScore))]
    return Table(head, [[line.on, *map(_cell, astuple(line.score))] for line in scores]).csv()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def page_table(scores: Sequence[Scored], named: Mapping[str, Mapping[str, str]]) -> Table:
    """A line for each entry: errors in each split, and on the rows of each public predictor."""
    by_key = {(line.on, line.score.predictor, line.score.split): line.score for line in scores}
    others = [on for on in (*PUBLIC, _BOTH) if any(line.on == on for line in scores)]
    counts = {line.on: line.score.rows for line in scores}
    same_rows = [f"the {counts[on]:,} rows of {_words(on, named)}" for on in others]
    left_out = [f"{split} left out" for split in HELD_OUT]
    head = ["predictor", "rows", *left_out, "families alike", "rank", *same_rows]
    rows = []
    for name, line in named.items():
        whole = by_key.get((_ALL, name, HELD_OUT[0]))
        if whole is None:
            continue
        rows.append([
            line["name"],
            f"{whole.rows - whole.refused:,}",
            *(_pair(by_key.get((_ALL, name, split))) for split in HELD_OUT),
            f"{whole.family_median_pct:.1f} / {whole.family_p90_pct:.0f}",
            _EMPTY if whole.spearman is None else f"{whole.spearman:.3f}",
            *(_pair(_whole(by_key.get((on, name, HELD_OUT[0])))) for on in others),
        ])  # fmt: skip
    return Table(head, rows)


def _words(on: str, named: Mapping[str, Mapping[str, str]]) -> str:
    return "both" if on == _BOTH else named[on]["name"]


def _whole(score: EntryScore | None) -> EntryScore | None:
    """The score if it is of all rows of the set: others would not compare."""
    return score if score is not None and not score.refused else None


def _pair(score: EntryScore | None) -> str:
    return _EMPTY if score is None else f"{score.median_pct:.1f} / {score.p90_pct:.0f}"


def inspector_words(scores: Sequence[Scored]) -> str:
    """What the inspectors reach on the rows that they can do, beside the simulator."""
    by_key = {(line.on, line.score.predictor, line.score.split): line.score for line in scores}
    own = by_key.get((INSPECTOR, INSPECTOR, _NOTHING))
    beside = by_key.get((INSPECTOR, SIMULATOR, HELD_OUT[0]))
    if own is None or beside is None:
        return "no row of the benchmark"
    return (
        f"{own.rows} rows: {own.median_pct:.0f} % off in the median and {own.p90_pct:.0f} % for "
        f"one in ten, where the simulator without the family is {beside.median_pct:.0f} and "
        f"{beside.p90_pct:.0f} % off"
    )


def refused_lines(name: str) -> list[str]:
    """How many rows an entry refuses for its most frequent reasons."""
    with (ENTRIES / f"{name}-refused.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    return [
        f"{int(line['rows']):,} ({line['reason']})"
        for line in sorted(lines, key=lambda line: -int(line["rows"]))[:_MOST_REASONS]
    ]


def card_parts(everything: Shipped, named: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Counts of the data card, its tables of sources and of entries."""
    rows = everything.rows
    train = [row for row in rows if row.task == "train"]
    sources = Table(
        ["source", "training steps", "forward passes", "families", "devices"],
        [[name, *map(str, counts)] for name, counts in _by_source(rows)],
    )
    entries = Table(
        ["entry", "what it learns from", "source", "version", "licence", "made on"],
        [[name, *(line[column] for column in ("learns", "source", "version", "licence", "date"))]
         for name, line in named.items()],
    )  # fmt: skip
    return {
        "training": f"{len(train):,}",
        "forward": f"{len(rows) - len(train):,}",
        "families": str(len({row.family for row in train})),
        "devices": str(len({row.device for row in train})),
        "num_sources": str(len({row.source for row in train})),
        "most_devices": f"{max(row.num_devices for row in train):,}",
        "largest": _largest(train),
        "sources": sources.markdown(),
        "entries": entries.markdown(),
    }


def _largest(rows: Sequence[MeasuredRun]) -> str:
    (source, count) = Counter(row.source for row in rows).most_common(1)[0]
    return f"{source} has {100 * count / len(rows):.0f} % of the training steps"


def _by_source(rows: Sequence[MeasuredRun]) -> Iterator[tuple[str, tuple[int, ...]]]:
    sources: dict[str, list[MeasuredRun]] = {}
    for row in rows:
        sources.setdefault(row.source, []).append(row)
    for name, some in sorted(sources.items(), key=lambda item: (-len(item[1]), item[0])):
        train = sum(row.task == "train" for row in some)
        families = len({row.family for row in some})
        yield name, (train, len(some) - train, families, len({row.device for row in some}))


def files() -> dict[Path, str]:
    """Text of each file that this program writes."""
    rows, named = benchmark_rows(), read_entries()
    scores = scored(rows, {name: predictions_of(name, rows) for name in named})
    parts = card_parts(shipped(training=False), named)
    counts = {name: parts[name] for name in ("training", "families", "devices", "num_sources")}
    refused = "; ".join(
        f"{named[name]['name']}, {', '.join(refused_lines(name))}" for name in PUBLIC
    )
    page_parts = {
        **counts,
        "table": page_table(scores, named).markdown(),
        "inspector": inspector_words(scores),
        "refused": refused,
    }
    return {
        SCORES: scores_csv(scores),
        CARD: fill(CARD_TEMPLATE.read_text(encoding="utf-8"), parts),
        PAGE: fill(TEMPLATE.read_text(encoding="utf-8"), page_parts),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files, or name those that are not up to date."""
    check = options_of(__doc__).parse_args(argv).check
    return written(files(), check=check, program="python -m scripts.pages.benchmark")


if __name__ == "__main__":
    sys.exit(main())
