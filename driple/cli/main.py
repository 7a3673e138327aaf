"""`driple`: one command per question. Results to stdout, logs and progress to stderr.

Exit status 0: done; 1: the work failed in a way nobody planned for; 2: bad input, in one line.
"""

from __future__ import annotations

import errno
import sys
from typing import Annotated, Any

import typer

from driple.cli.catalogue import jobs_app
from driple.cli.data import data_app
from driple.cli.env import env
from driple.cli.evaluate import evaluate
from driple.cli.helptext import FIRST_SCREEN, GroupedHelp
from driple.cli.inspect import inspect
from driple.cli.listing import list_
from driple.cli.measure import measure
from driple.cli.oldnames import new_name
from driple.cli.overrides import set_names
from driple.cli.plan import plan
from driple.cli.predict import predict
from driple.cli.profile import profile_app
from driple.cli.sweep import sweep
from driple.cli.terminal import escaped_streams, one_line
from driple.cli.trace import trace_app
from driple.cli.train import train
from driple.cli.transfer import transfer
from driple.cli.validate import validate
from driple.errors import DripleError
from driple.files import advice_on

__all__ = ["app", "run"]

# What the system may refuse, in one line. Everything else is a defect, and shows where.
_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.ENOENT)
_LONGEST_LINE = 2000  # characters of an error

app = typer.Typer(
    name="driple",
    cls=GroupedHelp,
    help="Driple predicts how a training job will use a cluster, before anyone runs it.",
    epilog="Example: driple predict graph.pbtxt --setting V100-P1w2 --json",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(*, asked: bool) -> None:
    """Print the version and end."""
    if asked:
        from driple.cli.env import driple_version

        print(f"driple {driple_version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def first_screen(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="print the version",
            is_eager=True,
            callback=lambda value: _version(asked=value),
        ),
    ] = False,
) -> None:
    """Driple predicts how a training job will use a cluster, before anyone runs it."""
    if context.invoked_subcommand is None:
        print(FIRST_SCREEN, end="")


def _exists(words: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    """Whether a command with these words has these options."""
    found: Any = typer.main.get_command(app)
    for word in words:
        found = getattr(found, "commands", {}).get(word)
    if found is None:
        return False
    known = {flag for item in found.params for flag in (*item.opts, *item.secondary_opts)}
    return set(flags) <= known | {"--help", "-h"}


app.command()(predict)
app.command()(plan)
app.command()(sweep)
app.command()(inspect)
app.command()(validate)
app.command()(train)
app.command()(transfer)
app.command()(evaluate)
app.command()(measure)
app.command("list")(list_)
app.command()(env)
app.add_typer(profile_app, name="profile")
app.add_typer(trace_app, name="trace")
app.add_typer(data_app, name="data")
app.add_typer(jobs_app, name="jobs")


def run(arguments: list[str] | None = None) -> None:
    """Entry point: run the command line and exit with its status."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    replaced = new_name(given, _exists)
    return _answer(given) if replaced is None else _say(replaced)


def _answer(given: list[str]) -> int:
    try:
        with escaped_streams():
            result = app(args=given, prog_name="driple", standalone_mode=False)
    except typer.TyperException as error:
        return _say(f"{error.format_message()}{_set_hint(error)} (see driple --help)")
    except (typer.Abort, KeyboardInterrupt):
        print("driple: stopped; run the same command again to continue", file=sys.stderr)
        return 130
    except DripleError as error:
        return _say(str(error))
    except BrokenPipeError:
        return 0
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        place = f" ({error.filename})" if error.filename else ""
        return _say(
            f"{error.strerror}{place}; nothing was half-written: {advice_on(error)}, and run again"
        )
    return int(result) if isinstance(result, int) else 0


def _set_hint(error: typer.TyperException) -> str:
    """How to set a value that was asked for as an option; empty if it is none of `--set`."""
    name = getattr(error, "option_name", "").lstrip("-").replace("-", "_")
    command = getattr(getattr(error, "ctx", None), "command", None)
    for option in getattr(command, "params", ()):
        if "--set" in option.opts and name in set_names(option.help or ""):
            return f"; set it with --set {name}=VALUE"
    return ""


def _say(message: str) -> int:
    line = one_line(message)
    if len(line) > _LONGEST_LINE:  # a value out of a file may be of any length
        line = f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"
    print(f"driple: {line}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    run()
