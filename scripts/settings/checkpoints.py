"""Make checkpoints/: inspectors of the settings of datasets/.

    python -m scripts.settings.checkpoints [--labels measured] [--presets default,paper]
                                           [--threads 2] [--settings V100-P1w2,2080Ti-P1w2]
                                           [--all]

    CPU-P1w2_ho-200M/default.safetensors, paper.safetensors     trained anew on measured labels
    <other measured setting>/default.safetensors, ...           from those
    V100-P1w2_ho-PCIe/default.safetensors, paper.safetensors    trained anew on simulated labels
    <other simulated setting>/default.safetensors, ...          from those, with 320 labels

What answers no question by default does not ship, as `driple train` makes it: preset paper of all
simulated settings but the first, and both presets of 8xA100, 8xB200 and 4x8xH100. With --all they
are made too, for studies that compare them.
All are tested on the test part of the random split of seed 0. Trainings on measured labels are kept
where `driple evaluate -o datasets/runs/evaluation` looks for them: what one has trained, the other
does not train again. Stop it at any time, the same command goes on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import limited_split, random_split
from driple.dataset.store import read_datasets
from driple.errors import DripleError
from driple.features import Groupings
from driple.files import atomic_write
from driple.inspector.checkpoint import load_checkpoint
from driple.training.config import preset_named
from driple.training.runfiles import CHECKPOINT_FILE
from driple.training.train import RunOptions, train
from driple.training.transfer import transfer, transfer_config
from scripts.settings.shipped import (
    FIRST,
    FIRST_SIMULATED,
    ROOT,
    inspector_file,
    measured_folders,
    run_folder,
    simulated_folders,
)

# No inspector of these ships: the simulator answers for them.
UNSHIPPED = frozenset({"8xA100/NVLink", "8xB200/NVLink", "4x8xH100/NVLink+400G"})
TRANSFERRED_LABELS = 320  # the paper's, for every setting but the first (section 4.2.1)


def anew(dataset: Dataset, preset: str, options: RunOptions, groupings: Groupings) -> Path:
    """Train a preset; its checkpoint."""
    split, chosen = random_split(dataset.workloads, 0), preset_named(preset)
    folder = run_folder(dataset, fingerprint(dataset), split, chosen)
    train(dataset, split, chosen, folder, options=options, groupings=groupings)
    return folder / CHECKPOINT_FILE


def transferred(
    dataset: Dataset,
    preset: str,
    options: RunOptions,
    groupings: Groupings,
    *,
    source: str,
    labels: int = 0,
) -> Path:
    """Carry the inspector of the setting `source` over; its checkpoint."""
    folder = ROOT / "runs" / f"checkpoint-{Setting.parse(dataset.setting).file_name}-{preset}"
    split = random_split(dataset.workloads, 0)
    if labels:
        split = limited_split(split, dataset.workloads, labels, 0)
    transfer(
        load_checkpoint(inspector_file(source, preset)),
        dataset,
        split,
        transfer_config(preset),
        folder,
        options=options,
        groupings=groupings,
    )
    return folder / CHECKPOINT_FILE


def ships(setting: str, preset: str, labels: str) -> bool:
    """Whether the inspector of a setting and preset is one of those that are installed."""
    if labels == "measured":
        return True
    return setting not in UNSHIPPED and (preset == "default" or setting == FIRST_SIMULATED)


def way_of(dataset: Dataset, labels: str) -> Callable[..., Path] | None:
    """The function that makes the inspectors of a data set; None for a setting without any."""
    if Setting.parse(dataset.setting).num_workers == 1:
        return None  # nothing crosses a network, which is half of the targets
    if dataset.setting in {FIRST, FIRST_SIMULATED}:
        return anew
    if labels == "measured":
        return partial(transferred, source=FIRST)
    return partial(transferred, source=FIRST_SIMULATED, labels=TRANSFERRED_LABELS)


def main() -> None:
    """Make them; the first setting comes first, since transfers start from it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", default="measured", choices=("measured", "simulated"))
    parser.add_argument("--presets", default="default,paper")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--settings", default="", help="those alone, in place of all")
    parser.add_argument("--all", action="store_true", help="those that do not ship, too")
    arguments = parser.parse_args()
    folders = measured_folders() if arguments.labels == "measured" else simulated_folders()
    if arguments.settings:
        wanted = {Setting.parse(name).name for name in arguments.settings.split(",")}
        folders = {name: folder for name, folder in folders.items() if name in wanted}
    datasets = read_datasets(folders.values())
    options, groupings = RunOptions(resume=True, threads=arguments.threads), Groupings()
    for preset in arguments.presets.split(","):
        for dataset in datasets:
            make = way_of(dataset, arguments.labels)
            if make and (arguments.all or ships(dataset.setting, preset, arguments.labels)):
                file = make(dataset, preset, options, groupings)
                target = inspector_file(dataset.setting, preset)
                target.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(target, file.read_bytes(), error=DripleError)
                print(f"{target.relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    main()
