"""Make the table of rows of large clusters from clones of public repositories.

    FOLDER/owner+name (git folders) -> datasets/runs/published/cluster_rows.csv.gz

    python -m scripts.published.cluster_rows FOLDER [--out datasets/runs/published]

The table has the columns of `pytorch_rows.csv.gz`. No fit reads it; sources that also stay out of
every choice say so in `unused_why`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from driple.errors import ConfigError, DripleError
from driple.runs.published_runs import PublishedRun
from driple.runs.validation.splits import read_folds
from scripts.fits.writing import write_published
from scripts.published.rows import clusters, mlperf
from scripts.published.rows.cells import Raw
from scripts.published.rows.language import READERS as LANGUAGE
from scripts.published.rows.megatron import READERS as MEGATRON

FILE = "cluster_rows.csv.gz"
KEPT_APART = "kept for checks: no fit and no choice sees this source"
_PUBLISHED = Path(__file__).resolve().parents[2] / "datasets" / "runs" / "published"
_WRONG = ("throughput_check", "batch", "model", "unknown")  # reasons that stand for checks, too
_FIRST = 20_000  # number of the first row's id; those of `pytorch_rows` are below
_DGXC = {  # releases before 2025-09-05
    "68eaf7e": "25.05", "60d6fd3": "25.05.01", "dfc8039": "25.05.02", "1f6d9f4": "25.05.04",
}  # fmt: skip
_WORKLOADS = ("deepseek_v3/pretraining", "grok1", "llama3.1", "llama4", "nemotron")


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments and make the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="holds a git folder owner+name of each source")
    parser.add_argument("--out", type=Path, default=_PUBLISHED, help="folder of the table")
    given = parser.parse_args(argv)
    try:
        rows = made(given.folder, given.out)
    except DripleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_published(given.out / FILE, rows)
    for source in clusters.SOURCES.values():
        some = [row for row in rows if row.source == source.name]
        print(f"{source.name}: {len(some)} rows")
    return 0


def made(folder: Path, published: Path) -> list[PublishedRun]:
    """The rows of all sources.

    Raises:
        ConfigError: a repository cannot be read.
    """
    folds = read_folds(published / "folds.csv")
    raw = chain(_bridge(folder), _dgxc(folder), _mlperf(folder), clusters.small_rows())
    rows = [_read({**row, "row": str(_FIRST + number)}) for number, row in enumerate(raw)]
    apart = {source.name for source in clusters.SOURCES.values() if source.for_checks}
    rows = [
        replace(row, unused_why=KEPT_APART)
        if row.source in apart and not row.unused_why.startswith(_WRONG)
        else row
        for row in rows
    ]
    return [replace(row, fold=folds.get(row.family)) for row in rows]


def _read(row: Raw) -> PublishedRun:
    source = row["source"]
    if source.startswith(mlperf.SOURCE):
        return next(mlperf.mlperf_rows([row]))
    reader = LANGUAGE.get(source) or MEGATRON[source]
    return reader(row)


def _bridge(folder: Path) -> Iterator[Raw]:
    source = clusters.SOURCES["bridge"]
    for file in ("docs/performance-summary.md", "docs/performance-summary-archive.md"):
        yield from clusters.bridge_rows(_text(folder, source.repository, source.commit, file), file)


def _dgxc(folder: Path) -> Iterator[Raw]:
    repository = clusters.SOURCES["dgxc"].repository
    return clusters.dgxc_rows([
        (workload, release, _text(folder, repository, commit, f"{workload}/README.md"))
        for commit, release in _DGXC.items() for workload in _WORKLOADS
    ])  # fmt: skip


def _mlperf(folder: Path) -> Iterator[Raw]:
    source = clusters.SOURCES["mlperf"]
    listed = _git(folder, source.repository, "ls-tree", "-r", source.commit, "--name-only")
    for log in listed.splitlines():
        parts = log.split("/")
        if len(parts) != 5 or parts[1] != "results" or parts[4] != "result_1.txt":
            continue
        system = f"{parts[0]}/systems/{parts[2]}.json"
        try:
            text = _text(folder, source.repository, source.commit, log)
        except ConfigError:
            continue  # a log that the clone lacks, as it is too large
        row = clusters.mlperf_row(
            "/".join(parts[:4]), _text(folder, source.repository, source.commit, system), text
        )
        if row is not None:
            yield row


def _text(folder: Path, repository: str, commit: str, file: str) -> str:
    return _git(folder, repository, "show", f"{commit}:{file}")


def _git(folder: Path, repository: str, *arguments: str) -> str:
    clone = folder / repository.replace("/", "+")
    inner = clone / "repo" if (clone / "repo").exists() else clone
    done = subprocess.run(
        ["git", f"--git-dir={inner}", *arguments], capture_output=True, check=False
    )
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()[:200]
        raise ConfigError(f"cannot read {repository} in {folder}: {message}")
    return done.stdout.decode("utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main())
