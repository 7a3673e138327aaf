"""The JSON schema has the options of a job that the table states."""

from __future__ import annotations

import json
from typing import Literal

from scripts.write_schema import SCHEMA, json_type, schema_with_options


def test_the_schema_is_as_written() -> None:
    """If not: `python -m scripts.write_schema`."""
    schema = json.loads(SCHEMA.read_text())
    assert json.dumps(schema_with_options(schema)) == json.dumps(schema)


def test_an_option_that_is_missing_is_written_again() -> None:
    schema = json.loads(SCHEMA.read_text())
    job = json.loads(SCHEMA.read_text())["$defs"]["job"]
    del job["properties"]["library"], job["required"][0]
    without = schema | {"$defs": schema["$defs"] | {"job": job}}
    assert json.dumps(schema_with_options(without)) == json.dumps(schema)


def test_types_become_those_of_json() -> None:
    assert json_type(int | None) == {"type": ["integer", "null"]}
    assert json_type(Literal["a", "b"] | None) == {"enum": ["a", "b", None]}
    shape = {"type": "array", "items": {"type": "integer"}}
    assert json_type(tuple[int, ...] | None) == {"anyOf": [shape, {"type": "null"}]}
