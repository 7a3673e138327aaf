"""The frame of every `--html` page: one file, without a script, for light, dark and paper.

title, sections -> HTML with its style (page.css) inside;  tables, facts, lists, pictures
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from driple.errors import ConfigError
from driple.extras import driple_version
from driple.files import atomic_write

__all__ = ["facts", "heading", "items", "page", "paragraphs", "picture", "table", "write_text"]


def page(title: str, sections: Iterable[str]) -> str:
    """A whole page.

    Args:
        title: of the page, plain text.
        sections: HTML of the functions below, in order.
    """
    style = (files("driple.plot") / "page.css").read_text(encoding="utf-8")
    body = "\n".join(section for section in sections if section)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Driple: {escape(title)}</title><style>{style}</style></head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n"
        f"<footer>Made by Driple {escape(driple_version())}. Predictions are estimates; what "
        "each rests on is listed above.</footer>\n</body></html>\n"
    )


def write_text(text: str, path: Path) -> None:
    """Write a page, whole or not at all.

    Raises:
        ConfigError: it cannot be written.
    """
    atomic_write(path, text.encode("utf-8", "replace"), error=ConfigError)


def heading(words: str, level: int = 2) -> str:
    """A heading."""
    return f"<h{level}>{escape(words)}</h{level}>"


def paragraphs(texts: Iterable[str], kind: str = "") -> str:
    """A paragraph for each text that is not empty."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "".join(f"{opening}{escape(words)}</p>" for words in texts if words)


def items(texts: Iterable[str], tag: str = "ul", kind: str = "small") -> str:
    """A list; empty if there are no texts."""
    rows = "".join(f"<li>{escape(words)}</li>" for words in texts)
    opening = f'<{tag} class="{kind}">' if kind else f"<{tag}>"
    return f"{opening}{rows}</{tag}>" if rows else ""


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Labels and words beside each other."""
    cells = "".join(f"<dt>{escape(label)}</dt><dd>{escape(words)}</dd>" for label, words in rows)
    return f'<dl class="facts">{cells}</dl>' if cells else ""


def picture(svg: str) -> str:
    """A picture made by `driple.plot.svg`; empty if there is none."""
    return f"<figure>{svg}</figure>" if svg else ""


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: frozenset[int] = frozenset({0}),
    kinds: Mapping[int, str] | None = None,
) -> str:
    """A table; empty if it has no rows.

    Args:
        header: names of the columns.
        rows: their cells, plain text.
        left: columns of words.
        kinds: classes of some rows: `best` or `no`.
    """
    if not rows:
        return ""
    head = "".join(
        f'<th scope="col"{_class(i in left)}>{escape(name)}</th>' for i, name in enumerate(header)
    )
    body = []
    for number, row in enumerate(rows):
        kind = (kinds or {}).get(number, "")
        cells = "".join(f"<td{_class(i in left)}>{escape(cell)}</td>" for i, cell in enumerate(row))
        body.append(f'<tr class="{kind}">{cells}</tr>' if kind else f"<tr>{cells}</tr>")
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _class(is_left: bool) -> str:  # one use
    return ' class="left"' if is_left else ""
