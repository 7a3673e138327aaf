"""The recipes of CONTRIBUTING.md work as they stand: each block of code answers a question."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")

import driple
from driple.jobs.load import JobOptions
from driple.jobs.readers import added_reader
from driple.schemes.registry import added_scheme

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLE = str(ROOT / "datasets/examples/resnet50.pbtxt")


def block(recipe: str) -> str:
    """The code of one recipe."""
    section = TEXT.split(f"## {recipe}\n")[1].split("\n## ")[0]
    (code,) = re.findall(r"```(?:python|toml)\n(.*?)```", section, re.DOTALL)
    return str(code)


@pytest.fixture
def recipe(request: pytest.FixtureRequest) -> Iterator[Any]:
    """What the Python of a recipe defines, as a module."""
    module = ModuleType("recipe")
    sys.modules["recipe"] = module  # dataclasses look their module up
    exec(compile(block(request.param), "CONTRIBUTING.md", "exec"), module.__dict__)  # noqa: S102
    yield module
    del sys.modules["recipe"]


def test_a_device_answers_with_the_efficiency_of_its_generation(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(block("Add a device"))
    (answer,) = driple.predict("timm:resnet18", "1xMyGPU", catalogs=file).answers
    assert answer.setting.name == "1xMyGPU"
    assert answer.iteration_time_s.value > 0


@pytest.mark.parametrize("recipe", ["Add a scheme"], indirect=True)
def test_a_scheme_answers_every_question_about_it(recipe: Any) -> None:
    """Without its sharing, a device would hold all of Adam's states."""
    options = JobOptions(batch_size=8, optimizer="adam")
    with added_scheme(recipe.SCHEME):
        lazy, ddp = driple.predict(
            "timm:resnet18", ["8xA100@lazy", "8xA100"], options=options
        ).answers
        assert lazy.iteration_time_s.value > 0
        kept, whole = (answer.memory.estimate.allocated for answer in (lazy, ddp))
        assert kept.value < whole.value
        offers = driple.plan(
            "timm:resnet18", settings="8xA100", samples=1e4, options=options
        ).offers
        assert "lazy" in {offer.scheme for offer in offers}


@pytest.mark.parametrize("recipe", ["Add a kind of job"], indirect=True)
def test_a_kind_of_job_is_read_wherever_a_job_is(recipe: Any) -> None:
    with added_reader(recipe.READER):
        few, many = (
            driple.predict(text, "1xA100").answers[0] for text in ("layers:3", "layers:30")
        )
        assert few.iteration_time_s.value < many.iteration_time_s.value
        assert driple.inspect("layers:3").to_dict()


@pytest.mark.parametrize("recipe", ["Add a question"], indirect=True)
def test_a_question_has_rows_and_json(recipe: Any) -> None:
    """Twice the money pays twice the steps, up to rounding."""
    first, two = (
        recipe.affordable(EXAMPLE, ["V100-P1w2"], usd=usd, usd_per_hour=3) for usd in (10, 20)
    )
    (name,) = first.steps
    assert two.steps[name] == pytest.approx(2 * first.steps[name], abs=2)
    assert first.to_dict()["steps"] == {row["setting"]: row["steps"] for row in first.rows()}
