"""`driple evaluate --dataset published-gpu`: corrections of the simulator on published steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.overrides import override, whole
from driple.cli.progress import named_steps
from driple.errors import ConfigError
from driple.render.show import note, print_json, print_table

if TYPE_CHECKING:
    from driple.api.evaluating_published import PublishedResult

__all__ = ["PUBLISHED_GPU", "evaluate_published_gpu"]

PUBLISHED_GPU = "published-gpu"
_FOLDER = Path("datasets") / "runs" / "published"
_MOST_SEEDS = 100
_WORDS = {"family": "model families left out", "device": "each device left out"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of this evaluation."""

    seeds: int = whole(1, "seeds of the network", 1, _MOST_SEEDS)


def evaluate_published_gpu(
    split: str | None,
    against: str,
    *,
    setting: str | None,
    set_: Sequence[str] | None,
    output: Path | None,
    json: bool,
) -> None:
    """Print the errors of the simulator and of each correction.

    Args:
        split: `family`, `device`, or both if None.
        against: `all`, or names of corrections with commas.
        setting: a setting, which is refused.
        set_: `seeds=N`, if given.
        output: a folder, which is refused.
        json: whether one JSON object is printed.

    Raises:
        ConfigError: a split or correction of another name, another value to set, or an option of
            other data sets.
    """
    from driple.api.evaluating_published import evaluate_published

    methods = [] if against == "all" else against.split(",")
    values = override(_Values, set_, of=f" with --dataset {PUBLISHED_GPU}")
    if setting is not None:
        raise ConfigError(
            f"--setting {setting}: --dataset {PUBLISHED_GPU} is of steps on many devices; leave it "
            "out, or give the data set of a setting"
        )
    if output is not None:
        raise ConfigError(
            f"-o {output}: --dataset {PUBLISHED_GPU} writes no files; leave it out, --json prints "
            "the errors"
        )
    with named_steps() as advance:
        result = evaluate_published(
            _FOLDER,
            splits=[] if split is None else [split],
            methods=methods,
            seeds=values.seeds,
            progress=advance,
        )
    if json:
        print_json(result.to_dict())
        return
    _print(result)


def _print(result: PublishedResult) -> None:
    methods = list(dict.fromkeys(score.method for score in result.scores))
    for split in dict.fromkeys(score.split for score in result.scores):
        print(f"{_WORDS[split]}: |predicted - measured| / measured, median and 90th percentile")
        cells: list[list[str]] = []
        bold: set[tuple[int, int]] = set()
        for task in dict.fromkeys(score.task for score in result.scores):
            mine = {
                score.method: score
                for score in result.scores
                if (score.split, score.task) == (split, task)
            }
            if not mine:
                continue
            best = min(mine, key=lambda name: mine[name].median_pct)
            bold.add((len(cells), 2 + methods.index(best)))
            rows = next(iter(mine.values())).rows
            numbers = [
                f"{mine[name].median_pct:.1f} {mine[name].p90_pct:.0f} %" for name in methods
            ]
            cells.append([task, str(rows), *numbers])
        print_table(["steps on one device", "rows", *methods], cells, bold=bold)
        print()
    seeds = max(score.seeds for score in result.scores)
    if seeds > 1:
        note(f"network: means over {seeds} seeds")
    note(
        "simulator: by fits without these families or devices; the others correct it, as they "
        "learned from the remaining rows"
    )
