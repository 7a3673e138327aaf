"""`driple`: one command per question. Results to stdout, logs and progress to stderr.

Exit status 0: done; 1: the work failed in a way nobody planned for; 2: bad input, in one line.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from driple.cli.helptext import FIRST_SCREEN, GroupedHelp
from driple.cli.oldnames import new_name
from driple.cli.overrides import set_values
from driple.errors import DripleError
from driple.files import advice_on
from driple.garbage import rare_search_for_garbage
from driple.render.terminal import ReaderGoneError, escaped, escaped_streams, one_line

__all__ = ["app", "run"]  # noqa: F822  # made by __getattr__

# What the system may refuse, in one line. Everything else is a defect, and shows where.
_REFUSALS = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT,
    errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EBADF, errno.EIO,
)  # fmt: skip
_LONGEST_LINE = 2000  # characters of an error
_STOPPED = 130  # what a shell calls the end by Ctrl-C
_VERBOSE = "--verbose"

# Each command or group of commands: its module, and its name there.
_COMMANDS = {
    "predict": ("predict", "predict"),
    "plan": ("plan", "plan"),
    "sweep": ("sweep", "sweep"),
    "inspect": ("inspect", "inspect"),
    "validate": ("validate", "validate"),
    "train": ("train", "train"),
    "transfer": ("transfer", "transfer"),
    "evaluate": ("evaluate", "evaluate"),
    "measure": ("measure", "measure"),
    "record": ("record", "record"),
    "mcp": ("mcp", "mcp"),
    "list": ("listing", "list_"),
    "env": ("env", "env"),
    "serve": ("serve", "serve"),
    "profile": ("profile", "profile_app"),
    "trace": ("trace", "trace_app"),
    "data": ("data", "data_app"),
    "jobs": ("catalogue", "jobs_app"),
}


def _version(*, asked: bool) -> None:
    """Print the version and end."""
    if asked:
        from driple.extras import driple_version

        print(f"driple {driple_version()}")
        raise typer.Exit


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
    verbose: Annotated[  # taken out of the arguments by `_run`, so that it may stand anywhere
        bool, typer.Option("--verbose", help="show the traceback of an error; with any command")
    ] = False,
) -> None:
    """Driple predicts how a training job will use a cluster, before anyone runs it."""
    if context.invoked_subcommand is None:
        print(FIRST_SCREEN, end="")


def _app(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """The command line with some commands: only their modules are imported."""
    app = typer.Typer(
        name="driple",
        cls=GroupedHelp,
        help="Driple predicts how a training job will use a cluster, before anyone runs it.",
        epilog="Example: driple predict graph.pbtxt --setting V100-P1w2 --json",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(first_screen)
    for name in names:
        module, member = _COMMANDS[name]
        command = getattr(import_module(f"driple.cli.{module}"), member)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def __getattr__(name: str) -> typer.Typer:
    """`app`, the command line with all commands, is made when it is first asked for."""
    if name != "app":
        raise AttributeError(f"module 'driple.cli.main' has no attribute '{name}'")
    app = globals()["app"] = _app()
    return app


def _app_for(given: list[str]) -> Any:
    """The command line with the command that is asked for; with all if none, or no such, is."""
    if "app" in globals() or not given or given[0] not in _COMMANDS:
        return globals().get("app") or __getattr__("app")
    return _app(given[:1])


def _exists(words: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    """Whether a command with these words has these options."""
    if words and words[0] not in _COMMANDS:
        return False
    command: Any = typer.main.get_command(_app_for(list(words)))
    for word in words:
        command = getattr(command, "commands", {}).get(word)
    if command is None:
        return False
    known = {flag for item in command.params for flag in (*item.opts, *item.secondary_opts)}
    return set(flags) <= known | {"--help", "-h"}


def run(arguments: list[str] | None = None) -> None:
    """Entry point: run the command line and exit with its status."""
    with rare_search_for_garbage():
        sys.exit(_with_streams(arguments))


def _with_streams(arguments: list[str] | None) -> int:
    """Run the command line; whatever is left to print is printed or given up before the end."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # to the end
    if sys.stdout is None:
        return _say("standard output is closed; send it to a file, or to /dev/null")
    try:
        status = _run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        _give_up_output()
        return 0
    except OSError as error:
        _give_up_output()
        return _refused(error)
    return status


def _give_up_output() -> None:
    """Let what was not written yet go nowhere, or Python complains of it as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())


def _run(arguments: list[str] | None) -> int:
    given, verbose = _without_verbose(sys.argv[1:] if arguments is None else arguments)
    replaced = new_name(given, _exists)
    return _answer(given, verbose=verbose) if replaced is None else _say(replaced)


def _without_verbose(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments without `--verbose`, and whether it was there; what follows `--` is kept."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [word for word in arguments[:end] if word != _VERBOSE]
    return [*kept, *arguments[end:]], len(kept) < end


def _answer(given: list[str], *, verbose: bool = False) -> int:
    try:
        with escaped_streams():
            result = _app_for(given)(args=given, prog_name="driple", standalone_mode=False)
    except typer.TyperException as error:
        return _say(f"{error.format_message()}{_set_hint(error)} (see driple --help)")
    except (typer.Abort, KeyboardInterrupt):
        result = _STOPPED
    except DripleError as error:
        if verbose:
            print(escaped("".join(traceback.format_exception(error))), file=sys.stderr)
        return _say(str(error))
    except ReaderGoneError:
        _give_up_output()
        return 0
    except OSError as error:
        return _refused(error)
    if result == _STOPPED:  # Typer makes this of Ctrl-C
        print("driple: stopped; run the same command again to continue", file=sys.stderr)
    return int(result) if isinstance(result, int) else 0


def _refused(error: OSError) -> int:
    """One line for what the system refuses; anything else is raised again."""
    if error.errno not in _REFUSALS:
        raise error
    place = f" ({error.filename})" if error.filename else ""
    return _say(
        f"{error.strerror}{place}; nothing was half-written: {advice_on(error)}, and run again"
    )


def _set_hint(error: typer.TyperException) -> str:
    """How to set a value that was asked for as an option; empty if it is none of `--set`."""
    name = getattr(error, "option_name", "").lstrip("-").replace("-", "_")
    command = getattr(getattr(error, "ctx", None), "command", None)
    called = getattr(command, "callback", None)
    known = () if called is None else {value.name for value in set_values(called)}
    return f"; set it with --set {name}=VALUE" if name in known else ""


def _say(message: str) -> int:
    line = one_line(message)
    if len(line) > _LONGEST_LINE:  # a value out of a file may be of any length
        line = f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"
    print(f"driple: {line}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    run()
