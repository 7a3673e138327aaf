"""Protobuf's text format -> messages, without a schema, without recursion, bounded.

    text --one regular expression per statement--> stack of open messages --> top-level fields

A statement is `name: value`, `name {` or `}`, whatever its layout; lists, extension names and split
strings are read token by token. A graph repeats the same few hundred attributes thousands of times,
so an attribute whose text was met before is not parsed again: its message is shared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from driple.errors import GraphError
from driple.graph.tf.textvalues import unescape, unescape_bytes
from driple.units import counted

__all__ = ["MAX_DEPTH", "TextMessage", "Value", "as_message", "top_level_fields"]

# Protobuf's own limit; a GraphDef of TensorFlow is at most a dozen deep.
MAX_DEPTH = 100

_SPACE = r"\s*+(?:\#[^\n]*+\s*+)*+"
_STRING = r'"(?:[^"\\\n]++|\\.)*+"' + r"|'(?:[^'\\\n]++|\\.)*+'"
_WORD = r"[A-Za-z0-9_.+\-]++"
_SEPARATOR = rf"(?:[,;]{_SPACE})?+"
_SHARED_LEVELS = 9
_MOST_SHARED_CHARS = 100_000


def _balanced(levels: int) -> str:
    """Braces up to the one that closes the first, over strings and comments that may hold some."""
    plain = rf"[^{{}}\"'#]++|{_STRING}|\#[^\n]*+"
    pattern = rf"\{{(?:{plain})*+\}}"
    for _ in range(levels):
        pattern = rf"\{{(?:{plain}|{pattern})*+\}}"
    return pattern


# A string that another one follows is the first piece of a split one: no statement yet.
_STATEMENT = re.compile(
    rf"(?:attr{_SPACE}(?::{_SPACE})?+(?P<shared>{_balanced(_SHARED_LEVELS)}){_SPACE}{_SEPARATOR}"
    rf"|(?P<name>[A-Za-z_][A-Za-z0-9_]*+){_SPACE}(?:"
    rf":{_SPACE}(?:(?P<word>{_WORD}){_SPACE}{_SEPARATOR}"
    rf"|(?P<string>{_STRING}){_SPACE}{_SEPARATOR}(?![\"'])"
    rf"|(?P<start>[{{<]){_SPACE})"
    rf"|(?P<start_too>[{{<]){_SPACE})"
    rf"|(?P<end>[}}>]){_SPACE})"
)
# A node as protobuf itself writes it, line by line: fields in their order, no escapes, and each
# attribute between lines of its own.
_PLAIN = r'"[^"\\\n]*+"'
_PLAIN_NODE = re.compile(
    rf"node \{{\n  name: ({_PLAIN})\n  op: ({_PLAIN})\n((?:  input: {_PLAIN}\n)*+)"
    rf"(?:  device: ({_PLAIN})\n)?+((?:  attr \{{\n(?:    [^\n]*+\n)*+  \}}\n)*+)\}}{_SPACE}"
)
_PLAIN_ATTRIBUTE, _PLAIN_INPUT = "\n  attr {\n", "  input: "
_NEXT_INPUT = f"\n{_PLAIN_INPUT}"
_SHARED, _NAME, _END = (_STATEMENT.groupindex[group] for group in ("shared", "name", "end"))
_SCALARS = (_STATEMENT.groupindex["word"], _STATEMENT.groupindex["string"])
_TOKEN = re.compile(
    rf"(?:(?P<string>{_STRING})|(?P<word>{_WORD})|(?P<mark>[{{}}<>:\[\],;/])){_SPACE}"
)
_SKIPPED = re.compile(_SPACE)
_WORD_START = re.compile(_WORD)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_CLOSING = {"{": "}", "<": ">"}


@dataclass(slots=True, eq=False)
class TextMessage:
    """A message. It may be shared by all fields of one text, so its fields are never changed.

    Attributes:
        fields: the values of each field, in order.
        meaning: what a reader made of it, kept here to be made once only.
    """

    fields: dict[str, list[Value]] = field(default_factory=dict)
    meaning: object = None

    def messages(self, name: str) -> list[TextMessage]:
        """All values of a field that holds messages."""
        return [
            value if isinstance(value, TextMessage) else as_message(name, value)
            for value in self.fields.get(name, ())
        ]

    def message(self, name: str) -> TextMessage | None:
        """All values of a message field, merged: text may give its parts one by one."""
        parts = self.messages(name)
        if len(parts) < 2:
            return parts[0] if parts else None
        merged = TextMessage()
        for part in parts:
            for key, values in part.fields.items():
                merged.fields.setdefault(key, []).extend(values)
        return merged

    def strings(self, name: str) -> list[str]:
        """All values of a string field."""
        values = self.fields.get(name)
        return [_decoded(name, value) for value in values] if values else []

    def string(self, name: str) -> str:
        """The last value of a string field; empty if there is none."""
        values = self.fields.get(name)
        if values is None:
            return ""
        if len(values) == 1:
            return _decoded(name, values[0])
        return self.strings(name)[-1]

    def octets(self, name: str, most: int) -> bytes:
        """The last value of a field of bytes; empty if it is missing or written in over `most`."""
        value = self.fields.get(name, [""])[-1]
        pieces = (value,) if isinstance(value, str) else value
        if isinstance(pieces, TextMessage) or sum(map(len, pieces)) > most:
            return b""
        return b"".join(unescape_bytes(piece[1:-1]) for piece in pieces)

    def words(self, name: str) -> list[str]:
        """All values of a number or name field."""
        words: list[str] = []
        for value in self.fields.get(name, ()):
            if not isinstance(value, str) or value[0] in "\"'":
                raise GraphError(f"field '{name}' holds no number or name")
            words.append(value)
        return words


# A word as written, a string as written with its quotes, the pieces of a split string, a message.
Value = str | tuple[str, ...] | TextMessage


def as_message(name: str, value: Value) -> TextMessage:
    """The message that a field holds.

    Raises:
        GraphError: it holds something else.
    """
    if not isinstance(value, TextMessage):
        raise GraphError(f"field '{name}' holds {_shown(value)}, a message {{...}} was expected")
    return value


def _decoded(name: str, value: Value) -> str:
    if isinstance(value, str) and value[0] in "\"'":
        return unescape(value[1:-1]) if "\\" in value else value[1:-1]
    if isinstance(value, tuple):
        return "".join(unescape(piece[1:-1]) for piece in value)
    raise GraphError(f"field '{name}' holds {_shown(value)}, a quoted string was expected")


def _shown(value: Value) -> str:
    if isinstance(value, TextMessage):
        return "a message"
    return (value if isinstance(value, str) else " ".join(value))[:40]


# An open message: its end, the field of the list that it is in, its text if it will be shared.
_Open = tuple[TextMessage, str, str | None, str | None]


def top_level_fields(text: str) -> Iterator[tuple[str, Value]]:
    """The fields of the outermost message with their values, one by one, as they end.

    Raises:
        GraphError: the text is no text format, with the line where it is not; deep nesting.
    """
    return _Parser(text).fields()


class _Parser:
    """A position in the text, at a token or at the end, and a stack of open messages.

    Sharing is sound since a text of balanced braces that was once parsed as a message, alone, is
    that message wherever one begins: nothing outside of the braces has a say in it.
    """

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self.stack: list[_Open] = [(TextMessage(), "", None, None)]
        self.known: dict[str, TextMessage] = {}

    def fields(self) -> Iterator[tuple[str, Value]]:
        text, stack, known, match = self.text, self.stack, self.known, _STATEMENT.match
        top = fields = stack[0][0].fields
        self._pass_space(0)
        while self.position < len(text):
            if fields is top and (node := self._plain_node()) is not None:
                yield "node", node
                continue
            token = match(text, self.position)
            kind = token.lastindex if token else None
            if token is None or kind is None:
                self._odd_statement()
            elif kind == _SHARED and (same := known.get(token[_SHARED])) is not None:
                fields.setdefault("attr", []).append(same)
                self.position = token.end()
                continue
            elif kind in _SCALARS:
                fields.setdefault(token[_NAME], []).append(token[kind])
                self.position = token.end()
                continue
            elif kind == _END:
                self._close(token)
            elif kind == _SHARED:
                self._pass_space(token.start(kind) + 1)
                self._open("attr", token.start(kind), body=token[kind])
            else:
                self.position = token.end()
                self._open(token[_NAME], token.start(kind))
            fields = stack[-1][0].fields
            if fields is top:
                yield from ((name, value) for name, values in top.items() for value in values)
                top.clear()
        if len(stack) > 1:
            raise self._error(
                len(text), f"text ends inside {counted(len(stack) - 1, 'open message')}"
            )
        yield from ((name, value) for name, values in top.items() for value in values)

    def _plain_node(self) -> TextMessage | None:
        """The node at the position if it is written plainly, as most are; goes to its end.

        Nothing else is asked of its text: attributes that are not balanced on their own, and all
        other layouts, are left to be read statement by statement.
        """
        plain = _PLAIN_NODE.match(self.text, self.position)
        if plain is None:
            return None
        name, op, inputs, device, attributes = plain.groups()
        fields: dict[str, list[Value]] = {"name": [name], "op": [op]}
        if inputs:
            fields["input"] = [*inputs[:-1].removeprefix(_PLAIN_INPUT).split(_NEXT_INPUT)]
        if device is not None:
            fields["device"] = [device]
        if attributes:
            bodies = f"\n{attributes[:-1]}".split(_PLAIN_ATTRIBUTE)[1:]
            read = [self.known.get(body) or self._alone(body) for body in bodies]
            fields["attr"] = [message for message in read if message is not None]
            if len(fields["attr"]) < len(bodies):
                return None
        self.position = plain.end()
        return TextMessage(fields)

    def _alone(self, body: str) -> TextMessage | None:
        """The message of an attribute, after its opening brace; None if it cannot stand alone."""
        try:
            ((name, message),) = _Parser(f"attr {{{body}").fields()
        except (GraphError, ValueError):
            return None
        if name != "attr" or not isinstance(message, TextMessage):
            return None
        if len(body) <= _MOST_SHARED_CHARS:
            self.known[body] = message
        return message

    def _pass_space(self, position: int) -> None:
        """Go to the first token from `position` on."""
        space = _SKIPPED.match(self.text, position)
        self.position = space.end() if space else position

    def _open(self, name: str, at: int, *, in_list: bool = False, body: str | None = None) -> None:
        """Open a message of the innermost one, whose brace is at `at`, before the position."""
        stack = self.stack
        if len(stack) > MAX_DEPTH:
            raise self._error(at, f"messages are nested over {MAX_DEPTH} deep")
        child = TextMessage()
        stack[-1][0].fields.setdefault(name, []).append(child)
        stack.append((child, _CLOSING[self.text[at]], name if in_list else None, body))

    def _close(self, token: re.Match[str]) -> None:
        """Close the innermost message; in a list, open the next one."""
        message, closing, list_field, body = self.stack[-1]
        if token[_END] != closing:
            raise self._error(self.position, f"found {token[_END]!r}")
        self.position = token.end()
        self.stack.pop()
        if body is not None and len(body) <= _MOST_SHARED_CHARS:
            self.known[body] = message
        if list_field is None or self._skip("]"):
            self._skip(",", ";")
        else:
            self._expect(",")
            self._open_in_list(list_field)

    def _open_in_list(self, name: str) -> None:
        at = self.position
        self._expect("{", "<")
        self._open(name, at, in_list=True)

    def _odd_statement(self) -> None:
        """A statement that is not `name: value`, `name {` or `}`; token by token."""
        message = self.stack[-1][0]
        name = self._field_name()
        has_colon = self._skip(":")
        at = self.position
        if self._skip("{", "<"):
            self._open(name, at)
        elif self._skip("["):
            if self._next_is("{", "<"):
                self._open_in_list(name)
            else:
                self._scalar_list(message.fields.setdefault(name, []))
        elif has_colon:
            message.fields.setdefault(name, []).append(self._scalar())
            self._skip(",", ";")
        else:
            raise self._unexpected()

    def _field_name(self) -> str:
        at = self.position
        if self._skip("["):  # an extension or Any: [some.name/Type]
            parts = []
            while not self._skip("]"):
                if not self._next_is("/") and not _WORD_START.match(self.text, self.position):
                    raise self._unexpected()
                parts.append(self._take()[1])
            return f"[{''.join(parts)}]"
        kind, name = self._take()
        if kind != "word" or not _IDENTIFIER.fullmatch(name):
            raise self._error(at, f"found {name[:20]!r}")
        return name

    def _scalar(self) -> Value:
        at = self.position
        kind, token = self._take()
        if kind == "mark":
            raise self._error(at, f"found {token!r}")
        pieces = [token]
        while kind == "string" and self._next_is('"', "'"):
            pieces.append(self._take()[1])
        return token if len(pieces) == 1 else tuple(pieces)

    def _scalar_list(self, values: list[Value]) -> None:
        """Values up to the closing bracket, which may follow at once."""
        while not self._skip("]"):
            values.append(self._scalar())
            if not self._skip(",") and not self._next_is("]"):
                raise self._unexpected()
        self._skip(",", ";")

    def _take(self) -> tuple[str, str]:
        """Kind and text of the next token."""
        token = _TOKEN.match(self.text, self.position)
        if token is None:
            raise self._unexpected()
        self.position = token.end()
        kind = token.lastgroup or ""
        return kind, token[kind]

    def _next_is(self, *starts: str) -> bool:
        return self.text.startswith(starts, self.position)

    def _skip(self, *marks: str) -> bool:
        """Take the next token if it is one of these marks."""
        if not self._next_is(*marks):
            return False
        self._pass_space(self.position + 1)
        return True

    def _expect(self, *marks: str) -> None:
        if not self._skip(*marks):
            raise self._unexpected()

    def _unexpected(self) -> GraphError:
        if self.position >= len(self.text):
            return self._error(self.position, "text ends in the middle")
        match = _TOKEN.match(self.text, self.position)
        token = match[match.lastgroup or 0] if match else self.text[self.position :][:10]
        return self._error(self.position, f"found {token[:20]!r}")

    def _error(self, position: int, what: str) -> GraphError:
        line = self.text.count("\n", 0, position) + 1
        return GraphError(
            f"line {line}: {what}, protobuf text format was expected; "
            "write the graph again (tf.io.write_graph with as_text=True)"
        )
