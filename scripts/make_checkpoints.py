"""Make checkpoints/: both presets on every measured setting, trained anew and transferred.

    python scripts/make_checkpoints.py [--threads 2] [--presets default,paper]

    <setting>/default.safetensors, paper.safetensors            random split of seed 0
    <setting>/default-transferred.safetensors, ...              from the first setting's checkpoints

Trainings lie where `driple evaluate --work docs/evaluation` looks for them: what one has trained,
the other does not train again. Stop it at any time, the same command goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from shipped import FIRST, ROOT, measured_datasets, run_folder

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import random_split
from driple.errors import DripleError
from driple.files import write_whole
from driple.inspector.checkpoint import load_checkpoint
from driple.settings import Setting
from driple.training.config import preset_named
from driple.training.loop import RunOptions, train
from driple.training.runfiles import CHECKPOINT_FILE
from driple.training.transfer import transfer, transfer_config

CHECKPOINTS = ROOT / "checkpoints"


def file_of(setting: str, name: str) -> Path:
    """Where a checkpoint is shipped."""
    return CHECKPOINTS / Setting.parse(setting).file_name / f"{name}.safetensors"


def anew(dataset: Dataset, preset: str, threads: int) -> Path:
    """Train a preset; its checkpoint."""
    split, chosen = random_split(dataset.workloads, 0), preset_named(preset)
    folder = run_folder(dataset, fingerprint(dataset), split, chosen)
    train(dataset, split, chosen, folder, options=RunOptions(resume=True, threads=threads))
    return folder / CHECKPOINT_FILE


def transferred(dataset: Dataset, preset: str, threads: int) -> Path:
    """Carry the first setting's inspector over; its checkpoint."""
    folder = ROOT / "runs" / f"checkpoint-{Setting.parse(dataset.setting).file_name}-{preset}"
    transfer(
        load_checkpoint(file_of(FIRST, preset)),
        dataset,
        random_split(dataset.workloads, 0),
        transfer_config(preset),
        folder,
        options=RunOptions(resume=True, threads=threads),
    )
    return folder / CHECKPOINT_FILE


def main() -> None:
    """Make what is missing; the first setting comes first, since transfers start from it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--presets", default="default,paper")
    arguments = parser.parse_args()
    for preset in arguments.presets.split(","):
        for dataset in measured_datasets():
            ways = {preset: anew}
            if dataset.setting != FIRST:
                ways[f"{preset}-transferred"] = transferred
            for name, make in ways.items():
                made = make(dataset, preset, arguments.threads)
                target = file_of(dataset.setting, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                write_whole(target, made.read_bytes(), error=DripleError)
                print(f"{target.relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    main()
