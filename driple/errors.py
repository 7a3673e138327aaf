"""Errors that Driple raises on purpose.

    DripleError
    ├── GraphError        a graph file that cannot be read, or a graph that cannot be used
    ├── SettingError      a name that is no cluster setting
    ├── ConfigError       an option or a configuration that makes no sense
    │   └── CatalogError  a fact about a device that the catalogue does not have
    ├── TraceError        a trace that cannot be labelled
    ├── SimulationError   a simulation with an impossible result: a fault of Driple
    ├── DatasetError      a data set that cannot be read, or holds what it must not
    ├── CheckpointError   a checkpoint that cannot be loaded
    ├── PredictionError   a graph for which an inspector gives impossible numbers
    ├── MeasureError      a measuring run that failed, or a machine that cannot measure
    ├── EngineError       workers or a cluster that die over and over, or cannot be reached
    └── MissingExtraError an optional dependency that a command needs is not installed

The command line turns each of them into one line on stderr and exit status 2. Every message says
what was found, what was needed and what to do.
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "CatalogError",
    "CheckpointError",
    "ConfigError",
    "DatasetError",
    "DripleError",
    "EngineError",
    "GraphError",
    "MeasureError",
    "MissingExtraError",
    "PredictionError",
    "SettingError",
    "SimulationError",
    "TraceError",
    "install_hint",
    "upgrade_hint",
]

_CHECKOUT = Path(__file__).resolve().parent.parent


class DripleError(Exception):
    """Base of every error that Driple raises on purpose."""


class GraphError(DripleError, ValueError):
    """A graph file cannot be read, or the graph in it cannot be used."""


class SettingError(DripleError, ValueError):
    """A name is not that of a cluster setting."""


class ConfigError(DripleError, ValueError):
    """An option or a configuration value makes no sense."""


class CatalogError(ConfigError):
    """A fact about a device is needed that the catalogue does not have."""


class TraceError(DripleError, ValueError):
    """A trace cannot be labelled as it stands."""


class SimulationError(DripleError, RuntimeError):
    """A simulation gives a number that no device can show: a fault of Driple, not of the input."""


class DatasetError(DripleError, ValueError):
    """A data set cannot be read, or holds what a data set must not hold."""


class CheckpointError(DripleError, ValueError):
    """A checkpoint cannot be loaded."""


class PredictionError(DripleError, ValueError):
    """An inspector has no answer for a graph: what it gives is outside of what can be."""


class MeasureError(DripleError, RuntimeError):
    """A measuring run failed, or this machine cannot do it."""


class EngineError(DripleError, RuntimeError):
    """Workers of an engine die over and over, or its cluster cannot be reached."""


class MissingExtraError(DripleError, ImportError):
    """A command needs an optional dependency that is not installed."""


def install_hint(extra: str) -> str:
    """The command that installs an optional dependency: in a checkout, the checkout's own extras.

    Args:
        extra: as pyproject.toml names it, such as `plot`.
    """
    if _is_checkout():
        return f"pip install -e '.[{extra}]' in the checkout of Driple"
    if _is_from_folder():
        return f"pip install '.[{extra}]' in the checkout of Driple"
    return f"pip install 'driple[{extra}]'"


def upgrade_hint() -> str:
    """The command that gets a newer Driple."""
    return "git pull in the checkout of Driple" if _is_checkout() else "pip install -U driple"


def _is_checkout() -> bool:
    """Whether this package lies in a checkout, beside its pyproject.toml."""
    return (_CHECKOUT / "pyproject.toml").is_file()


def _is_from_folder() -> bool:
    """Whether pip installed this package from a folder and not from an index (PEP 610)."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("driple").read_text("direct_url.json")
    except PackageNotFoundError:
        return False
    return origin is not None and '"dir_info"' in origin
