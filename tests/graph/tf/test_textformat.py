"""Text format -> messages: sharing, any layout, errors with their line."""

import random
import re
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from driple.errors import GraphError
from driple.graph.tf import textformat
from driple.graph.tf.pbtxt import raw_from_text
from driple.graph.tf.textformat import TextMessage, as_message, top_level_fields
from tests.graph.graphs import node_text, plain, protobuf_reads, random_graphdef

ATTRIBUTE = 'attr { key: "}" value { list { shape { dim { size: 2 } } } } }'
# What may stand wherever there is white space, and pieces that break or change a text.
HARMLESS = ("\n", "\t", "\r\n", "  ", "# note\n", '# } " {\n', "#\n\n# 'x\n")
HARMFUL = (
    *('"', "'", "{", "}", "<", ">", "[", "]", ",", ";", ":", "@", "\\", "node {\n", "}\n", "/"),
    'attr { key: "T" value { type: DT_INT32 } }\n',
    'attr: { key: "T" }; ',
    'attr [{ key: "T" }, { key: "N" value: < type: 3 > }]\n',
    'library { function { signature { name: "f" } node_def { name: "m" ' + ATTRIBUTE + " } } }\n",
    "versions { producer: 1 }\n",
    'input: ["a", "b"] ',
    "op: 'single' ",
    '"more" ',
    "size: 0x1f ",
    "type: DT_HALF ",
    'func { name: "g" } ',
)


def outcome(text: str) -> Any:
    """The graph, or the error."""
    try:
        return plain(raw_from_text(text))
    except GraphError as error:
        return str(error)


def outcome_without_sharing(text: str) -> Any:
    """The same with every attribute parsed where it stands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textformat, "_MOST_SHARED_CHARS", -1)
        return outcome(text)


def perturbed(text: str, rng: random.Random, pieces: tuple[str, ...], *, num_places: int) -> str:
    """The text with pieces put in place of white space, here and there."""
    for _ in range(num_places):
        matches = re.finditer(r'"(?:[^"\\\n]|\\.)*"|#.*|(\s)', text)
        at = rng.choice([one.start() for one in matches if one[1]])
        text = text[:at] + " " + rng.choice(pieces) + text[at:]
    return text


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.randoms(use_true_random=False), st.integers(1, 6))
def test_comments_and_white_space_change_nothing(seed: int, rng: Any, num_places: int) -> None:
    """One odd block or several: the graph is that of the printed text, and protobuf's."""
    text = text_format.MessageToString(random_graphdef(seed))
    odd = perturbed(text, rng, HARMLESS, num_places=num_places)
    assert plain(raw_from_text(odd)) == plain(raw_from_text(text)) == protobuf_reads(odd)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 200), st.randoms(use_true_random=False), st.integers(1, 4))
def test_sharing_changes_neither_graphs_nor_errors(seed: int, rng: Any, num_places: int) -> None:
    """Whatever is put in: the same as without sharing, and protobuf's graph if it has one."""
    text = text_format.MessageToString(random_graphdef(seed)) * 2
    text = perturbed(text, rng, HARMLESS + HARMFUL, num_places=num_places)
    result = outcome(text)
    assert result == outcome_without_sharing(text)
    try:
        expected = protobuf_reads(text)
    except (text_format.ParseError, GraphError, UnicodeError):
        return
    assert result == expected or "escape" in result


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 200), st.randoms(use_true_random=False))
def test_reordered_and_doubled_fields(seed: int, rng: Any) -> None:
    """Attributes before names, blocks in another order, a field twice where the last one counts."""
    text = text_format.MessageToString(random_graphdef(seed))
    blocks = re.findall(r"^node \{\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)
    rng.shuffle(blocks)
    odd = []
    for block in blocks:
        fields = re.findall(r"^  \w.*?(?=^  \w|^\})", block, re.MULTILINE | re.DOTALL)
        rng.shuffle(fields)
        odd.append("node {\n" + '  op: "First"\n' + "".join(fields) + "}\n")
    expected = protobuf_reads("".join(blocks))[0]
    parsed = plain(raw_from_text("".join(odd)))[0]
    for mine, theirs in zip(parsed, expected, strict=True):
        assert mine[:3] == theirs[:3]
        assert sorted(mine[3]) == sorted(theirs[3])
        assert mine[4:] == theirs[4:]


@pytest.mark.parametrize("last", ["", "value { }", "value { list { } }", "value { i: 5 }"])
def test_the_last_attribute_of_a_key_counts(last: str) -> None:
    """In the binary form as in text, also where the last one says nothing."""
    first = 'attr { key: "T" value { type: DT_INT32 } }'
    text = f'node {{ name: "a" op: "b" {first} attr {{ key: "T" {last} }} }}'
    assert plain(raw_from_text(text)) == protobuf_reads(text)
    assert raw_from_text(text).nodes[0].types == {}


@pytest.mark.parametrize(
    "attribute",
    [
        ATTRIBUTE,
        ATTRIBUTE.replace(" ", "\n\t"),
        ATTRIBUTE.replace("attr {", "attr: {"),
        ATTRIBUTE.replace(' "}"', " # }}}\n '}'"),
        ATTRIBUTE.replace(' "}"', r' "\"}"'),
    ],
)
def test_an_attribute_met_before_is_shared(attribute: str) -> None:
    """This is what makes the reader fast: also in functions, and whatever stands around it."""
    text = (
        f'node {{ name: "a" {attribute} }}\n# odd\nnode {{ op: "b"; {attribute}, }}'
        f"library {{ function {{ node_def < {attribute} > }} }}"
    )
    first, second, library = (as_message(*field) for field in top_level_fields(text))
    (function,) = library.messages("function")
    (node,) = function.messages("node_def")
    (entry,) = first.messages("attr")
    assert second.fields["attr"] == node.fields["attr"] == [entry]
    assert isinstance(entry, TextMessage)


@pytest.mark.parametrize("broken", ["@", "'", "5", "]", ">", "size: ,", "[a.b}", '""', "a { }}}}}"])
def test_errors_name_the_line_in_the_whole_file(broken: str) -> None:
    """After a thousand nodes whose attributes are shared, inside of an attribute or not."""
    good = node_text("a", "Relu", shape="2x3")
    before, after = good.split("      type", 1)
    bad = f"{before}{broken}\n      type{after}"
    line = 1000 * good.count("\n") + before.count("\n") + 1
    with pytest.raises(GraphError) as error:
        raw_from_text(good * 1000 + bad + good)
    assert str(error.value).startswith(f"line {line}: ")


@pytest.mark.parametrize("opening", ["a {", "attr {", "a <", "a [{"])
def test_messages_may_be_a_hundred_deep_and_no_deeper(opening: str) -> None:
    """Protobuf's own limit, whatever opens a message."""
    closing = {"{": "}", "<": ">"}[opening[-1]] + "]" * opening.count("[")
    depth = textformat.MAX_DEPTH
    assert len(list(top_level_fields(opening * depth + closing * depth))) == 1
    with pytest.raises(GraphError, match="nested over 100 deep"):
        list(top_level_fields(opening * (depth + 1) + closing * (depth + 1)))


@pytest.mark.parametrize("end", ["", "'", "}" * 300, "}" * 99 + "} @"])
def test_nested_attributes_take_linear_time(end: str) -> None:
    """Each of 99 attributes is looked at once as a whole; none a hundred times a megabyte."""
    text = "node { " + "attr { " * 99 + 'key: "k" i: 1 ' * 70_000 + end
    with pytest.raises(GraphError):
        raw_from_text(text)
