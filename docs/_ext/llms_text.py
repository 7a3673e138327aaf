"""llms.txt beside the site's index: what Driple is, and each page in a line, for assistants.

docs/index.md: first paragraph, table of pages, toctrees -> llms.txt (llmstxt.org)
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

__all__ = ["llms_text", "setup"]

_ROW = re.compile(r"^\| (?P<want>[^|]+) \| \[(?P<title>[^\]]+)\]\((?P<page>[\w/]+)\.md\) \|$", re.M)


def llms_text(index: str) -> str:
    """The text, from that of the index page.

    Args:
        index: of docs/index.md.
    """
    title, summary = index.split("\n\n")[:2]
    rows = [
        f"- [{row['title']}]({row['page']}.html): {row['want']}" for row in _ROW.finditer(index)
    ]
    pages = "\n".join(rows)
    return f"{title}\n\n> {' '.join(summary.split())}\n\n## Pages\n\n{pages}\n"


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        index = (Path(app.srcdir) / "index.md").read_text(encoding="utf-8")
        (Path(app.outdir) / "llms.txt").write_text(llms_text(index), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the file when the site was built."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
