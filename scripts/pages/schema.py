"""Make driple/api/schema.json, the JSON Schema of all `--json` outputs.

python -m scripts.pages.schema [--check]

types in driple/api/json_types, and the table of job options  ->  schema.json

A class becomes a part of `$defs`: a TypedDict with the keys that a function fills in, a dataclass
with the keys that `driple.codec` writes. Descriptions are those of the docstrings.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from driple.api.json_types import QUESTIONS
from driple.api.json_types.shared import JobJson, RemarkJson
from driple.codec import JSON_NAME, JSON_OPTIONAL, JSON_REST, Names
from driple.graph.torch.options import StepOptions
from driple.jobs.job import Job
from driple.jobs.options import JOB_OPTIONS
from driple.remarks import Remark
from scripts.studies.kit.written import options_of, written

__all__ = ["SCHEMA", "SchemaParts", "make_schema"]

SCHEMA = Path(__file__).resolve().parents[2] / "driple" / "api" / "schema.json"

Part = dict[str, Any]

_SCALARS: Mapping[Any, Part] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    NoneType: {"type": "null"},
    Path: {"type": "string"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    object: {},
}
_HEAD = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "What the commands of driple print with --json, and what results give in Python",
    "description": "One object per command; its question states which. Every estimated number is "
    "an estimate: value, interval, method, source. Units are suffixes (_s seconds, _bytes, _pct "
    "percent); plain numbers are facts read from the job, the catalogue or published tables. Made "
    "by python -m scripts.pages.schema",
}


def make_schema() -> Part:
    """The schema of all questions."""
    parts = SchemaParts()
    for name, kind in QUESTIONS.items():
        parts.add_question(name, kind)
    questions = [{"$ref": f"#/$defs/{name}"} for name in QUESTIONS]
    return {**_HEAD, "oneOf": questions, "$defs": parts.defs}


class SchemaParts:
    """The parts of a schema, which refer to each other by name.

    Attributes:
        defs: each part by its name.
    """

    def __init__(self) -> None:
        self.defs: dict[str, Part] = {}
        self._kinds: dict[str, type] = {}  # class that each part describes
        self._makers: Mapping[Any, Callable[[tuple[Any, ...]], Part]] = {
            Annotated: lambda arguments: self._narrowed(*arguments),
            Literal: lambda values: (
                {"const": values[0]} if len(values) == 1 else {"enum": [*values]}
            ),
            Union: self._union,
            UnionType: self._union,
            tuple: self._tuple,
            list: self._tuple,
            Sequence: self._tuple,
            dict: lambda arguments: self._mapping(*arguments),
            Mapping: lambda arguments: self._mapping(*arguments),
        }

    def add_question(self, name: str, hint: Any) -> None:
        """Add the answer to a question, whose first key is its name."""
        kind, narrower = get_args(hint) if get_origin(hint) is Annotated else (hint, {})
        self._claim(name, kind)
        self.defs[name] = self._narrowed(kind, {"question": Literal[name], **narrower})

    def of(self, hint: Any) -> Part:
        """The schema of the JSON of a value of a type.

        Raises:
            TypeError: a type whose JSON is not known.
        """
        hint = RemarkJson if hint is Remark else hint  # commands add the sentence
        make = self._makers.get(get_origin(hint))
        if make is not None:
            return make(get_args(hint))
        if is_typeddict(hint) or dataclasses.is_dataclass(hint):
            return self._ref(hint)
        if hint not in _SCALARS:
            raise TypeError(f"the schema does not describe {hint}")
        return dict(_SCALARS[hint])

    def _claim(self, name: str, kind: type) -> None:
        if self._kinds.setdefault(name, kind) is not kind:
            raise TypeError(f"{kind} and {self._kinds[name]} are both called {name} in the schema")

    def _ref(self, kind: type) -> Part:
        words = re.findall("[A-Z]+[a-z0-9]*", kind.__name__.removesuffix("Json"))
        name = "_".join(words).lower()
        self._claim(name, kind)
        if name not in self.defs:
            self.defs[name] = {}  # a class may hold itself
            self.defs[name] = self._object(kind, dict(_fields(kind)))
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, kind: type, fields: Mapping[str, tuple[Any, bool]]) -> Part:
        """An object that has no other keys, but where a field holds the rest of them."""
        what, notes = _docstring(kind)
        properties = {
            name: self.of(hint) | ({"description": notes[name]} if name in notes else {})
            for name, (hint, _) in fields.items()
        }
        described = {"description": what} if what else {}
        return {
            **described,
            "type": "object",
            "properties": properties,
            "required": [name for name, (_, is_required) in fields.items() if is_required],
            "additionalProperties": _holds_rest(kind),
        }

    def _union(self, kinds: Sequence[Any]) -> Part:
        """One of several types; None is a further type or a further value."""
        known = [self.of(kind) for kind in kinds if kind is not NoneType]
        if NoneType not in kinds:
            return {"anyOf": known}
        if len(known) == 1 and set(known[0]) == {"enum"}:
            return {"enum": [*known[0]["enum"], None]}
        if len(known) == 1 and set(known[0]) == {"type"}:
            return {"type": [known[0]["type"], "null"]}
        return {"anyOf": [*known, {"type": "null"}]}

    def _tuple(self, kinds: Sequence[Any]) -> Part:
        """A list of any length, or of items of these types."""
        if len(kinds) == 1 or kinds[-1] is ...:
            return {"type": "array", "items": self.of(kinds[0])}
        length = len(kinds)
        items = [self.of(kind) for kind in kinds]
        return {"type": "array", "prefixItems": items, "minItems": length, "maxItems": length}

    def _mapping(self, key: Any, value: Any) -> Part:
        names = {} if key in (str, int) else {"propertyNames": self.of(key)}
        return {"type": "object", **names, "additionalProperties": self.of(value)}

    def _narrowed(self, hint: Any, known: Names | Mapping[str, Any]) -> Part:
        """A text with known values, a mapping with known keys, or narrower types of fields."""
        if isinstance(known, Mapping):
            fields = {name: (narrow, True) for name, narrow in known.items()}
            part = self._object(hint, fields | dict(_fields(hint)) | fields)
            return part | {"additionalProperties": False}
        if hint is str:
            return {"enum": [*known.names]}
        value = self.of(get_args(hint)[1])
        return {
            "type": "object",
            "properties": dict.fromkeys(known.names, value),
            "required": [*known.names] if known.all_present else [],
            "additionalProperties": value if known.and_others else False,
        }


def _fields(kind: type) -> Iterator[tuple[str, tuple[Any, bool]]]:
    """Each key of a class's JSON with its type, and whether it is always there."""
    hints = get_type_hints(kind, include_extras=True)
    if is_typeddict(kind):
        for name, hint in hints.items():
            is_required = get_origin(hint) is not NotRequired
            yield name, (hint if is_required else get_args(hint)[0], is_required)
            if kind is JobJson and name == "kind":
                yield from ((row.name, (_option(row.name), True)) for row in _stated())
        return
    for field in dataclasses.fields(kind):
        if field.init and not field.metadata.get(JSON_REST):
            name = field.metadata.get(JSON_NAME) or field.name
            yield name, (hints[field.name], not field.metadata.get(JSON_OPTIONAL))


def _holds_rest(kind: type) -> bool:
    if is_typeddict(kind):
        return False
    return any(field.metadata.get(JSON_REST) for field in dataclasses.fields(kind))


def _stated() -> list[Any]:
    """Rows of the table of job options that the JSON of a job states."""
    return [row for row in JOB_OPTIONS if row.stated]


def _option(name: str) -> Any:
    """The type of what a job states of an option, see `Job.stated`."""
    stated = getattr(Job, name, None)
    if isinstance(stated, property):
        return get_type_hints(stated.fget)["return"]
    return (get_type_hints(StepOptions) | get_type_hints(Job))[name]


def _docstring(kind: type) -> tuple[str, dict[str, str]]:
    """First paragraph of a class's docstring, and what it says of each attribute."""
    text = kind.__doc__ or ""
    if text.startswith(f"{kind.__name__}("):  # a dataclass that has none
        return "", {}
    text = cleandoc(text)
    what = " ".join(text.partition("\n\n")[0].split())
    _, _, block = text.partition("Attributes:\n")
    block = block.partition("\n\n")[0]
    notes = re.findall(r"^    (\w+): ((?:.|\n     )*)", block, re.MULTILINE)
    return what, {name: " ".join(note.split()) for name, note in notes}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file, or check it."""
    given = options_of(__doc__).parse_args(argv)
    text = json.dumps(make_schema(), indent=1) + "\n"
    return written({SCHEMA: text}, check=given.check, program="python -m scripts.pages.schema")


if __name__ == "__main__":
    sys.exit(main())
