"""`driple`: one command per question. Results to stdout, logs and progress to stderr.

Exit status 0: done; 1: the work failed in a way nobody planned for; 2: bad input, told in one line.
"""

from __future__ import annotations

import errno
import sys

import typer

from driple.cli.dataset import dataset_app
from driple.cli.env import env
from driple.cli.evaluate import evaluate
from driple.cli.inspect import inspect
from driple.cli.measure import measure
from driple.cli.plan import plan
from driple.cli.predict import predict
from driple.cli.simulate import simulate
from driple.cli.stalls import stalls_app
from driple.cli.sweep import sweep
from driple.cli.terminal import escaped_streams, one_line
from driple.cli.throughput import throughput_app
from driple.cli.train import train
from driple.cli.transfer import transfer
from driple.cli.validate import validate
from driple.cli.zoo import zoo_app
from driple.errors import DripleError
from driple.files import advice_on

__all__ = ["app", "run"]

# What the system may refuse: told in one line. Everything else is a defect, and shows where.
_TOLD = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.ENOENT)
_LONGEST_LINE = 2000  # characters of an error

app = typer.Typer(
    name="driple",
    help="How will this training job use a cluster, before anyone runs it?",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(predict)
app.command()(plan)
app.command()(sweep)
app.command()(inspect)
app.command()(validate)
app.command()(train)
app.command()(transfer)
app.command()(evaluate)
app.command()(measure)
app.command()(simulate)
app.command()(env)
app.add_typer(dataset_app, name="dataset")
app.add_typer(zoo_app, name="zoo")
app.add_typer(throughput_app, name="throughput")
app.add_typer(stalls_app, name="stalls")


def run(arguments: list[str] | None = None) -> None:
    """Entry point: run the command line and exit with its status."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with escaped_streams():
            result = app(args=given or ["--help"], standalone_mode=False)
    except typer.TyperException as error:
        return _say(f"{error.format_message()} (see driple --help)")
    except (typer.Abort, KeyboardInterrupt):
        print("driple: stopped; run the same command again to go on", file=sys.stderr)
        return 130
    except DripleError as error:
        return _say(str(error))
    except BrokenPipeError:
        return 0
    except OSError as error:
        if error.errno not in _TOLD:
            raise
        place = f" ({error.filename})" if error.filename else ""
        return _say(
            f"{error.strerror}{place}; nothing was half-written: {advice_on(error)}, and run again"
        )
    return int(result) if isinstance(result, int) else 0


def _say(message: str) -> int:
    line = one_line(message)
    if len(line) > _LONGEST_LINE:  # a value out of a file may be of any length
        line = f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"
    print(f"driple: {line}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    run()
