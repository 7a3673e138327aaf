# lines of the page
"""Write docs/training_configs.md: what Driple reads of each tool's training configs.

    python -m scripts.pages.training_configs [--check]

The tables are made from the lists of fields in `driple.jobs.training_config`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from textwrap import fill

from driple.jobs.training_config import FORMATS
from driple.jobs.training_config.fields import Format
from scripts.settings.shipped import DOCS
from scripts.studies.kit.written import options_of, written

PAGE = DOCS / "training_configs.md"
_MARK = "<!-- lists: python -m scripts.pages.training_configs -->\n"


def page() -> str:
    """The text of the page: what stands before the mark, then the lists."""
    written = PAGE.read_text(encoding="utf-8").partition(_MARK)[0]
    return written + _MARK + "\n".join(_section(tool) for tool in FORMATS)


def _section(tool: Format) -> str:
    both = sorted(name for name, one in tool.decisive.items() if len(one.changes) > 1)
    rows = [
        ("read", sorted({*tool.read, *tool.beside})),
        ("decisive: memory and time", both),
    ]
    for change in ("memory", "time"):
        names = sorted(name for name, one in tool.decisive.items() if one.changes == (change,))
        rows.append((f"decisive: {change}", names))
    rows.append(("harmless", sorted(tool.harmless)))
    lists = "\n".join(f"**{title}**: {_names(names)}\n" for title, names in rows if names)
    return f"## {tool.name}\n{lists}"


def _names(names: Iterable[str]) -> str:
    text = ", ".join(f"`{name}`" for name in names)
    return fill(text, 130, break_long_words=False, break_on_hyphens=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or check it."""
    given = options_of(__doc__).parse_args(argv)
    program = "python -m scripts.pages.training_configs"
    return written({PAGE: page()}, check=given.check, program=program)


if __name__ == "__main__":
    sys.exit(main())
