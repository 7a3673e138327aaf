"""Each code has a sentence and an emitter, values fit it, and results hold no sentences.

sources of the package (ast)  ->  calls of `remark`, fields and methods of classes
"""

from __future__ import annotations

import ast
import inspect
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from driple.codec import from_json, to_dict, to_json
from driple.remarks import Remark, remark
from driple.render.remarks import (
    SENTENCES,
    devices,
    graphs,
    inspectors,
    jobs,
    measured,
    offers,
    runs,
    sentence,
    simulated,
    tables,
    with_sentences,
)

PACKAGE = Path(__file__).resolve().parents[2] / "driple"
# Who may write sentences for people: the renderers, and the commands that print them.
WRITERS = ("render", "cli", "plot")
# Fields of results that hold what is said beside the numbers.
REMARKS = ("assumptions", "doubts", "notes", "outdated", "remarks", "strange", "warnings")


def modules() -> Iterator[tuple[Path, ast.Module]]:
    """Every module of the package with its syntax tree."""
    for file in sorted(PACKAGE.rglob("*.py")):
        yield file.relative_to(PACKAGE), ast.parse(file.read_text(encoding="utf-8"))


def calls_of_remark() -> Iterator[tuple[str, str, set[str] | None]]:
    """Place, code and names of the values of each call; None where a mapping is handed on."""
    for file, tree in modules():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id == "remark":
                (code,) = node.args
                place = f"{file}:{node.lineno}"
                assert isinstance(code, ast.Constant), f"{place}: the code is no literal"
                names = {each.arg for each in node.keywords}
                known = {name for name in names if name is not None}
                yield place, str(code.value), None if None in names else known


def names_of(words: object) -> tuple[set[str], set[str], bool]:
    """Names that a sentence needs, all that it takes, and whether it takes any other."""
    if isinstance(words, str):
        names = {name for _, name, _, _ in string.Formatter().parse(words) if name}
        return names, names, False
    assert callable(words)
    parameters = inspect.signature(words).parameters.values()
    named = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
    needed = {each.name for each in parameters if each.default is each.empty} & named
    return needed, named, len(named) < len(parameters)


def test_every_code_has_a_sentence_and_every_sentence_an_emitter() -> None:
    """No remark is without words, and no words are left of a remark that is gone."""
    codes = {code for _, code, _ in calls_of_remark()}
    assert codes == SENTENCES.keys() - {"text"}


@pytest.mark.parametrize(
    ("place", "code", "values"), [pytest.param(*call, id=call[0]) for call in calls_of_remark()]
)
def test_values_fit_the_sentence(place: str, code: str, values: set[str] | None) -> None:
    """Each name of a template is supplied, and no value is left unsaid."""
    if values is None:  # a mapping, whose names only the call knows
        return
    needed, named, takes_others = names_of(SENTENCES[code])
    assert needed <= values, f"{place}: {code} lacks {needed - values}"
    assert takes_others or values <= named, f"{place}: {code} does not say {values - named}"


def test_results_hold_remarks_and_no_text() -> None:
    """Fields and properties with remarks are not annotated as text, outside of the renderers."""
    odd = []
    for file, tree in modules():
        if file.parts[0] in WRITERS:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name, hint = node.target.id, node.annotation
            elif isinstance(node, ast.FunctionDef) and node.returns is not None:
                name, hint = node.name, node.returns
            else:
                continue
            words = {each.id for each in ast.walk(hint) if isinstance(each, ast.Name)}
            if name in REMARKS and "str" in words and "Remark" not in words:
                odd.append(f"{file}:{node.lineno}: {name}: {ast.unparse(hint)}")
    assert not odd


def test_result_types_have_no_sentences_of_their_own() -> None:
    """No class outside of the renderers has a method called `sentence`: these are in render/."""
    odd = [
        f"{file}:{method.lineno}: {kind.name}.{method.name}"
        for file, tree in modules()
        if file.parts[0] not in WRITERS
        for kind in ast.walk(tree)
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and method.name.endswith("sentence")
    ]
    assert not odd


def test_remarks_in_json_come_back_and_text_of_earlier_files_too() -> None:
    """A remark within a remark is read as it was written; text becomes a remark of its own."""
    doubt = remark("sizes_of_data", num_ops=1, num_all=2, op_type="Where")
    whole = remark("would_guess", setting="1xV100", doubt=doubt)
    assert from_json(Remark, to_dict(whole), where="test") == whole
    assert hash(from_json(Remark, to_dict(whole), where="test")) == hash(whole)
    old = from_json(tuple[Remark, ...], ["as it was"], where="test")  # type: ignore[arg-type]
    assert [sentence(each) for each in old] == ["as it was"]  # type: ignore[attr-defined]


def test_printed_json_has_the_sentence_beside_code_and_values() -> None:
    """`text` is what the text output says, within other remarks too; other objects stay."""
    doubt = remark("link_not_measured", link="200G", like="100G")
    guess = remark("would_guess", setting="1xV100", doubt=doubt)
    shown = with_sentences(to_json({"remarks": [guess], "kind": {"code": "x", "values": {}}}))
    assert shown == {
        "remarks": [
            {
                "code": "would_guess",
                "values": {
                    "setting": "1xV100",
                    "doubt": {**to_dict(doubt), "text": sentence(doubt)},
                },
                "text": sentence(guess),
            }
        ],
        "kind": {"code": "x", "values": {}},
    }
    assert sentence(doubt) in sentence(guess)


@pytest.mark.parametrize(("share", "words"), [(1.0, "100 %"), (0.47, "47 %"), (0.0012, "0.1 %")])
def test_a_share_of_unknown_sizes_is_a_number_that_people_read(share: float, words: str) -> None:
    """All of them were `1e+02 %`."""
    said = remark("unknown", unknown_share=share, loops=(), num_loops=0)
    assert sentence(said) == f"{words} of the nodes have unknown dimensions"


def test_each_code_has_one_sentence() -> None:
    parts = (devices, graphs, inspectors, jobs, measured, offers, runs, simulated, tables)
    assert sum(len(part.SENTENCES) for part in parts) + 1 == len(SENTENCES)  # and `text`
