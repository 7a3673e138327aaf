"""The OpenAPI description: requests from the tables of fields, answers from the schema of `--json`.

driple/api/schema.json, QUESTIONS, OPTION_ROWS  ->  GET /openapi.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from driple.api.results import schema_text
from driple.graph.options import LARGEST_DIMENSION
from driple.web.fields import RequestField
from driple.web.fingerprint import driple_version
from driple.web.questions import OPTION_ROWS, QUESTIONS
from driple.web.sources import KINDS, TIMM_NAME, WORKLOAD_NAME, built_in_names

__all__ = ["openapi"]

Part = dict[str, Any]

_SUMMARIES = {
    "predict": "How will this job use these clusters?",
    "inspect": "What does Driple see of the job: work by phase, module and kind of op?",
    "sweep": "What would more bandwidth, workers, servers or another batch bring?",
    "plan": "Which devices, how many, which scheme, at what price; does it fit?",
}
_EXAMPLES: Mapping[str, Part] = {
    "predict": {"job": "mobilenet_v2", "clusters": ["1xA100", "8xH100"]},
    "inspect": {"job": "mobilenet_v2", "cluster": "1xH100", "depth": 1},
    "sweep": {"job": "mobilenet_v2", "cluster": "8xA100", "batch_sizes": [16, 32]},
    "plan": {"job": "mobilenet_v2", "devices": ["A100", "H100"], "samples": 1281167, "epochs": 90},
    "batch": {"jobs": ["mobilenet_v2"], "clusters": ["1xA100", "1xH100"]},
}
_REFUSALS = {
    "400": "the body is no JSON or no form",
    "408": "the body took too long to arrive",
    "413": "the body is too large",
    "415": "another type of body, or one that is packed",
    "421": "a server of 127.0.0.1 is asked under the name of another host",
    "422": "the request makes no sense, or the job cannot be read",
    "503": "the server is busy; ask again after Retry-After",
}
_UNCHANGED: Part = {"description": "If-None-Match has the ETag"}
_TYPES: Mapping[type, Part] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "maximum": LARGEST_DIMENSION},
    float: {"type": "number"},
    str: {"type": "string", "maxLength": 1000},
    tuple: {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1},
    dict: {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "integer", "minimum": 1}},
    },
}


@cache
def openapi() -> Part:
    """The description of all routes, OpenAPI 3.1."""
    schemas = json.loads(schema_text().replace("#/$defs/", "#/components/schemas/"))["$defs"]
    schemas |= {"Job": _job(), "JobOptions": _options(), "Refusal": _refusal(), "Work": _work()}
    paths: Part = {}
    for name, fields in QUESTIONS.items():
        schemas[f"{name.title()}Request"] = _request(fields, many=False)
        paths[f"/v1/{name}"] = {"post": _question(name, name)}
    schemas["BatchRequest"] = _request(QUESTIONS["predict"], many=True)
    paths["/v1/predict:batch"] = {"post": _question("batch", "predict")}
    paths["/v1/work/{work_id}"] = {"get": _work_route()}
    paths["/v1/catalog"] = {"get": _get("catalog", "Names that requests may use")}
    paths["/v1/catalog"]["get"]["responses"] |= {"304": _UNCHANGED}
    paths["/healthz"] = {"get": _get("health", "Whether the server answers")}
    paths["/metrics"] = {"get": _get("metrics", "Counts for Prometheus", "text/plain")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Driple",
            "version": driple_version(),
            "description": "Predicts how a training job will use a cluster. Answers are the JSON "
            "of the command line. The same request, version and data give the same bytes.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _question(name: str, answer: str) -> Part:
    example = _EXAMPLES[name]
    schema = {"$ref": f"#/components/schemas/{name.title()}Request"}
    content: Part = {"application/json": {"schema": schema, "example": example}}
    if name != "batch":
        content["multipart/form-data"] = {"schema": _form()}
    answered = {
        "description": "the answer; ETag is of job, clusters, options, version and data",
        "headers": {"ETag": {"schema": {"type": "string"}}},
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{answer}"}}},
    }
    return {
        "summary": _SUMMARIES[answer] + (" One or more jobs." if name == "batch" else ""),
        "operationId": name,
        "requestBody": {"required": True, "content": content},
        "responses": {
            "200": answered,
            "202": _accepted(),
            "304": _UNCHANGED,
            **_refusals(),
        },
    }


def _refusals() -> Part:
    schema = {"$ref": "#/components/schemas/Refusal"}
    return {
        status: {"description": words, "content": {"application/json": {"schema": schema}}}
        for status, words in _REFUSALS.items()
    }


def _accepted() -> Part:
    schema = {"$ref": "#/components/schemas/Work"}
    return {
        "description": "it takes longer than a second; fetch it from Location",
        "headers": {
            "Location": {"schema": {"type": "string"}},
            "Retry-After": {"schema": {"type": "integer"}},
        },
        "content": {"application/json": {"schema": schema}},
    }


def _work_route() -> Part:
    answers = [{"$ref": f"#/components/schemas/{name}"} for name in QUESTIONS]
    refusal = {"$ref": "#/components/schemas/Refusal"}
    return {
        "summary": "The answer of a question that took longer than a second",
        "operationId": "work",
        "parameters": [
            {"name": "work_id", "in": "path", "required": True, "schema": {"type": "string"}}
        ],
        "responses": {
            "200": {
                "description": "the answer",
                "content": {"application/json": {"schema": {"oneOf": answers}}},
            },
            "202": _accepted(),
            "304": _UNCHANGED,
            "404": {
                "description": "no such work, or none any more",
                "content": {"application/json": {"schema": refusal}},
            },
            **_refusals(),
        },
    }


def _get(name: str, summary: str, media_type: str = "application/json") -> Part:
    schema = {"type": "string" if media_type == "text/plain" else "object"}
    answered = {"description": summary, "content": {media_type: {"schema": schema}}}
    return {"summary": summary, "operationId": name, "responses": {"200": answered, **_refusals()}}


def _request(fields: tuple[RequestField, ...], *, many: bool) -> Part:
    job = {"$ref": "#/components/schemas/Job"}
    jobs: Part = {"jobs": {"type": "array", "items": job, "minItems": 1, "maxItems": 16}}
    properties = jobs if many else {"job": job}
    properties |= {one.name: {**one.schema, "description": one.help} for one in fields}
    properties["options"] = {"$ref": "#/components/schemas/JobOptions"}
    return {
        "type": "object",
        "properties": properties,
        "required": [next(iter(properties))],
        "additionalProperties": False,
    }


def _form() -> Part:
    binary = {"type": "string", "format": "binary"}
    return {
        "type": "object",
        "properties": {
            "graph": {
                **binary,
                "description": "GraphDef, SavedModel or MetaGraphDef, also .gz",
            },
            "onnx": {**binary, "description": "an ONNX file, also gzipped"},
            "config": {**binary, "description": "a config.json of Hugging Face"},
            "request": {"type": "string", "description": "the other fields, as a JSON object"},
        },
        "additionalProperties": False,
    }


def _job() -> Part:
    files = {"type": "string", "contentEncoding": "base64", "minLength": 4}
    catalogued = {
        "anyOf": [
            {"enum": [*built_in_names()]},
            {"type": "string", "pattern": f"^{WORKLOAD_NAME.pattern}$"},
        ]
    }
    values: Mapping[str, Part] = {
        "catalogue": catalogued,
        "timm": {"type": "string", "pattern": f"^{TIMM_NAME.pattern}$"},
        "config": {"type": "object", "description": "a config.json of Hugging Face"},
        "graph": {**files, "description": "a TensorFlow graph, in base64"},
        "onnx": {**files, "description": "an ONNX file, in base64"},
    }
    alone = [
        {
            "type": "object",
            "properties": {kind: values[kind]},
            "required": [kind],
            "additionalProperties": False,
        }
        for kind in KINDS
    ]
    return {
        "description": "a name of the catalogue, or what the job is made from",
        "anyOf": [catalogued, *alone],
    }


def _options() -> Part:
    return {
        "type": "object",
        "description": "options of the job, as on the command line",
        "properties": {
            row.name: {**_TYPES[row.rule.type], "description": row.help} for row in OPTION_ROWS
        },
        "additionalProperties": False,
    }


def _refusal() -> Part:
    return {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "status": {"type": "integer"}},
        "required": ["reason", "status"],
        "additionalProperties": False,
    }


def _work() -> Part:
    return {
        "type": "object",
        "properties": {
            "status": {"const": 202},
            "reason": {"type": "string"},
            "location": {"type": "string"},
        },
        "required": ["status", "reason", "location"],
        "additionalProperties": False,
    }
