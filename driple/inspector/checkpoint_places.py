"""Location of a setting's checkpoint: the folder `checkpoints/` here, or the installed ones."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from driple.cluster.setting import Setting
from driple.errors import CheckpointError

__all__ = ["checkpoint_files", "checkpoint_path", "settings_with_checkpoint"]

_HERE = Path("checkpoints")
_SUFFIX = ".safetensors"
_ANY = f"*{_SUFFIX}"
_TRAINABLE = ("default", "paper")  # presets of `driple train`


def _folders() -> list[Path]:
    installed = Path(str(files("driple"))) / "checkpoints"
    source = Path(str(files("driple"))).parent / "checkpoints"
    return [folder for folder in (_HERE, installed, source) if folder.is_dir()]


def settings_with_checkpoint() -> list[str]:
    """Names of the settings that have a checkpoint, sorted."""
    names = {
        place.name.replace("_", "/", 1)
        for folder in _folders()
        for place in os.scandir(folder)
        if place.is_dir() and any(file.name.endswith(_SUFFIX) for file in os.scandir(place))
    }
    return sorted(names)


def checkpoint_files(setting: Setting) -> dict[str, Path]:
    """Checkpoint files of a setting by preset, in order of presets; none if it has none."""
    files: dict[str, Path] = {}
    for folder in _folders():
        place = folder / setting.file_name
        if place.is_dir():  # asked for each answer: most settings have none
            for path in place.glob(_ANY):
                files.setdefault(path.stem, path)
    return dict(sorted(files.items()))


def checkpoint_path(setting: Setting, preset: str) -> Path:
    """The checkpoint file of a setting and preset.

    Raises:
        CheckpointError: there is none; the message lists the presets of the setting,
            or else which settings, and the command that makes it.
    """
    known = checkpoint_files(setting)
    if preset in known:
        return known[preset]
    command = f"driple train --setting {setting.name} --preset {preset}"
    if preset not in _TRAINABLE:
        command = f"driple train --setting {setting.name}"
    if known:
        make = f"; make it: {command}" if preset in _TRAINABLE else ""
        raise CheckpointError(
            f"no '{preset}' checkpoint for {setting.name} (its presets are: "
            f"{', '.join(known)}); choose one of these, or give a checkpoint file{make}"
        )
    settings = ", ".join(settings_with_checkpoint()) or "none yet"
    raise CheckpointError(
        f"no '{preset}' checkpoint for {setting.name} (there are: {settings}); choose one of "
        f"these, give a checkpoint file, or train one: {command}"
    )
