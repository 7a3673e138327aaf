"""Pages about the command line, made from the command tree itself.

    Typer app  ->  Command (path, help, arguments, options)  ->  Markdown page

Nothing here knows a command by name, so the pages follow any renaming.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer.main

from driple.cli.main import app

__all__ = ["Command", "command_tree", "page"]


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command or group of commands.

    Attributes:
        path: words that a user types after `driple`.
        help: its help text.
        usage: the line of its arguments.
        parameters: (name or flags with their value, meaning), arguments first.
        subcommands: the commands of a group.
    """

    path: tuple[str, ...]
    help: str
    usage: str
    parameters: tuple[tuple[str, str], ...]
    flags: frozenset[str]
    subcommands: tuple[Command, ...]

    @property
    def name(self) -> str:
        """What a user types."""
        return " ".join(("driple", *self.path))

    def leaves(self) -> Iterator[Command]:
        """The command itself, or those of a group."""
        if not self.subcommands:
            yield self
        for command in self.subcommands:
            yield from command.leaves()


def command_tree() -> Command:
    """All commands of `driple`."""
    command = typer.main.get_command(app)
    return _command(command, (), command.make_context("driple", [], resilient_parsing=True))


# Typer ships its own copy of click, whose types have no public module to import them from.
def _command(command: Any, path: tuple[str, ...], context: Any) -> Command:
    shown = [item for item in command.params if not getattr(item, "hidden", False)]
    records = [(item, item.get_help_record(context)) for item in shown]
    parameters = [
        (record[0], record[1])
        for item, record in sorted(
            records, key=lambda pair: getattr(pair[0], "param_type_name", "") != "argument"
        )
        if record is not None
    ]
    inner = [
        _command(sub, (*path, name), _context(sub, context, name))
        for name, sub in getattr(command, "commands", {}).items()
        if not sub.hidden
    ]
    return Command(
        path=path,
        help=inspect.cleandoc(command.help or ""),
        usage=" ".join(command.get_usage(context).removeprefix("Usage:").split()),
        parameters=tuple((_plain(name), _plain(text)) for name, text in parameters),
        flags=frozenset(flag for item in shown for flag in (*item.opts, *item.secondary_opts)),
        subcommands=tuple(inner),
    )


def _context(command: Any, parent: Any, name: str) -> Any:
    return command.make_context(name, [], parent=parent, resilient_parsing=True)


def _plain(text: str) -> str:
    """Text on one line; the lines of a `--set`, a value each, are joined by semicolons."""
    if "\b" in text:
        text = re.sub(r"\n(?=\S)", "; ", text.replace("\b\n", "")).replace(":; ", ": ")
    return " ".join(text.split())


def page(command: Command) -> str:
    """The Markdown page of a command or of a group, with a section for each of its commands."""
    parts = [f"# {command.name}", *_body(command)]
    for leaf in command.leaves():
        if leaf is not command:
            parts += [f"## {leaf.name}", *_body(leaf)]
    return "\n\n".join(parts) + "\n"


def _body(command: Command) -> list[str]:
    text, _, examples = command.help.partition("\nExample")
    parts = [re.sub(r"[*_<>]", r"\\\g<0>", part) for part in text.replace("\b", "").split("\n\n")]
    if command.subcommands:
        return parts
    parts.append(f"```text\n{command.usage}\n```")
    lines = [" ".join(part.split()) for part in re.split(r"\n\s*\n", examples) if part.strip()]
    shown = [line for line in lines if not line.startswith(("s:", ":"))]
    if shown:
        parts.append("Examples:\n\n```bash\n" + "\n".join(shown) + "\n```")
    if command.parameters:
        rows = "\n".join(f"| {_code(name)} | {_cell(text)} |" for name, text in command.parameters)
        parts.append(f"| argument or option | meaning |\n|---|---|\n{rows}")
    return parts


def _code(text: str) -> str:
    """Code in a cell of a table, where a bar would end the cell."""
    return "`" + text.replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    """Text of a cell of a table; `*` and `_` of Markdown mean themselves."""
    return re.sub(r"[|*_<]", r"\\\g<0>", text)
