"""Write the options of a job into driple/api/schema.json.

python -m scripts.write_schema

table of job options + types of what a Job states  ->  properties of `job` in the schema
"""

from __future__ import annotations

import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from driple.graph.torch.options import StepOptions
from driple.jobs.job import Job
from driple.jobs.options import JOB_OPTIONS

__all__ = ["json_type", "schema_with_options"]

SCHEMA = Path(__file__).resolve().parents[1] / "driple" / "api" / "schema.json"
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_LAST_BEFORE = "kind"  # the options follow it, as in the JSON


def json_type(hint: Any) -> dict[str, Any]:
    """What the schema says of a type: a plain type, a Literal, a tuple of any length, or None."""
    if get_origin(hint) in (Union, UnionType):
        (kind,) = (one for one in get_args(hint) if one is not NoneType)
        known = json_type(kind)
        if "enum" in known:
            return {"enum": [*known["enum"], None]}
        if set(known) == {"type"}:
            return {"type": [known["type"], "null"]}
        return {"anyOf": [known, {"type": "null"}]}
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": json_type(get_args(hint)[0])}
    return {"type": _TYPES[hint]}


def _hint_of(name: str) -> Any:
    """The type of what a job states of an option, see `Job.stated`."""
    stated = getattr(Job, name, None)
    if isinstance(stated, property):
        return get_type_hints(stated.fget)["return"]
    return (get_type_hints(StepOptions) | get_type_hints(Job))[name]


def schema_with_options(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, whose `job` has the options that the table states, in its order."""
    job = schema["$defs"]["job"]
    options = {row.name: json_type(_hint_of(row.name)) for row in JOB_OPTIONS if row.stated}
    others = {name: known for name, known in job["properties"].items() if name not in options}
    properties: dict[str, Any] = {}
    for name, known in others.items():
        properties[name] = known
        if name == _LAST_BEFORE:
            properties |= options
    made = job | {"properties": properties, "required": list(properties)}
    return schema | {"$defs": schema["$defs"] | {"job": made}}


if __name__ == "__main__":
    known = json.loads(SCHEMA.read_text(encoding="utf-8"))
    text = json.dumps(schema_with_options(known), indent=1) + "\n"
    SCHEMA.write_text(text, encoding="utf-8")
