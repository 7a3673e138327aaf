"""Help of `driple` itself: a first screen with examples, and the commands grouped by purpose."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

__all__ = ["FIRST_SCREEN", "PURPOSES", "GroupedHelp"]

FIRST_SCREEN = """\
Driple predicts how a training job will use a cluster, before anyone runs it.

  driple predict graph.pbtxt --setting V100-P1w2   step time and use of devices and network
  driple list devices                              devices, links, instances, settings
  driple jobs list resnet50                        known training jobs
  driple env                                       what works on this machine

driple --help lists all commands; driple COMMAND --help explains one, with examples.
"""

# Commands in the order of the help; a command that is not listed here comes last.
PURPOSES = (
    ("Answer a question about a job", ("predict", "plan", "sweep", "inspect", "validate")),
    ("Ask in a browser, or from programs", ("serve",)),
    ("Record a run", ("record", "profile", "trace", "measure")),
    ("Data sets and inspectors", ("data", "train", "transfer", "evaluate")),
    ("Answer others", ("mcp",)),
    ("Look up", ("jobs", "list", "env")),
)
_OTHERS = "Other commands"


class GroupedHelp(TyperGroup):
    """A group whose help lists its commands by purpose."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the help; also the order of shell completion."""
        ordered = [name for _, names in PURPOSES for name in names if name in self.commands]
        return [*ordered, *(name for name in self.commands if name not in ordered)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each purpose."""
        listed = {name for _, names in PURPOSES for name in names}
        rest = tuple(name for name in self.commands if name not in listed)
        width = max(len(name) for name in self.commands)
        for title, names in (*PURPOSES, (_OTHERS, rest)):
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(formatter.width))
                for name in names
                if name in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
