"""Where data sets lie: datasets/ of this folder or of the checkout, in two levels.

settings/NAME: labels of a setting. runs/: published and measured runs. graphs/: of the models in
them. examples/: graphs to try. A data set of one's own may also lie in datasets/ itself.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["HERE", "SETTINGS", "checkout_or_here", "moved_to", "setting_folders", "settings_in"]

HERE = Path("datasets")
SETTINGS = "settings"
_LEVELS = (SETTINGS, "runs", "graphs")


def checkout_or_here() -> list[Path]:
    """datasets/ of this folder, then the one beside the package's source."""
    return [HERE, Path(str(files("driple"))).parent / HERE]


def settings_in(root: Path) -> list[Path]:
    """Folders of a root in which data sets are looked for by the name of their setting."""
    return [root / SETTINGS, root]


def setting_folders() -> list[Path]:
    """All folders in which data sets are looked for by the name of their setting."""
    return [folder for root in checkout_or_here() for folder in settings_in(root)]


def moved_to(folder: Path) -> Path | None:
    """Where a folder of version 0.1 is now (datasets/NAME is datasets/settings/NAME), if it is."""
    places = (folder.parent / level / folder.name for level in _LEVELS)
    return next((place for place in places if place.is_dir()), None)
