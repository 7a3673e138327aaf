"""`driple throughput`: traces of one worker, from which `driple sweep` predicts many."""

from __future__ import annotations

import typer

from driple.cli.throughput_profile import import_, platform, profile

__all__ = ["throughput_app"]

throughput_app = typer.Typer(
    help="Traces of one worker, for driple sweep (asynchronous SGD).",
    rich_markup_mode=None,
)

throughput_app.command()(platform)
throughput_app.command()(profile)
throughput_app.command("import")(import_)
