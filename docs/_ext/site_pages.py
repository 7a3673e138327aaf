"""Pages and blocks of the site that are made at build time, so that they are always true.

command tree        ->  _generated/commands/*.md        (command_pages.py)
modules of driple   ->  _generated/reference/*.rst
scripts/studies     ->  _generated/studies/             copies, with their pictures
{driple}            ->  a command and what it prints
{driple-fields}     ->  fields of a row of the catalogue
"""

from __future__ import annotations

import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from command_pages import command_tree, page
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import driple

__all__ = ["module_names", "setup", "write_pages"]

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
GENERATED = DOCS / "_generated"
# Parsing of the command line, and files that no reader of the reference imports.
LEFT_OUT = ("driple.cli", "driple.web", "driple.checkpoints", "driple.__main__")


def _write(file: Path, text: str) -> None:
    """Write a page; a page that stays the same keeps its time, so that it is not read again."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def module_names() -> dict[str, bool]:
    """All modules of the reference, each with whether it is a package; sorted by name."""
    found = {
        item.name: item.ispkg
        for item in pkgutil.walk_packages(driple.__path__, "driple.")
        if not item.name.startswith(LEFT_OUT) and not item.name.rpartition(".")[2].startswith("_")
    }
    return {"driple": True, **dict(sorted(found.items()))}


def _command_pages() -> set[Path]:
    written = set()
    for command in command_tree().subcommands:
        file = GENERATED / "commands" / f"{command.path[0]}.md"
        _write(file, page(command))
        written.add(file)
    return written


def _reference_pages() -> set[Path]:
    """A page for each package of the first level; small modules of the first level share one."""
    pages: dict[str, list[str]] = {}
    modules = module_names()
    for name, is_package in modules.items():
        parts = name.split(".")
        alone = len(parts) == 2 and not is_package
        pages.setdefault("driple" if alone else ".".join(parts[:2]), []).append(name)
    written = set()
    for name, members in pages.items():
        parts = [f"{name}\n{'=' * len(name)}\n"]
        for member in members:
            whole = f".. automodule:: {member}\n"
            if not modules[member] or member == "driple":
                whole += "   :members:\n"
            if member != "driple":  # what it exports of other modules is described there
                whole += "   :ignore-module-all:\n"
            heading = "" if member == name else f"{member}\n{'-' * len(member)}\n\n"
            parts.append(heading + whole)
        file = GENERATED / "reference" / f"{name}.rst"
        _write(file, "\n".join(parts))
        written.add(file)
    return written


def _study_pages() -> set[Path]:
    written = set()
    for source in sorted((ROOT / "scripts" / "studies").glob("*/page.md")):
        folder = GENERATED / "studies" / source.parent.name
        _write(folder / "page.md", source.read_text(encoding="utf-8"))
        written.add(folder / "page.md")
        for picture in source.parent.glob("*.png"):
            written.add(folder / picture.name)
            if not (folder / picture.name).is_file() or (
                (folder / picture.name).stat().st_mtime < picture.stat().st_mtime
            ):
                shutil.copy2(picture, folder / picture.name)
    return written


def write_pages(_app: Sphinx | None = None) -> None:
    """Write all generated pages and remove those that are out of date."""
    written = _command_pages() | _reference_pages() | _study_pages()
    for file in GENERATED.rglob("*"):
        if file.is_file() and file not in written:
            file.unlink()


def printed(arguments: str) -> str:
    """What `driple ARGUMENTS` prints on stdout, run from the root of the repository."""
    done = subprocess.run(
        [sys.executable, "-m", "driple.cli.main", *arguments.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "80", "NO_COLOR": "1"},
    )
    if done.returncode:
        raise RuntimeError(f"driple {arguments} exits with {done.returncode}: {done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


class CommandOutput(SphinxDirective):
    """`{driple} predict FILE`: the command and what it prints, run at build time.

    Options:
        lines: shows so many lines of the output.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"lines": directives.positive_int}

    def run(self) -> list[nodes.Node]:
        """Run the command; one that fails is a warning, which a strict build refuses."""
        arguments = " ".join(self.arguments[0].split())
        try:
            output = printed(arguments)
        except RuntimeError as error:
            return [self.state.document.reporter.warning(str(error), line=self.lineno)]
        lines = output.splitlines()
        most = self.options.get("lines", len(lines))
        shown = [*lines[:most], *(["..."] if len(lines) > most else [])]
        text = "\n".join([f"$ driple {arguments}", *shown])
        return [nodes.literal_block(text, text, language="console")]


class CatalogFields(SphinxDirective):
    """`{driple-fields} DEVICE_FACTS`: the fields of a row, from `driple.catalog.fields`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A table as Markdown, parsed in place."""
        from driple.catalog import fields

        known = getattr(fields, self.arguments[0])
        rows = [f"| `{name}` | {item.kind} | {_bounds(item)} |" for name, item in known.items()]
        text = "\n".join(["| field | type | allowed |", "|---|---|---|", *rows])
        return self.parse_text_to_nodes(text)


def _bounds(field: object) -> str:
    kind, above, least, most = (getattr(field, name) for name in ("kind", "above", "least", "most"))
    if kind not in {"number", "whole"}:
        return {"flag": "true or false", "date": "a day, such as 2026-08-26"}.get(kind, "text")
    low = f"more than {above:g}" if above is not None else f"{least:g} or more"
    return low if most >= 1e30 else f"{low}, at most {most:g}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("driple", CommandOutput)
    app.add_directive("driple-fields", CatalogFields)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
