"""A kind of job that this file alone defines answers every question, from its one reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

import driple
from driple.api.results import schema_text
from driple.errors import ConfigError
from driple.graph import read_graph
from driple.jobs.job import Job, JobOrigin, job_of
from driple.jobs.load import JobOptions
from driple.jobs.options import flags_for
from driple.jobs.pytorch.modules import job_of_module
from driple.jobs.readers import JobReader, JobRequest, added_reader, kernels_on
from tests.cli.test_main import EXAMPLE

LAYERS = "layers:"
PACKED = ".packed"


def read_layers(request: JobRequest) -> Job:
    """A perceptron with so many layers."""
    from torch import nn

    options = request.options
    count = int(request.text.removeprefix(LAYERS))
    job = job_of_module(
        nn.Sequential(*(nn.Linear(512, 512) for _ in range(count))),
        batch_size=options.batch_size or 16,
        input_shape=(512,),
        precision=options.precision or "fp32",
        grad_accumulation=options.grad_accumulation or 1,
        setting=request.setting,
    )
    return replace(job, source=request.text, origin=MODEL.origin)


MODEL = JobReader(
    origin=JobOrigin(name="layers", is_model=True),
    name="a perceptron",
    form="layers:NUMBER",
    claims=lambda text: text.startswith(LAYERS),
    flags=flags_for("pytorch"),
    read=read_layers,
    decided_by=kernels_on,
)
FILE = JobReader(
    origin=JobOrigin(name="packed", is_path=True),
    name="a packed graph",
    form="a packed graph (.packed)",
    claims=lambda text: text.endswith(PACKED),
    flags=frozenset({"--batch-size"}),
    read=lambda request: job_of(
        request.text, FILE.origin, read_graph(EXAMPLE), batch_size=request.options.batch_size
    ),
)


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with added_reader(MODEL), added_reader(FILE):
        yield


def test_predict_and_inspect_read_a_new_kind_of_model() -> None:
    """Its options count, its kind is in the JSON, which is as the schema describes it."""
    jsonschema = pytest.importorskip("jsonschema")
    asked = JobOptions(batch_size=8)
    result = driple.predict("layers:3", ["1xA100", "8xA100"], options=asked)
    as_json = json.loads(json.dumps(result.to_dict()))
    assert [answer["job"]["kind"] for answer in as_json["answers"]] == ["layers"] * 2
    assert {answer["job"]["batch_size"] for answer in as_json["answers"]} == {8}
    assert all(answer.iteration_time_s.value > 0 for answer in result.answers)
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(as_json)
    deeper = driple.predict("layers:30", "1xA100", options=asked).answers[0]
    assert deeper.iteration_time_s.value > result.answers[0].iteration_time_s.value
    memory = driple.inspect("layers:3", "8xA100", options=asked, memory=True).memory
    assert memory is not None


def test_plan_varies_a_model_and_leaves_a_graph_as_it_is(tmp_path: Path) -> None:
    """A global batch has several ways of a model, and a graph has the batch that it has."""
    ask = {"samples": 1e4, "settings": "8xA100"}
    batches = driple.plan("layers:3", global_batch=1024, **ask).offers  # type: ignore[arg-type]
    assert len({offer.variant for offer in batches}) > 1
    assert {offer.scheme for offer in batches} == {"ddp", "zero2", "fsdp"}
    graph = tmp_path / f"graph{PACKED}"
    graph.touch()
    with pytest.raises(ConfigError, match="does not state its batch size"):
        driple.plan(str(graph), **ask)  # type: ignore[arg-type]
    options = JobOptions(batch_size=32)
    (offer,) = driple.plan(str(graph), options=options, **ask).offers  # type: ignore[arg-type]
    assert offer.scheme == "ddp"
    assert driple.load_job(str(graph), options).name == graph.name


def test_a_model_that_casts_itself_may_be_half_in_any_precision() -> None:
    """The kernels of attention then depend on the device, whatever precision is asked."""
    assert JobOrigin(name="x", casts_itself=True).may_be_half("fp32")
    assert not MODEL.origin.may_be_half("fp32")
    assert MODEL.origin.may_be_half("amp-bf16")
