"""Progress bars on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from driple.render.terminal import one_line, unescaped

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["late_bar", "named_steps", "progress_bar"]


@contextmanager
def late_bar(words: str) -> Iterator[Callable[[int], None]]:
    """A bar for seconds of work, which appears with the first step of it.

    Args:
        words: what is done.

    Yields:
        A function that is called after each step with the number of all steps.
    """
    with ExitStack() as stack:
        bars: list[tuple[Progress, TaskID]] = []

        def advance(total: int) -> None:
            if not bars:
                bar = stack.enter_context(progress_bar(short=True))
                bars.append((bar, bar.add_task(words, total=total)))
            bar, task = bars[0]
            bar.advance(task)

        yield advance


@contextmanager
def named_steps() -> Iterator[Callable[[str], None]]:
    """A bar for work of unknown length, which appears with its first step on a terminal.

    Yields:
        A function that is called with the words of each step, which may be names of a user's file.
    """
    with ExitStack() as stack:
        bars: list[tuple[Progress, TaskID]] = []

        def advance(words: str) -> None:
            if not bars:
                bar = stack.enter_context(progress_bar(short=True))
                bars.append((bar, bar.add_task("", total=None)))
            bar, task = bars[0]
            bar.update(task, description=one_line(words), advance=1)

        yield advance


@contextmanager
def progress_bar(*, short: bool = False) -> Iterator[Progress]:
    """A progress bar on stderr; plain and rare lines where stderr is no terminal.

    Args:
        short: for seconds of work, of which nothing is shown but on a terminal.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(file=unescaped(sys.stderr))
    with Progress(*columns, console=console, disable=short and not console.is_terminal) as progress:
        yield progress
