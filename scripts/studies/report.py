"""Make pages and pictures of studies from their stored results.

    python -m scripts.studies.report NAME [NAME ...]
    python -m scripts.studies.report --all

A study is a folder with `page.in.md`. Its `report.py` has `parts`, which fill the places of the
page, and may have `pictures`, which draws them; without `report.py` the parts are in `tables.json`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from scripts.studies.kit.page import TEMPLATE, Parts, write_page
from scripts.studies.kit.stored import shown_parts

HOME = Path(__file__).parent
NAMES = tuple(sorted(file.parent.name for file in HOME.glob(f"*/{TEMPLATE}")))


def has_report(name: str) -> bool:
    """Whether a study makes its parts by a program of its own."""
    return (HOME / name / "report.py").exists()


def parts_of(name: str) -> Parts:
    """Tables and numbers of the page of a study."""
    if not has_report(name):
        return shown_parts(HOME / name)
    parts: Parts = import_module(f"scripts.studies.{name}.report").parts()
    return parts


def draw(name: str) -> None:
    """Draw the pictures of a study that come from stored results."""
    if has_report(name):
        report = import_module(f"scripts.studies.{name}.report")
        if hasattr(report, "pictures"):
            report.pictures()


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the pages of some studies, or of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--all", action="store_true", help="every study")
    options = parser.parse_args(arguments)
    names = NAMES if options.all else options.names
    if unknown := sorted(set(names) - set(NAMES)):
        parser.error(f"{unknown[0]} is no study; give one of {', '.join(NAMES)}")
    if not names:
        parser.error(f"give a study ({', '.join(NAMES)}), or --all")
    for name in names:
        draw(name)
        write_page(HOME / name, parts_of(name))


if __name__ == "__main__":
    main()
