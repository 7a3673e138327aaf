"""REST gives what the command line prints, the same bytes each time, and refuses with a reason."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from driple.api.results import schema_text
from driple.web.questions import OPTION_ROWS
from tests.web.conftest import Asker

GPT = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2, "n_embd": 64,
       "n_head": 2, "vocab_size": 100}  # fmt: skip


def check(answer: Any) -> dict[str, Any]:
    """The JSON of an answer, as the schema of the command line describes it."""
    assert answer.status_code == 200, answer.text
    value: dict[str, Any] = answer.json()
    jsonschema.validate(value, json.loads(schema_text()))
    return value


def test_an_uploaded_graph_has_the_command_lines_numbers(
    asker: Asker, graph: bytes, tmp_path: Path
) -> None:
    """All but the name of the job is equal, to the last digit."""
    asked = {"clusters": ["V100-P1w2", "1xA100"], "options": {"batch_size": 24}}
    sent = {"graph": ("../../secret.pbtxt", graph)}
    answer = check(asker.post("/v1/predict", files=sent, data={"request": json.dumps(asked)}))
    assert "secret" not in json.dumps(answer)
    file = tmp_path / "resnet20.pbtxt"
    file.write_bytes(graph)
    words = [sys.executable, "-m", "driple", "predict", str(file), "--setting", "V100-P1w2",
             "--setting", "1xA100", "--batch-size", "24", "--json"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    name = answer["answers"][0]["job"]["source"]
    assert name.startswith("graph-")
    assert answer == json.loads(done.stdout.replace(str(file), name))


def test_the_same_request_gives_the_same_bytes(asker: Asker, graph: bytes) -> None:
    """Also in base64, with fields in another order; If-None-Match with its ETag gives 304."""
    coded = base64.b64encode(graph).decode()
    first = {"job": {"graph": coded}, "clusters": ["1xA100"], "options": {"batch_size": 24}}
    second = {"options": {"batch_size": 24}, "clusters": ["1xA100"], "job": {"graph": coded}}
    answers = [asker.post("/v1/predict", json=asked) for asked in (first, second)]
    assert answers[0].content == answers[1].content
    etag = answers[0].headers["etag"]
    assert answers[1].headers["etag"] == etag
    same = asker.client.post("/v1/predict", json=first, headers={"if-none-match": f'"x", W/{etag}'})
    assert (same.status_code, same.content) == (304, b"")
    other = asker.post("/v1/predict", json={**first, "clusters": ["1xH100"]})
    assert other.headers["etag"] != etag


@pytest.mark.parametrize(
    "job", ["mobilenet_v2", {"config": GPT}, {"timm": "resnet18"}], ids=["name", "config", "timm"]
)
def test_every_kind_of_job_has_an_answer_with_quantiles(asker: Asker, job: Any) -> None:
    """p10 <= p50 <= p90, within the interval of 90 %."""
    asked = {"job": job, "clusters": ["1xA100"], "options": {"batch_size": 8}}
    (answer,) = check(asker.post("/v1/predict", json=asked))["answers"]
    quantiles, time = answer["iteration_time_quantiles_s"], answer["iteration_time_s"]
    assert quantiles["p50"] == time["value"]
    assert time["interval"]["low"] <= quantiles["p10"] <= quantiles["p50"]
    assert quantiles["p50"] <= quantiles["p90"] <= time["interval"]["high"]


def test_a_batch_has_jobs_times_clusters(asker: Asker, graph: bytes) -> None:
    jobs = ["mobilenet_v2", {"graph": base64.b64encode(graph).decode()}]
    asked = {"jobs": jobs, "clusters": ["1xA100", "8xA100/NVLink", "1xV100"]}
    answers = check(asker.post("/v1/predict:batch", json=asked))["answers"]
    assert [answer["setting"] for answer in answers] == [*asked["clusters"], *asked["clusters"]]
    assert len({answer["job"]["source"] for answer in answers}) == 2


def test_inspect_sweep_and_plan_answer_by_the_same_schema(asker: Asker) -> None:
    inspected = check(
        asker.post("/v1/inspect", json={"job": "mobilenet_v2", "memory": True, "depth": 1})
    )
    assert inspected["memory"]["curve"]["node"]
    swept = check(
        asker.post(
            "/v1/sweep", json={"job": "mobilenet_v2", "cluster": "2xA100", "batch_sizes": [8, 16]}
        )
    )
    assert len(swept["estimates"]["iteration_time_s"]["value"]) == 2
    asked = {"job": "mobilenet_v2", "clusters": ["1xA100", "2xA100"], "vary": "none"}
    planned = check(asker.post("/v1/plan", json=asked))
    names = {offer["setting"].partition("@")[0] for offer in planned["offers"]}
    assert names == {"1xA100", "2xA100/NVLink"}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({}, "job is missing"),
        ({"job": "mobilenet-v2"}, "did you mean mobilenet_v2"),
        ({"job": "/etc/passwd"}, "no name of the catalogue"),
        ({"job": "../x.pb"}, "no name of the catalogue"),
        ({"job": "train.py:build_model"}, "no name of the catalogue"),
        ({"job": "os:getcwd"}, "no name of the catalogue"),
        ({"job": "timm:resnet50"}, "give an object with one of catalogue, timm, config"),
        ({"job": {"hf": "gpt2"}}, "unknown kind of job"),
        ({"job": {"timm": "hf-hub:a/b"}}, "no name of a model of timm"),
        ({"job": {"graph": "?"}}, "no base64"),
        ({"job": {"graph": ""}}, "empty"),
        ({"job": {"config": {"model_type": "nope"}}}, "nope"),
        ({"job": "mobilenet_v2", "cluster": "1xA100"}, "did you mean clusters"),
        ({"job": "mobilenet_v2", "clusters": ["1xZ900"]}, "1xZ900"),
        ({"job": "mobilenet_v2", "clusters": ["9999x9999xA100/NVLink+400G"]}, "devices"),
        ({"job": "mobilenet_v2", "clusters": ["my.yaml"]}, "is no name"),
        ({"job": "mobilenet_v2", "clusters": ["/etc/x.yaml "]}, "is no name"),
        ({"job": "mobilenet_v2", "link_bandwidth": "/etc/passwd"}, "needs a rate"),
        ({"job": "mobilenet_v2", "method": "magic"}, "method"),
        ({"job": "mobilenet_v2", "scheme": "fsdp"}, "scheme needs clusters"),
        ({"job": "mobilenet_v2", "options": {"data": "a.py:b"}}, "unknown option 'data'"),
        ({"job": "mobilenet_v2", "options": {"config": "x.yaml"}}, "unknown option 'config'"),
        ({"job": "mobilenet_v2", "options": {"loss": "a.py:b"}}, "options.loss"),
        ({"job": "mobilenet_v2", "options": {"batch_size": 1.5}}, "options.batch_size"),
        ({"job": "mobilenet_v2", "options": []}, "options must be an object"),
        ({"job": "mobilenet_v2", "steps": True}, "steps"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(
    asker: Asker, asked: dict[str, Any], reason: str
) -> None:
    answer = asker.post("/v1/predict", json=asked)
    assert (answer.status_code, answer.json()["status"]) == (422, 422)
    assert reason in answer.json()["reason"]


@pytest.mark.parametrize("value", [None, True, -1, 1e308, "x", [], [{}], {}, {"a": "b"}, 10**30])
def test_no_value_of_an_option_is_a_defect(asker: Asker, value: Any) -> None:
    """Each option with a value of another kind is answered or refused, and nothing is read."""
    for row in OPTION_ROWS:
        asked = {"job": {"graph": "AAAA"}, "options": {row.name: value}}
        assert asker.post("/v1/predict", json=asked).status_code == 422, row.name


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"job": 1, "job": 2}', 400),
        (b'{"job": NaN}', 400),
        (b'{"job": {"config": ' + b'{"a": ' * 900 + b"1" + b"}" * 900 + b"}}", 400),
        (b"[" * 100_000, 400),
        (b"\xff\xfe", 400),
    ],
)
def test_a_body_that_is_no_json_is_refused(asker: Asker, body: bytes, status: int) -> None:
    answer = asker.post("/v1/predict", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (status, 422)
    assert answer.json()["reason"]


@pytest.mark.parametrize(("content", "words"), [(b"", "is empty"), (b"{", "is no JSON")])
@pytest.mark.parametrize("part", ["config", "request"])
def test_a_part_of_a_form_that_is_no_json_is_named(
    asker: Asker, graph: bytes, part: str, content: bytes, words: str
) -> None:
    files = {part: content} if part == "config" else {part: content, "graph": graph}
    answer = asker.post("/v1/predict", files=files)
    assert answer.status_code == 400
    assert f"the {part} {words}" in answer.json()["reason"]


@pytest.mark.parametrize(
    ("path", "asked", "reason"),
    [
        ("plan", {"samples": 1e6, "tokens": 1e9}, "samples"),
        ("plan", {"tokens": 1e9}, "tokens"),
        ("plan", {"clusters": ["1xA100"], "devices": ["A100"]}, "clusters"),
        ("plan", {"rank": "beauty"}, "rank"),
        ("sweep", {"cluster": "8xH100", "workers": [2], "servers": [2]}, "servers"),
        ("sweep", {"cluster": ["8xH100", "8xA100"]}, "at most 1"),
        ("predict", {"clusters": ["V100-P1w2"], "scheme": "fsdp"}, "fsdp"),
        ("inspect", {"depth": -1}, "depth"),
        ("inspect", {"options": {"batch_size": None}}, "null"),
    ],
)
def test_what_contradicts_itself_is_refused(
    asker: Asker, path: str, asked: dict[str, Any], reason: str
) -> None:
    answer = asker.post(f"/v1/{path}", json={"job": "mobilenet_v2", **asked})
    assert answer.status_code == 422, answer.text[:500]
    assert reason in answer.json()["reason"]


def test_who_asks_the_same_shares_the_work(asker: Asker) -> None:
    """One ID for a question that is at work already."""
    asked = {"job": "mobilenet_v2", "machines": [1, 2, 4, 8], "samples": 2e6}
    places = {asker.client.post("/v1/plan", json=asked).headers["location"] for _ in range(2)}
    assert len(places) == 1


def test_a_prediction_that_takes_minutes_is_made_in_a_child(asker: Asker) -> None:
    """Many workers of servers, simulated event by event; the page refuses them."""
    from driple.web.questions import Question

    assert Question.of("predict", {"clusters": ["V100-P16w64/ho-10G"]}).is_long
    assert Question.of("predict", {"clusters": ["8xH100"], "steps": 100_000}).is_long
    assert not Question.of("predict", {"clusters": ["V100-P1w2", "8xH100"], "steps": 100}).is_long
    answer = asker.page("/view?job=mobilenet_v2&clusters=V100-P16w64/ho-10G")
    assert answer.status_code == 422
    assert "take minutes" in answer.text


def test_work_that_takes_long_is_fetched_later(asker: Asker) -> None:
    """202 says where; the answer is there in the end, and other IDs are not."""
    asked = {"job": "mobilenet_v2", "clusters": ["1xH100", "2xH100"], "samples": 1e6}
    first = asker.client.post("/v1/plan", json=asked)
    assert first.status_code == 202
    assert first.headers["location"] == first.json()["location"]
    assert int(first.headers["retry-after"]) >= 1
    assert check(asker.post("/v1/plan", json=asked))["question"] == "plan"
    assert asker.client.get("/v1/work/none").status_code == 404


def test_the_catalogue_health_and_metrics_answer(asker: Asker) -> None:
    catalogue = asker.client.get("/v1/catalog")
    assert "mobilenet_v2" in catalogue.json()["jobs"]
    assert len(catalogue.json()["workloads"]) == 832
    kinds = dict.fromkeys(("catalogue", "onnx", "timm", "config", "workload"), True)
    assert catalogue.json()["kinds"] == kinds
    etag = {"if-none-match": catalogue.headers["etag"]}
    assert asker.client.get("/v1/catalog", headers=etag).status_code == 304
    assert asker.client.get("/healthz").json()["status"] == "ok"
    text = asker.client.get("/metrics").text
    assert 'driple_requests_total{route="/v1/catalog",status="200"}' in text
    assert "driple_request_seconds_bucket" in text
