"""Plug-ins: packages that add readers of jobs and schemes, found by entry points when first needed.

    entry points of a group --load, check--> what packages add, each with the name of its plug-in

A plug-in is code that the user installed. Names that Driple itself knows are never looked up here,
so no question about them waits for a search, or ends for a broken plug-in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from driple.errors import ConfigError, DripleError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["READERS", "SCHEMES", "PlugIn", "plug_ins"]

READERS, SCHEMES = "driple.readers", "driple.schemes"


@dataclass(frozen=True, slots=True)
class PlugIn:
    """What an installed package adds.

    Attributes:
        name: of the entry point, with its package, for messages.
        value: what it names, such as a `JobReader`.
    """

    name: str
    value: Any

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Errors in the block that are not Driple's own name the plug-in.

        Raises:
            ConfigError: the code of the plug-in failed.
        """
        try:
            yield
        except DripleError:
            raise
        except Exception as error:  # code of others may fail in any way
            raise ConfigError(
                f"{self.name} failed: {_words(error)}; mend or uninstall it (--verbose shows where)"
            ) from error


@cache
def plug_ins(group: str, needed: str, fits: Callable[[object], bool]) -> tuple[PlugIn, ...]:
    """All plug-ins of a group, in the order of their names; searched and loaded once.

    Args:
        group: `READERS` or `SCHEMES`.
        needed: what an entry point of the group has to name, for messages.
        fits: whether something is that.

    Raises:
        ConfigError: a plug-in cannot be loaded, or names something else; the message names it.
    """
    from importlib.metadata import entry_points

    return tuple(
        _loaded(point, needed, fits)
        for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value))
    )


def _loaded(point: EntryPoint, needed: str, fits: Callable[[object], bool]) -> PlugIn:
    package = "" if point.dist is None else f" of {point.dist.name} {point.dist.version}"
    name = f"plug-in '{point.name}'{package} ({point.value})"
    try:
        value = point.load()
    except Exception as error:  # code of others may fail in any way
        raise ConfigError(
            f"{name} cannot be loaded: {_words(error)}; mend or uninstall it"
        ) from error
    if not fits(value):
        raise ConfigError(
            f"{name} is {type(value).__name__}, and {needed} is needed; mend or uninstall it"
        )
    return PlugIn(name, value)


def _words(error: Exception) -> str:
    """Kind and words of an error."""
    return f"{type(error).__name__}: {error}"[:300]
