"""Docstrings of this project as reStructuredText: they are plain text with `code` in backticks.

    lines of a docstring -> the same lines, with nothing that docutils takes for markup

Runs before napoleon, which turns the sections (Args, Returns, Raises) into fields.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

__all__ = ["escaped", "plain_to_rst", "setup", "short_types"]

SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields|Example|Examples|Note|Notes):$")
_CODE = re.compile(r"(`+)(.+?)\1")
_ARRAY = re.compile(
    r"(~?(?:numpy\.)?ndarray)\[tuple\[~?(?:typing\.)?Any, \.\.\.\], "
    r"~?(?:numpy\.)?dtype\[[^\]]*\]\]"
)
_BULLET = re.compile(r"(?:[-*+]|\d+[.)]) ")


def escaped(text: str) -> str:
    """A line of prose: `code` as an inline literal, all other markup characters escaped."""
    parts: list[str] = []
    end = 0
    for found in _CODE.finditer(text):
        parts.append(_prose(text[end : found.start()]))
        before = text[found.start() - 1 : found.start()]
        after = text[found.end() : found.end() + 1]
        code = found[2].strip()
        parts.append(
            ("\\ " if before and not before.isspace() else "")
            + f"``{code}``"
            + ("\\ " if after.isalnum() else "")
        )
        end = found.end()
    return "".join(parts) + _prose(text[end:])


def _prose(text: str) -> str:
    text = re.sub(r"([\\*|`])", r"\\\1", text)
    return re.sub(r"_(?!\w)", r"\\_", text)


def plain_to_rst(lines: list[str]) -> list[str]:
    """A whole docstring: indented lines outside of sections become literal blocks."""
    written: list[str] = []
    in_section = in_block = in_list = False
    for line in lines:
        text = line.rstrip()
        if SECTION.fullmatch(text):
            in_section, in_block, in_list = True, False, False
            written += ["", text]
        elif not text:
            written.append("")
            in_list = False
        elif in_section and text.startswith(" "):
            indent = len(text) - len(text.lstrip())
            written.append(text[:indent] + escaped(text[indent:]))
        elif text.startswith(" ") and in_list:
            written.append("  " + escaped(text.strip()))
        elif text.startswith(" "):
            if not in_block:
                written += ["", ".. code-block:: text", ""]
            in_block = True
            written.append("    " + text)
        else:
            in_section = False
            bullet = _BULLET.match(text)
            if in_block or (in_list and not bullet) or (bullet and not in_list):
                written.append("")
            in_block, in_list = False, bullet is not None
            head = f"- {escaped(text[bullet.end() :])}" if bullet else escaped(text)
            written.append(re.sub(r"^(\.\.|::|:|>>>|[A-Za-z]\. )", r"\\\1", head))
    return [*written, ""]


def _process(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    lines[:] = plain_to_rst(lines)


def short_types(signature: str) -> str:
    """A signature with arrays by their name alone; the docstring states shape and type."""
    text = _ARRAY.sub(lambda found: found[1], signature)
    return text.replace("<factory>", "...")


def _shorten(
    _app: Sphinx,
    _what: str,
    _name: str,
    _object: object,
    _options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    return signature and short_types(signature), returned and short_types(returned)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register before napoleon, whose priority is 500."""
    app.connect("autodoc-process-signature", _shorten)
    app.connect("autodoc-process-docstring", _process, priority=400)
    return {"parallel_read_safe": True}
