"""The shipped JSON schema is the one that the types of the answers give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from driple.api.json_types.commands import LISTS
from driple.cli.listing import _KINDS
from driple.codec import Names, json_field, to_dict
from driple.jobs.options import JOB_OPTIONS
from scripts.pages.schema import SCHEMA, SchemaParts, make_schema
from scripts.pages.schema import __doc__ as how


def test_the_shipped_schema_is_as_made() -> None:
    """If not: `python -m scripts.pages.schema`, as its docstring and the schema say."""
    text = json.dumps(make_schema(), indent=1) + "\n"
    assert SCHEMA.read_text(encoding="utf-8") == text
    assert "python -m scripts.pages.schema" in str(how)


class SeatJson(TypedDict):
    """A seat.

    Attributes:
        row: counted from the stage, which is
            row 0.
    """

    row: int
    next: SeatJson | None
    note: NotRequired[str]


@dataclass(frozen=True)
class Hall:
    """A hall with seats."""

    name: str = field(metadata=json_field(name="of"))
    seats: tuple[str, ...] = field(default=(), metadata=json_field(optional=True))
    others: Mapping[str, str] = field(default_factory=dict, metadata=json_field(rest=True))


class OtherHall:
    """Another class that is called `Hall` in the schema."""


def test_a_typed_dictionary_is_described_with_its_docstring() -> None:
    """A key of `NotRequired` may be missing, a class may hold itself, and no other key passes."""
    parts = SchemaParts()
    assert parts.of(SeatJson) == {"$ref": "#/$defs/seat"}
    assert parts.defs == {
        "seat": {
            "description": "A seat.",
            "type": "object",
            "properties": {
                "row": {
                    "type": "integer",
                    "description": "counted from the stage, which is row 0.",
                },
                "next": {"anyOf": [{"$ref": "#/$defs/seat"}, {"type": "null"}]},
                "note": {"type": "string"},
            },
            "required": ["row", "next"],
            "additionalProperties": False,
        }
    }


def test_a_dataclass_is_described_as_the_codec_writes_it() -> None:
    """Names, optional fields and the field that holds the rest are those of `json_field`."""
    parts = SchemaParts()
    parts.of(Hall)
    hall = parts.defs["hall"]
    assert to_dict(Hall("H1", others={"door": "north"})) == {"of": "H1", "door": "north"}
    assert (list(hall["properties"]), hall["required"]) == (["of", "seats"], ["of"])
    assert hall["additionalProperties"] is True


@pytest.mark.parametrize(
    ("hint", "part"),
    [
        (int | None, {"type": ["integer", "null"]}),
        (Literal["a", "b"] | None, {"enum": ["a", "b", None]}),
        (Literal[True], {"const": True}),
        (Annotated[str, Names(("a", "b"))], {"enum": ["a", "b"]}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, float],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "number"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (
            Mapping[Literal["a", "b"], float],
            {
                "type": "object",
                "propertyNames": {"enum": ["a", "b"]},
                "additionalProperties": {"type": "number"},
            },
        ),
        (
            Annotated[Mapping[str, int], Names(("a",))],
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
    ],
    ids=str,
)
def test_types_become_those_of_json(hint: Any, part: dict[str, Any]) -> None:
    assert SchemaParts().of(hint) == part


def test_every_list_is_named() -> None:
    assert tuple(_KINDS) == LISTS


def test_narrower_types_of_fields_stand_beside_a_dataclass() -> None:
    part = SchemaParts().of(Annotated[Hall, {"of": Literal["H1", "H2"]}])
    assert part["properties"]["of"] == {"enum": ["H1", "H2"]}


def test_a_type_without_json_and_a_name_of_two_classes_are_refused() -> None:
    with pytest.raises(TypeError, match="does not describe"):
        SchemaParts().of(set[int])
    parts = SchemaParts()
    parts.of(Hall)
    with pytest.raises(TypeError, match="both called hall"):
        parts.add_question("hall", OtherHall)


def test_the_job_has_the_options_that_the_table_states() -> None:
    """They follow the job's kind, in the order of the table."""
    names = list(make_schema()["$defs"]["job"]["properties"])
    stated = [row.name for row in JOB_OPTIONS if row.stated]
    assert names[2 : 2 + len(stated)] == stated
    assert "batch_size" in stated
