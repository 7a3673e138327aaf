"""The description names every route, its parts are all there, and its examples are answered."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from driple.api.results import schema_text
from driple.web.openapi import openapi
from driple.web.questions import QUESTIONS
from tests.web.conftest import Asker


def test_every_reference_has_its_part() -> None:
    described = openapi()
    text = json.dumps(described)
    parts = set(re.findall(r"#/components/schemas/([\w-]+)", text))
    assert parts <= set(described["components"]["schemas"])
    assert "#/$defs" not in text


def test_answers_are_those_of_the_command_line() -> None:
    own = json.loads(schema_text())["$defs"]
    for name in QUESTIONS:
        part = openapi()["components"]["schemas"][name]
        assert json.dumps(part).replace("components/schemas", "$defs") == json.dumps(own[name])


def test_every_route_is_described(asker: Asker) -> None:
    """And nothing else is."""
    described = asker.client.get("/openapi.json").json()
    for path, methods in described["paths"].items():
        for method in methods:
            answer = asker.client.request(method, path.replace("{work_id}", "x"))
            assert answer.status_code not in (405, 500), path
            assert answer.status_code != 404 or "work" in path
    assert set(described["paths"]) >= {f"/v1/{name}" for name in QUESTIONS}


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/inspect", "/v1/predict:batch"])
def test_examples_are_answered_and_fit_their_schema(asker: Asker, path: str) -> None:
    described = openapi()
    content = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    schema = {**content["schema"], "components": described["components"]}
    jsonschema.validate(content["example"], schema)
    assert asker.post(path, json=content["example"]).status_code == 200
