"""What the documentation site generates, and that its pages name commands that exist.

The site itself is built by CI (`python -m sphinx -W docs build/docs`).
"""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

from command_pages import Command, command_tree, page  # noqa: E402
from plain_docstrings import plain_to_rst, short_types  # noqa: E402
from repository_links import rewritten  # noqa: E402
from site_pages import module_names  # noqa: E402

PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
# Pages of data and studies, and what scripts print or say of themselves, name commands too.
WITH_COMMANDS = (
    *PAGES,
    *sorted((ROOT / "datasets").rglob("*.md")),
    *(file for end in ("md", "py") for file in sorted((ROOT / "scripts").rglob(f"*.{end}"))),
)
TREE = command_tree()
LEAVES = list(TREE.leaves())


def written_commands() -> list[tuple[str, str]]:
    """(page, command line) of every `driple ...` in code of pages, and of strings of scripts."""
    commands = []
    for file in WITH_COMMANDS:
        text = file.read_text(encoding="utf-8")
        blocks = re.findall(r"```(?:bash|console)\n(.*?)```", text, re.DOTALL)
        lines = [line for block in blocks for line in block.splitlines()]
        lines += re.findall(r"`(?:sudo )?((?:driple|\$\(which driple\)) [^`]+)`", text)
        lines += re.findall(r"^    (driple [^\n{]+)$", text, re.MULTILINE)
        lines += [f"driple {line}" for line in re.findall(r"```\{driple\} (.*)", text)]
        for line in lines:
            plain = line.removeprefix("$ ").replace("$(which driple) ", "driple ")
            command = re.sub(r"\$\([^)]*\) ", "NAMES ", plain).split("#")[0].strip()
            if command.startswith("driple "):
                commands.append((str(file.relative_to(ROOT)), command))
    return sorted(set(commands))


def command_of(words: list[str]) -> Command | None:
    """The command or group that the words begin with."""
    command = TREE
    for word in words:
        inner = {item.path[-1]: item for item in command.subcommands}
        if word not in inner:
            break
        command = inner[word]
    return None if command is TREE else command


@pytest.mark.parametrize(("file", "line"), written_commands())
def test_pages_name_commands_and_flags_that_exist(file: str, line: str) -> None:
    """A renamed command or flag is renamed in the pages, too."""
    words = line.split()[1:]
    flags = {word.split("=")[0] for word in words if word.startswith("--")}
    if words[0].isupper():  # COMMAND stands for any
        return
    if words[0].startswith("-"):
        assert flags <= TREE.flags | {"--help"}
        return
    command = command_of(words)
    assert command is not None, f"{file}: {line}"
    if "--" in words:
        flags = {word for word in words[: words.index("--")] if word.startswith("--")}
        words = words[: words.index("--")]
    assert flags <= command.flags | {"--help"}, f"{file}: {line}"
    known = " ".join(meaning for name, meaning in command.parameters if name.startswith("--set"))
    for flag, value in itertools.pairwise(words):
        if flag == "--set" and "=" in value:
            name = value.split("=")[0]
            assert re.search(rf"(?<!\w){name}(=\S*)?: ", known), f"{file}: {line}"


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_links_work_where_the_site_is_not_built(file: Path) -> None:
    """A code host shows the pages as they are: no link leads into what the site generates."""
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", file.read_text(encoding="utf-8")):
        assert "://" in target or (file.parent / target).exists(), target
        assert "_generated" not in target


def test_every_command_and_option_has_its_place() -> None:
    """Each leaf command stands on the page of its first word, with all of its options."""
    assert len(LEAVES) > 10
    pages = {item.path[0]: page(item) for item in TREE.subcommands}
    for leaf in LEAVES:
        text = pages[leaf.path[0]]
        assert f"# {leaf.name}\n" in text
        for name, _ in leaf.parameters:
            assert f"| `{name.replace('|', chr(92) + '|')}` |" in text, (leaf.name, name)


def test_reference_leaves_nothing_out() -> None:
    """Every public module but the command line is in the reference."""
    names = module_names()
    for path in (ROOT / "driple").rglob("*.py"):
        parts = ("driple", *path.relative_to(ROOT / "driple").with_suffix("").parts)
        name = ".".join(part for part in parts if part != "__init__")
        if "cli" not in parts and "web" not in parts and not parts[-1].startswith("__main"):
            assert name in names


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Uses `code` and *stars* of x_ |a|.", "Uses ``code`` and \\*stars\\* of x\\_ \\|a\\|."),
        (
            "Before\n\n    a -> b\n\nafter",
            "Before\n\n\n.. code-block:: text\n\n        a -> b\n\n\nafter",
        ),
        ("- one\n- two *x*\nafter", "\n- one\n- two \\*x\\*\n\nafter"),
        ("Args:\n    x_s: `seconds`, a*b.", "\nArgs:\n    x_s: ``seconds``, a\\*b."),
    ],
    ids=["markup", "diagram", "list", "section"],
)
def test_docstrings_are_plain_text(docstring: str, expected: str) -> None:
    """Characters that mean something to docutils stand for themselves."""
    assert "\n".join(plain_to_rst(docstring.split("\n"))).rstrip() == expected


def test_arrays_are_short_in_signatures() -> None:
    """Shape and type of an array are in its docstring."""
    long = "(x: ~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.int64]] = <factory>)"
    assert short_types(long) == "(x: ~numpy.ndarray = ...)"


def test_links_of_decisions_and_studies() -> None:
    """To a page of the site where there is one, else a plain path."""
    decision = "decisions/0020-one-step-placed-as-tensorflow-does"
    study = rewritten(decision, "[s](../../scripts/studies/accuracy/page.md)")
    assert study == "[s](../_generated/studies/accuracy/page.md)"
    assert rewritten(decision, "[code](../../driple/units.py)") == "code (`driple/units.py`)"
    assert rewritten("_generated/studies/accuracy/page", "[e](errors.csv)") == (
        "e (`scripts/studies/accuracy/errors.csv`)"
    )
    assert rewritten("accuracy", "[p](concepts.md#settings)") == "[p](concepts.md#settings)"
    assert rewritten("accuracy", "[p](https://example.org/x)") == "[p](https://example.org/x)"
