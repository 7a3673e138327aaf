"""The fields of a tool's training configs: those that are read, harmless, or decisive.

    Format (three lists, what the tool does by itself) + Rule of each field that is read

A field in none of the lists is unknown. It counts as decisive, as it may change anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from driple.jobs.training_config.config import BOTH, Changes

__all__ = [
    "OFF",
    "Decisive",
    "Format",
    "NotModelledError",
    "RefusedError",
    "Rule",
    "Values",
    "words",
]

Values = Mapping[str, Any]
"""Values of a file by dotted key."""
Rule = Callable[[Any, Values], Mapping[str, Any]]
"""(value of a field, all values) -> values by their names in `TrainingConfig`, or in `Said`."""

OFF: tuple[Any, ...] = (None, False, "", "none", "None", "no", "NO", "null", "false", "off", 0)
"""Values under which a decisive field changes nothing."""


class RefusedError(Exception):
    """A value of a field cannot be; the message says what is needed."""


class NotModelledError(Exception):
    """A value of a field that its tool takes, and of which Driple has no model.

    Attributes:
        changes: what the value changes of the answer.
        settled_by: option of a job that decides in its place; empty if there is none.
    """

    def __init__(self, changes: Changes = BOTH, settled_by: str = "") -> None:
        super().__init__()
        self.changes, self.settled_by = changes, settled_by


@dataclass(frozen=True, kw_only=True, slots=True)
class Decisive:
    """A field that changes the answer, and of which Driple has no model.

    Attributes:
        changes: what it changes.
        off: values, besides `OFF`, under which it changes nothing; the tool's default among them.
        settled_by: option of a job that decides in its place; empty if there is none.
    """

    changes: Changes = BOTH
    off: tuple[Any, ...] = ()
    settled_by: str = ""

    def is_off(self, value: Any) -> bool:
        """Whether a value changes nothing."""
        if isinstance(value, (list, dict)):
            return not value or value in self.off
        return any(
            value == known and isinstance(value, bool) == isinstance(known, bool)
            for known in (*OFF, *self.off)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """Training configs of one tool.

    Attributes:
        name: of the tool, as people write it.
        read: rule of each field that is read.
        beside: fields that rules of other fields read.
        harmless: fields that change neither memory nor time of a step; `x*` is all that begin so.
        decisive: fields that change them and are not modelled; `x*` is all that begin so.
        usual: what the tool does where a file says nothing, by name in `TrainingConfig`.
        derived: what follows from all values together, such as the precision.
    """

    name: str
    read: Mapping[str, Rule]
    beside: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    decisive: Mapping[str, Decisive] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    derived: Callable[[dict[str, Any], Values], None] = lambda said, values: None

    def lists_with(self, key: str) -> tuple[str, ...]:
        """Names of the lists that have a field: `read`, `harmless`, `decisive`.

        A field's own entry comes before those of all that begin alike, a longer before a shorter.
        """
        is_read = key in self.read or key in self.beside
        entries = {
            "read": key if is_read else None,
            "harmless": _entry(key, self.harmless),
            "decisive": _entry(key, self.decisive),
        }
        ranks = {
            name: (entry == key, len(entry)) for name, entry in entries.items() if entry is not None
        }
        best = max(ranks.values(), default=None)
        return tuple(name for name, rank in ranks.items() if rank == best)

    def knows(self, key: str) -> bool:
        """Whether a field is in one of the lists."""
        return bool(self.lists_with(key))

    def decisive_entry(self, key: str) -> Decisive | None:
        """What is known of a decisive field; None if it is none."""
        if "decisive" not in self.lists_with(key):
            return None
        return self.decisive[_entry(key, self.decisive) or key]


def _entry(key: str, names: frozenset[str] | Mapping[str, Decisive]) -> str | None:
    """The entry that stands for a field: its own, or the longest `x*` that it begins with."""
    if key in names:
        return key
    fitting = [one for one in names if one.endswith("*") and key.startswith(one[:-1])]
    return max(fitting, key=len, default=None)


def words(text: str) -> frozenset[str]:
    """The names of a text, which white space parts."""
    return frozenset(text.split())
