"""Keep the raw samples of a few runs in a measured data set's folder, and delete the others.

    python -m scripts.settings.reduce_samples FOLDER WORKLOAD [WORKLOAD ...]
    python -m scripts.settings.reduce_samples --shipped

--shipped reduces the six data sets of datasets/ to the runs that pages and tests show. Labels do
not change. datasets/README.md names the commit that holds every sample.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from driple.jobs.workload import Workload
from scripts.settings.archive import reduce_archive

DATASETS = Path(__file__).parents[2] / "datasets" / "settings"
_COMPARED = ("resnet56-x0.5/cifar10/b12/rmsprop/async",)
KEPT: dict[str, Sequence[str]] = {
    "CPU-P1w2_ho-200M": (
        "nmt_medium-x0.0625/europarl-short/b128/sgd/async",
        "densenet40_k12-x0.5/cifar10/b8/adam/sync",
        "inception3-x0.125/imagenet64/b32/momentum/async",
        "resnet20/cifar10/b24/adam/sync",
        *_COMPARED,
    ),
    "CPU-P1w2_he-200M": _COMPARED,
    "CPU-P1w2_ho-400M": _COMPARED,
    "CPU-P1w3_ho-200M": _COMPARED,
    "CPU-P2w2_ho-200M": _COMPARED,
    "CPU25-P1w2_ho-200M": _COMPARED,
}


def reduce_samples(folder: Path, workloads: Sequence[str]) -> int:
    """Keep the first run of each workload; how many runs were deleted."""
    return reduce_archive(folder, [f"{Workload.parse(name).file_name}.r0" for name in workloads])


def main(arguments: Sequence[str] | None = None) -> None:
    """Reduce one folder, or all that are shipped."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--shipped", action="store_true")
    options = parser.parse_args(arguments)
    if options.shipped:
        chosen = {DATASETS / name: workloads for name, workloads in KEPT.items()}
    elif options.folder is not None and options.workloads:
        chosen = {options.folder: options.workloads}
    else:
        parser.error("give FOLDER and at least one WORKLOAD, or --shipped")
    for folder, workloads in chosen.items():
        deleted = reduce_samples(folder, workloads)
        print(f"{folder.name}: samples of {len(workloads)} run(s) stay, {deleted} deleted")


if __name__ == "__main__":
    main()
