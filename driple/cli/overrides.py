"""`--set NAME=VALUE`: values that few users change, declared once with their bounds.

class _Values:                                            (a frozen dataclass)
    share: float = number(0.4, "cores of a worker", above=0, most=1024)

override(_Values, ["share=0.8"])  ->  _Values(share=0.8), or ConfigError naming `--set share`
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, cast

from typer.models import OptionInfo

from driple import rules
from driple.engine.engine import ENGINES
from driple.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "SetOption",
    "SetTable",
    "SetValue",
    "choice",
    "engine_name",
    "number",
    "override",
    "read_values",
    "set_option",
    "set_values",
    "switch",
    "table_of",
    "text",
    "texts",
    "whole",
]

Values = TypeVar("Values", bound="DataclassInstance")
_RULE, _HELP = "driple_rule", "driple_help"  # in the metadata of a field
_HELP_WIDTH = 45  # columns beside the names of the options in a terminal of 80
_WRAP: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


@dataclass(frozen=True, slots=True)
class SetValue:
    """One value that `--set` changes.

    Attributes:
        name: as it is typed.
        help: what it means.
        rule: how it is read and checked.
        default: as the help shows it; None is the program's.
    """

    name: str
    help: str
    rule: rules.OptionRule
    default: object = None

    @property
    def lines(self) -> list[str]:
        """Its lines in the help of `--set`."""
        usual = "" if self.default in (None, (), "") else f"={rules.shown(self.default)}"
        words = f"{self.name}{usual}: {self.help}"
        return textwrap.wrap(words, _HELP_WIDTH, subsequent_indent="  ", **_WRAP)


@dataclass(frozen=True, slots=True)
class SetTable:
    """Values of one kind of argument.

    Attributes:
        title: names the kind where a command has several, such as `Of a JOB`.
        values: in the order of the help.
    """

    title: str
    values: tuple[SetValue, ...]


class SetOption(OptionInfo):
    """The option `--set` of a command, which knows the values that it changes."""

    def __init__(self, *tables: SetTable) -> None:
        self.tables = tables
        lines = textwrap.wrap("change a value; may be given several times:", _HELP_WIDTH)
        for table in tables:
            lines += [f"{table.title}:"] if table.title and len(tables) > 1 else []
            lines += [line for value in table.values for line in value.lines]
        super().__init__(
            default=...,
            param_decls=("--set",),
            metavar="NAME=VALUE",
            help="\b\n" + "\n".join(lines),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all values, as they are typed."""
        return tuple(value.name for table in self.tables for value in table.values)


def whole(default: int | None, help_: str, least: int, most: int) -> Any:
    """A field with a whole number from `least` to `most`; a default of None is the program's."""
    return _declared(default, help_, rules.whole(least, most))


def number(
    default: float | None,
    help_: str,
    *,
    least: float = -inf,
    above: float = -inf,
    most: float = inf,
) -> Any:
    """A field with a finite number within the bounds; a default of None is the program's."""
    return _declared(default, help_, rules.number(least=least, above=above, most=most))


def text(default: str | None, help_: str) -> Any:
    """A field with any text; a default of None is the program's."""
    return _declared(default, help_, rules.text())


def texts(help_: str) -> Any:
    """A field with any number of texts, each given by a `--set` of its own; none by default."""
    return _declared((), help_, rules.texts())


def choice(default: str, help_: str, names: Sequence[str]) -> Any:
    """A field with one of some names."""
    return _declared(default, help_, rules.choice(names))


def engine_name() -> Any:
    """A field with the engine that runs tasks."""
    return choice("local", "processes of this machine, or ray: the cluster of RAY_ADDRESS", ENGINES)


def switch(default: bool | None, help_: str) -> Any:
    """A field that is on or off; a default of None is the program's."""
    return _declared(default, help_, rules.switch())


def _declared(default: object, help_: str, rule: rules.OptionRule) -> Any:
    return field(default=default, metadata={_RULE: rule, _HELP: help_})


def table_of(values: type[DataclassInstance]) -> SetTable:
    """The values of a dataclass whose fields were made above; its docstring names their kind."""
    rows = (
        SetValue(column.name, column.metadata[_HELP], column.metadata[_RULE], column.default)
        for column in fields(values)
    )
    return SetTable((values.__doc__ or "").partition("\n")[0].rstrip("."), tuple(rows))


def set_option(*values: type[DataclassInstance]) -> Any:
    """The option `--set` of a command: for one dataclass, or one for each kind of argument."""
    tables = [table_of(table) for table in values]
    return SetOption(*(tables if len(tables) > 1 else [replace(tables[0], title="")]))


def set_values(command: Callable[..., Any]) -> tuple[SetValue, ...]:
    """The values that the `--set` of a command changes; none if it has no such option."""
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        for declared in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(declared, SetOption):
                return tuple(value for table in declared.tables for value in table.values)
    return ()


def override(values: type[Values], given: Iterable[str] | None, *, of: str = "") -> Values:
    """The defaults of a dataclass whose fields were made above, changed by NAME=VALUE texts.

    Args:
        values: the dataclass.
        given: the texts.
        of: what the values apply to, for messages, such as ` for a job trace`.

    Raises:
        ConfigError: see `read_values`.
    """
    return values(**read_values(table_of(values).values, given, of=of))


def read_values(
    values: Sequence[SetValue], given: Iterable[str] | None, *, of: str = ""
) -> Mapping[str, Any]:
    """What NAME=VALUE texts say, by name.

    Args:
        values: that may be named.
        given: the texts.
        of: what the values apply to, for messages.

    Raises:
        ConfigError: a text without `=`, an unknown name, or a value that is refused.
    """
    known = {value.name: value.rule for value in values}
    changed: dict[str, Any] = {}
    for words in given or ():
        name, equals, value = words.partition("=")
        key = name.strip().replace("-", "_")
        if not equals or key not in known:
            raise ConfigError(
                f"--set needs NAME=VALUE{of} with one of {', '.join(known)}, got "
                f"{rules.short(words)}"
            )
        read = known[key].read(f"--set {key}", value.strip())
        before = cast("tuple[object, ...]", changed.get(key, ()))
        changed[key] = (*before, read) if known[key].adds else read
    return changed
