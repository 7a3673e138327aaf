"""Links of Markdown pages into the repository: to a page of the site, or to a plain path.

    [accuracy](../scripts/studies/accuracy/page.md)  ->  the page of the site
    [errors](errors.csv) of a study                  ->  errors (`scripts/studies/.../errors.csv`)

Decisions and studies are read in the repository as well, where these links work as they stand.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

__all__ = ["rewritten", "setup"]

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
STUDIES = ROOT / "scripts" / "studies"
GENERATED = DOCS / "_generated"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")


def origin(docname: str) -> Path:
    """The file of the repository that a page of the site was copied from."""
    parts = Path(docname).parts
    if parts[:2] == ("_generated", "studies"):
        return STUDIES.joinpath(*parts[2:])
    return DOCS / docname


def rewritten(docname: str, text: str) -> str:
    """The text of a page, its links changed to those of the site."""
    return _LINK.sub(lambda found: _link(docname, found), text)


def _link(docname: str, found: re.Match[str]) -> str:
    mark, words, target, anchor = found[1], found[2], found[3], found[4] or ""
    if not target or "://" in target or target.startswith("mailto:"):
        return found[0]
    file = Path(os.path.normpath(origin(docname).parent / target))
    here = DOCS / Path(docname).parent
    if file.is_relative_to(STUDIES) and (file.suffix == ".png" or file.name == "page.md"):
        site = GENERATED / "studies" / file.relative_to(STUDIES)
        return f"{mark}[{words}]({os.path.relpath(site, here)}{anchor})"
    if file.is_relative_to(DOCS) and file.is_file():
        return f"{mark}[{words}]({os.path.relpath(file, here)}{anchor})"
    path = os.path.relpath(file, ROOT)
    return words if words.strip("`") == path else f"{words} (`{path}`)"


def _on_source_read(_app: Sphinx, docname: str, content: list[str]) -> None:
    content[0] = rewritten(docname, content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _on_source_read)
    return {"parallel_read_safe": True}
