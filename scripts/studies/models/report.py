"""Make page.md from tables.json, which run.py writes.

python -m scripts.studies.models.report
"""

from __future__ import annotations

from pathlib import Path

from scripts.studies.kit.page import Parts, write_page
from scripts.studies.kit.stored import shown_parts

HOME = Path(__file__).parent


def parts() -> Parts:
    """Tables and numbers of the page."""
    return shown_parts(HOME)


def main() -> None:
    """Write the page."""
    write_page(HOME, parts())


if __name__ == "__main__":
    main()
