"""The text reader against protobuf's own, on generated text of every layout."""

import random
import re
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from driple.errors import GraphError
from driple.graph.tf.graphdef import raw_from_message
from driple.graph.tf.pbtxt import raw_from_text
from tests.graph.graphs import plain, protobuf_reads, random_graphdef

NUM_GENERATED = 75  # of each layout


@pytest.mark.parametrize("num_texts", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_same_graph_as_protobuf_on_generated_texts(num_texts: int) -> None:
    """The layout that protobuf prints."""
    for seed in range(num_texts):
        message = random_graphdef(seed)
        text = text_format.MessageToString(message)
        assert plain(raw_from_text(text)) == plain(raw_from_message(message)), seed


@pytest.mark.parametrize(
    "options",
    [
        {"as_one_line": True},
        {"use_short_repeated_primitives": True},
        {"pointy_brackets": True},
        {"as_utf8": True},
        {"as_one_line": True, "pointy_brackets": True, "use_short_repeated_primitives": True},
        {"use_index_order": True, "indent": 3},
    ],
)
def test_same_graph_in_every_layout_that_protobuf_prints(options: dict[str, Any]) -> None:
    """One line, pointed brackets, lists, raw UTF-8, other indentation."""
    for seed in range(NUM_GENERATED):
        message = random_graphdef(seed)
        text = text_format.MessageToString(message, **options)
        assert plain(raw_from_text(text)) == protobuf_reads(text), seed


def test_same_graph_with_odd_but_legal_writing() -> None:
    """Comments, single quotes, commas, semicolons, colons before braces, CRLF, split strings."""
    for seed in range(NUM_GENERATED):
        rng = random.Random(seed)
        text = text_format.MessageToString(random_graphdef(seed))
        text = re.sub(r" \{\n", lambda _, rng=rng: rng.choice((" {\n", ": {\n", "{ # why\n")), text)
        text = re.sub(r'"\n', lambda _, rng=rng: rng.choice(('"\n', '";\n', '" ""\n')), text)
        text = text.replace("\n", rng.choice(("\n", "\r\n", "\n\n", "\n# comment }\n")))
        assert plain(raw_from_text(text)) == protobuf_reads(text), seed


def test_escapes_are_those_of_text_format() -> None:
    """Octal, hexadecimal, unicode and simple escapes, in both quotes."""
    text = (
        r'node { name: "\303\251\x41\u00e9\U0001F600\n\t\"\'\\\a\b\f\v\r?" op: '
        r"'it''s \x22q\x22' }"
    )
    (node,) = raw_from_text(text).nodes
    assert node.name == "éAé😀\n\t\"'\\\a\b\f\v\r?"
    assert node.op == 'its "q"'
    assert plain(raw_from_text(text)) == protobuf_reads(text)


def test_unknown_fields_are_skipped() -> None:
    """Fields that Driple does not know, scalars, lists, messages and extensions."""
    text = (
        'node { name: "a" op: "B" experimental_debug_info { original_node_names: ["x", "y"] } '
        "[type.googleapis.com/some.Type] { deep < deeper: [{a: 1}, {b: -inf}] > } x: 1.5e-3f } "
        'versions { producer: 27 bad_consumers: [] } node { name: "c" op: "D" }'
    )
    assert [node.name for node in raw_from_text(text).nodes] == ["a", "c"]


def test_repeated_messages_in_a_list() -> None:
    """`node: [{...}, {...}]` is two nodes."""
    graph = raw_from_text(
        'node: [{name: "a" op: "X"}, <name: "b" op: "Y">] node {name: "c" op: "Z"}'
    )
    assert [node.name for node in graph.nodes] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello world", "line 1"),
        ('node { name: "a" op: "B"\n', "open message"),
        ('node { name: "a\n" }', "line 1"),
        ("node {\n  name: 5\n}\n", "quoted string"),
        ("node {\n}\n}\n", "line 3"),
        ('node { name: "\\xff" }', "UTF-8"),
        ('node { name: "\\q" }', "escape"),
        ("weights { value: 1 }", "no GraphDef"),
        ('node { name: "a" op: "B" } @', "line 1"),
        ('node "a"', "line 1"),
        ("node: [", "in the middle"),
        (
            'node { attr { key: "_output_shapes" value { list { shape { dim { '
            "size: 99999999999999999999 } } } } } }",
            "64 bits",
        ),
        ("", "no GraphDef"),
    ],
)
def test_what_is_no_graph_is_told_in_one_line(text: str, message: str) -> None:
    """Every error names what was found."""
    with pytest.raises(GraphError, match=message) as error:
        raw_from_text(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("opening", ["a {", "a: <", "a: [{", "node { attr { value { list { "])
def test_deep_nesting_is_refused(opening: str) -> None:
    """10,000 deep: no recursion."""
    with pytest.raises(GraphError, match=r"nested|open message"):
        raw_from_text(opening * 10_000)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_text_gives_a_graph_or_our_error(data: st.DataObject) -> None:
    """Deleting, doubling or changing characters never raises anything else."""
    text = text_format.MessageToString(random_graphdef(data.draw(st.integers(0, 50))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(text) - 1)))
        length = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(st.text(max_size=6)) + text[at + length :]
    try:
        mine = plain(raw_from_text(text))
    except GraphError:
        return
    try:
        expected = protobuf_reads(text)
    except (text_format.ParseError, GraphError, UnicodeError):
        return
    assert mine == expected


@pytest.mark.parametrize(
    ("value", "types", "functions"),
    [
        ('list { func { name: "g" } func { } }', {}, {"f": ("g", "")}),
        ("list { func { } }", {}, {}),
        ("list { type: DT_INVALID }", {}, {}),
    ],
)
def test_odd_attributes_say_the_same_in_text_and_binary(
    value: str, types: dict[str, Any], functions: dict[str, Any]
) -> None:
    """Empty names and types that nobody knows."""
    text = f'node {{ name: "a" op: "B" attr {{ key: "f" value {{ {value} }} }} }}'
    (node,) = raw_from_text(text).nodes
    assert (dict(node.types), dict(node.functions)) == (types, functions)
    assert plain(raw_from_text(text)) == protobuf_reads(text)


def test_nodes_written_plainly_are_those_of_any_other_layout() -> None:
    """With one space less before each field no node is in the layout that protobuf writes."""
    for seed in range(NUM_GENERATED):
        text = text_format.MessageToString(random_graphdef(seed))
        other = re.sub(r"^  ", " ", text, flags=re.MULTILINE)
        assert plain(raw_from_text(text)) == plain(raw_from_text(other)), seed


@pytest.mark.parametrize(
    "attribute",
    ['    key: "a"\n    }\n', '    key: "a" # }\n', '    key: "a\n    b"\n', "    {\n"],
)
def test_plain_lines_around_an_odd_attribute_are_read_as_in_any_other_layout(
    attribute: str,
) -> None:
    """Attributes that close too early, hold a comment, a broken string or no name."""
    text = f'node {{\n  name: "n"\n  op: "A"\n  attr {{\n{attribute}  }}\n}}\n'
    read = []
    for layout in (text, text.replace("node {\n", "node {\n\n")):
        try:
            read.append(str(plain(raw_from_text(layout))))
        except GraphError as error:
            read.append(re.sub(r"line \d+", "line", str(error)))
    assert read[0] == read[1]
