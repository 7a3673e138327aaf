"""What every `--html` page must be: complete, well-formed, without a script."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_NEVER_CLOSED = {"meta", "br", "path", "use", "rect", "line", "circle", "polyline"}


class _Page(HTMLParser):
    """Places that a page would fetch something from, tags that stay open, classes, and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.open: list[str] = []
        self.classes: set[str] = set()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in {"src", "href", "xlink:href"} and not (value or "").startswith("#"):
                self.outside.append(value or "")
            if name == "class":
                self.classes |= set((value or "").split())
        if tag not in _NEVER_CLOSED:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _NEVER_CLOSED:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()


def check_page(text: str) -> None:
    """Fail where a page fetches something, is not well-formed, or has a class without a style."""
    page = _Page()
    page.feed(text)
    assert page.outside == []
    assert page.open == []
    assert not page.tags & {"script", "link", "iframe", "img", "object"}
    assert "url(" not in text
    style = text[text.index("<style>") : text.index("</style>")]
    styled = set(re.findall(r"\.([a-z][\w-]*)", style))
    assert page.classes - styled <= {"key", "title"}, "classes without a style"
