"""Make the tables of published PyTorch rows from the tables as they were gathered.

    FOLDER of gathered tables -> datasets/runs/published: pytorch_rows, pytorch_forward, folds, ...

    python -m scripts.published.pytorch_rows FOLDER [--out datasets/runs/published]

`--timm-names` first writes `timm_names.csv.gz` anew; it needs timm (1.0.31 made the shipped one).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from driple.errors import ConfigError, DripleError
from driple.files import atomic_write
from driple.runs.published_runs import FORWARD_FILE, TRAINING_FILE
from scripts.fits.writing import write_published
from scripts.published.rows import tables
from scripts.published.rows.cells import read_raw
from scripts.published.rows.families import timm_family
from scripts.published.rows.ops import OPS_COLUMNS, kernel_rows, op_rows
from scripts.published.rows.utilisation import UTILISATION_COLUMNS, utilisation_rows

_PUBLISHED = Path(__file__).resolve().parents[2] / "datasets" / "runs" / "published"
_LAMBDA, _NAMES, _FOLDS = "lambda_batches.csv.gz", "timm_names.csv.gz", "folds.csv"
_OPS, _UTILISATION = "pytorch_ops.csv.gz", "utilisation_runs.csv.gz"
# Removed from timm without a note; parameters, multiply-adds and activations are the same.
_SAME = {"gluon_xception65": "xception65"}


def _write(file: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    content = stream.getvalue().encode()
    packed = gzip.compress(content, 9, mtime=0) if file.suffix == ".gz" else content
    atomic_write(file, packed, error=ConfigError)


def _timm_names(names: set[str]) -> list[tuple[str, str, str]]:
    """Each name, its JOB in the installed timm (empty if it is gone), and its family."""
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    import timm
    from timm.models import get_deprecated_models, model_entrypoint

    renamed = get_deprecated_models()  # old name -> new name with its tag
    table = []
    for name in sorted(names):
        today = renamed.get(name) or _SAME.get(name, name)
        base, _, tag = today.partition(".")
        if not timm.is_model(base):
            table.append((name, "", ""))
            continue
        module = model_entrypoint(base).__module__.rpartition(".")[2]
        usual = timm.get_pretrained_cfg(base)
        tagged = timm.get_pretrained_cfg(today) if tag else usual
        other_head = usual and tagged and usual.num_classes != tagged.num_classes
        job = f"timm:{today if other_head else base}"
        table.append((name, job, timm_family(base, module)))
    return table


def _known_folds(file: Path) -> dict[str, int]:
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as stream:
        return {row["family"]: int(row["fold"]) for row in csv.DictReader(stream)}


def make(folder: Path, out: Path, *, timm_names: bool) -> None:
    """Write every table into `out`.

    Args:
        folder: of the gathered tables.
        out: folder of the published tables; holds `lambda_batches.csv.gz`.
        timm_names: write `timm_names.csv.gz` anew.
    """
    training, forward = (
        read_raw(folder / "training_rows.csv.gz"),
        read_raw(folder / "timm_inference.csv.gz"),
    )
    if timm_names:
        names = {row["model"] for row in [*training, *forward] if row["source"] == "timm"}
        _write(out / _NAMES, ("name", "job", "family"), _timm_names(names))
    facts = tables.Facts.of(
        read_raw(out / _LAMBDA),
        read_raw(out / _NAMES),
        read_raw(folder / _UTILISATION),
    )
    cleaned, passes, folds = tables.with_folds(
        tables.training_rows(training, facts),
        tables.forward_rows(forward, facts),
        _known_folds(out / _FOLDS),
    )
    write_published(out / TRAINING_FILE, cleaned)
    write_published(out / FORWARD_FILE, passes)
    _write(
        out / _OPS,
        OPS_COLUMNS,
        [
            *op_rows(read_raw(folder / "neusight_ops.csv.gz")),
            *kernel_rows(read_raw(folder / "neusight_kernels.csv.gz")),
        ],
    )
    monitored = read_raw(folder / _UTILISATION)
    runs = tables.monitored_runs(monitored, training, facts)
    listed = utilisation_rows(monitored, runs, cleaned)
    _write(out / _UTILISATION, UTILISATION_COLUMNS, listed)
    header = ("family", "fold", "training_rows", "forward_rows")
    _write(out / _FOLDS, header, [(family, *cells) for family, cells in folds.items()])
    for source, reasons in tables.counts([*cleaned, *passes]).items():
        total, used = sum(reasons.values()), reasons.pop("", 0)
        unused = "".join(f"; {count} {why}" for why, count in reasons.most_common())
        print(f"{source}: {used} of {total} rows used{unused}")


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments and make the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of the gathered tables")
    parser.add_argument("--out", type=Path, default=_PUBLISHED, help="folder of the tables made")
    parser.add_argument("--timm-names", action="store_true", help="write timm_names.csv.gz anew")
    args = parser.parse_args(argv)
    try:
        make(args.folder, args.out, timm_names=args.timm_names)
    except DripleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
