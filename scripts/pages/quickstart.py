"""Fill the table of sizes and start times of docs/quickstart.md from scripts/checks/extras.json.

python -m scripts.pages.quickstart [--check]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from scripts.checks.extras import BASE, RESULT, extras
from scripts.settings.shipped import DOCS
from scripts.studies.kit.written import Table, options_of, written

__all__ = ["main", "page", "table"]

PAGE = DOCS / "quickstart.md"
_BEGIN = "<!-- sizes: python -m scripts.pages.quickstart -->\n"
_END = "<!-- end of sizes -->"


def table(results: Mapping[str, Mapping[str, Any]]) -> Table:
    """A row for each extra that was measured.

    Args:
        results: of `scripts.checks.extras`, by the name of the extra.
    """
    rows = []
    for name in extras():
        result = results.get(name)
        if result is None:
            continue
        start = f"{result['start_s']:.1f}" if "start_s" in result else ""
        question = f"`{result['question']}`" if "question" in result else ""
        size = f"{result['size_mb']:,}"
        label = "none" if name == BASE else f"`{name}`"
        rows.append((label, size, f"{result['packages']}", start, question))
    head = ("extra", "MB", "packages", "s to the answer", "of")
    has_times = any("start_s" in result for result in results.values())
    return Table(head, rows) if has_times else Table(head[:3], [row[:3] for row in rows])


def page(text: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """The page with its table."""
    before, _, rest = text.partition(_BEGIN)
    after = rest.partition(_END)[2]
    dates = sorted({result["date"] for result in results.values()})
    measured = f"Measured on {' and '.join(dates)}, two cores, by `python -m scripts.checks.extras`"
    lines = f"\n{table(results).markdown()}\n\n{measured}.\n\n"
    return f"{before}{_BEGIN}{lines}{_END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or check it."""
    given = options_of(__doc__).parse_args(arguments)
    results = json.loads(RESULT.read_text(encoding="utf-8"))
    text = page(PAGE.read_text(encoding="utf-8"), results)
    return written({PAGE: text}, check=given.check, program="python -m scripts.pages.quickstart")


if __name__ == "__main__":
    sys.exit(main())
