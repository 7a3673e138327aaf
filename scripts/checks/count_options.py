"""Count the commands of `driple` and their options.

python -m scripts.checks.count_options

A command is a leaf of the tree: `profile run` is one, `profile` is none. Each option of each
command counts once, whatever its short or negative names. `--help`, the options of `driple` itself
and arguments do not count, nor do the values of `--set`, which are listed beside. The options of a
JOB (`JobOptions`) are the same in every command that takes one: a second sum has them once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer.main

from driple.cli.main import app
from driple.cli.overrides import set_values
from driple.jobs.options import JOB_OPTIONS

__all__ = ["CommandOptions", "command_options", "count_lines", "job_flags", "leaf_commands"]


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """One command.

    Attributes:
        name: its words, such as `profile run`.
        options: long names of its options.
        set_names: values that its `--set` changes.
    """

    name: str
    options: tuple[str, ...]
    set_names: tuple[str, ...]

    @property
    def takes_job(self) -> bool:
        """Whether it has all options of a JOB."""
        return set(self.options) >= job_flags()


def job_flags() -> set[str]:
    """The options of a JOB that are no values of `--set`."""
    return {row.typed for row in JOB_OPTIONS if not row.set_name}


def leaf_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands that do something, with the words that call them."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaf_commands(command, (*path, name))
        else:
            yield (*path, name), command


def command_options() -> list[CommandOptions]:
    """All commands, in the order of the help."""
    return [
        CommandOptions(
            " ".join(path),
            tuple(
                max(parameter.opts, key=len)
                for parameter in command.params
                if parameter.opts[0].startswith("-")
            ),
            tuple(value.name for value in set_values(command.callback)),
        )
        for path, command in leaf_commands(typer.main.get_command(app))
    ]


def count_lines() -> list[str]:
    """A line for each command, then the sums."""
    rows = command_options()
    lines = [
        f"{row.name:15} {len(row.options):3} options, {len(row.set_names):2} values of --set"
        for row in rows
    ]
    total = sum(len(row.options) for row in rows)
    names = {name for row in rows for name in row.options}
    repeated = sum(len(job_flags()) for row in rows if row.takes_job) - len(job_flags())
    return [
        *lines,
        f"{len(rows)} commands, {total} options, {len(names)} names",
        f"{total - repeated} options with the {len(job_flags())} of a JOB once",
    ]


if __name__ == "__main__":
    print("\n".join(count_lines()))
