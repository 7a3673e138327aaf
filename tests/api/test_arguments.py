"""Arguments as people write them: one or several, paths and days as text; else a `ConfigError`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import driple
from driple.api import TraceOptions, fit_links, predict_stalls
from driple.api.planning import PlanResult, plan
from driple.errors import ConfigError, DripleError, SettingError
from tests.cli.test_own_catalog import ROW
from tests.planning.gpt import write_gpt

ROOT = Path(__file__).resolve().parents[2]
GRAPH = ROOT / "datasets/examples/resnet20.pbtxt"
OPTIONS = driple.JobOptions(seq_len=64, batch_size=8)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_gpt(tmp_path_factory.mktemp("gpt"))


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """The name of a file with a device of the user's own, as text."""
    file = tmp_path / "mine.toml"
    file.write_text(ROW)
    return str(file)


def planned(job: str, **changes: Any) -> PlanResult:
    asked = {"options": OPTIONS, "samples": 1000, "schemes": "ddp", "vary": "none"}
    return plan(job, **asked | changes)


def names(result: PlanResult) -> list[str]:
    return sorted(offer.name for offer in result.offers)


def test_a_plan_takes_settings_as_they_are(job: str) -> None:
    """A setting, its name, and a list of both ask for the same machines."""
    setting = driple.Setting.parse("1xA100")
    for settings in (setting, "1xA100", [setting], ["1xA100", setting]):
        assert names(planned(job, settings=settings)) == ["1xA100"]
    with pytest.raises(ConfigError, match="settings are names such as V100-P1w2, got int"):
        planned(job, settings=3)


def test_one_value_is_a_list_of_one(job: str) -> None:
    several = planned(job, instances=["p4d.24xlarge"], devices=["A100"], machines=[2])
    single = planned(job, instances="p4d.24xlarge", devices="A100", machines=2)
    assert single.to_dict() == several.to_dict()
    assert names(single) == ["2xp4d.24xlarge"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"instances": 3}, "--instance needs names, got 3"),
        ({"instances": [3]}, "--instance needs names, got 3"),
        ({"machines": "2"}, "--machines needs whole numbers, got '2'"),
        ({"machines": 0}, "--machines must be a whole number from 1 to 1024, got 0"),
        ({"machines": [1, 2000]}, "--machines must be a whole number from 1 to 1024, got 2000"),
        ({"day": "last week"}, "--set on_date needs a day such as 2022-12-31, got 'last week'"),
        ({"day": 2026}, "--set on_date needs a day such as 2022-12-31, got 2026"),
        ({"catalogs": 3}, "--catalog needs paths, got 3"),
        ({"catalogs": "missing.toml"}, r"missing\.toml cannot be read"),
        ({"prices": "missing.csv"}, r"missing\.csv cannot be read"),
        ({"profiles": ["runs/profile"]}, "profiles are pairs of a folder and the name"),
        ({"vary": ["none", "batch"]}, "--set vary must name some of"),
        ({"epochs": "2"}, "--epochs must be a number above 0"),
        ({"samples": "1M"}, "--samples must be a number above 0"),
        ({"options": {"batch_size": 3}}, "options is a dict, and driple.JobOptions is needed"),
        ({"region": "nowhere"}, "no price is of 'nowhere'; .*us-east-1.*--prices FILE"),
    ],
)
def test_a_plan_refuses_what_it_cannot_use(job: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        planned(job, **{"instances": "g5.xlarge"} | changes)


def test_vary_none_leaves_the_job_as_it_is(job: str) -> None:
    """As `--set vary=none` does: one offer, without the checkpointing that is tried otherwise."""
    for nothing in ("none", ("none",), ()):
        assert len(planned(job, instances="p4d.24xlarge", vary=nothing).offers) == 1
    assert len(planned(job, instances="p4d.24xlarge", vary="checkpointing").offers) == 2


def test_days_are_text_dates_or_moments(job: str) -> None:
    asked: dict[str, Any] = {"instances": "p3.2xlarge"}
    day = datetime.date(2023, 1, 1)
    old = planned(job, **asked, day=day).to_dict()
    moment = datetime.datetime(2023, 1, 1, 12, tzinfo=datetime.UTC)
    for same in ("2023-01-01", moment):
        assert planned(job, **asked, day=same).to_dict() == old
    (price,) = (offer.price for offer in planned(job, **asked, day=day).offers)
    assert price is not None
    assert price.date is not None
    assert price.date <= day


def test_a_region_of_a_file_of_prices_is_known(job: str, tmp_path: Path) -> None:
    prices = tmp_path / "mine.csv"
    prices.write_text("name,per_hour,region\ng5.xlarge,0.5,nowhere\n")
    (offer,) = planned(job, instances="g5.xlarge", region="nowhere", prices=str(prices)).offers
    assert offer.per_hour == 0.5


def test_a_plan_writes_numbers_as_the_command_does(job: str) -> None:
    """Whole numbers and others are one type in JSON."""
    as_json = planned(job, instances="g5.xlarge", epochs=2, budget=500, deadline_s=3600).to_dict()
    assumed = as_json["assumptions"]
    assert isinstance(assumed, dict)
    for value in (assumed["epochs"], as_json["budget"], as_json["deadline_s"]):
        assert isinstance(value, float)


def test_own_catalogues_serve_every_question(mine: str) -> None:
    """As text, alone or in a list; without the file its device has no name."""
    for catalogs in (mine, [mine], [Path(mine)]):
        work = driple.inspect(GRAPH, "1xMyGPU", catalogs=catalogs)
        assert work.breakdown.device == "MyGPU"
        answer = driple.predict(GRAPH, ["1xMyGPU"], catalogs=catalogs, num_steps=4).answers[0]
        assert answer.setting.device == "MyGPU"
        swept = driple.sweep(GRAPH, "MyGPU-P1w2/ho-10G", catalogs=catalogs)
        assert swept.setting is not None
        assert swept.setting.device == "MyGPU"
    for ask in (driple.inspect, driple.predict, driple.sweep):
        with pytest.raises(SettingError, match="MyGPU"):
            ask(GRAPH, "1xMyGPU")  # type: ignore[operator]


def test_a_plan_takes_own_devices_by_name(job: str, mine: str) -> None:
    assert names(planned(job, settings="1xMyGPU", catalogs=mine)) == ["1xMyGPU"]


def test_a_job_trace_has_no_use_for_a_catalogue(mine: str) -> None:
    with pytest.raises(ConfigError, match=r"job\.npz is a job trace"):
        driple.sweep("job.npz", catalogs=mine)


@pytest.mark.parametrize(
    ("ask", "missing"),
    [
        (driple.validate, True),
        (lambda path: driple.validate(rows=path), True),
        (lambda path: fit_links([path]), True),
        (lambda path: predict_stalls(GRAPH, "V100-R8/ho-NVLink", links=path), True),
        (lambda path: driple.predict(GRAPH, "V100", host=path), True),
        (lambda path: driple.predict(GRAPH, checkpoint=path), True),
        (lambda path: plan(profiles=[(path, "p3.8xlarge")]), True),
        (lambda path: driple.predict(GRAPH, "V100", method="all", datasets=path), False),
    ],
)
def test_paths_may_be_text(ask: Callable[[Any], object], missing: bool, tmp_path: Path) -> None:
    """A path and its text give the same: the same error where nothing is there."""
    path = tmp_path / "missing"
    if not missing:
        assert ask(str(path))
        return
    messages = []
    for place in (path, str(path)):
        with pytest.raises(DripleError) as caught:
            ask(place)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "missing" in messages[0]
    with pytest.raises(ConfigError, match=r"needs (a )?path"):
        ask(3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"seed": -1}, "--set seed must be a whole number from 0 to 4294967295, got -1"),
        ({"seed": 1.5}, "--set seed must be a whole number .*, got 1.5"),
        ({"num_steps": 0}, "--set steps must be a whole number .*, got 0"),
        ({"num_steps": "100"}, "--set steps must be a whole number .*, got '100'"),
        ({"num_steps": 10**7}, "--set steps must be a whole number from"),
    ],
)
def test_seeds_and_steps_have_the_limits_of_the_commands(
    values: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        driple.predict(GRAPH, "8xA100", **values)
    with pytest.raises(ConfigError, match=words):
        TraceOptions(**values)


def test_what_is_no_job_is_refused_with_advice() -> None:
    nn = pytest.importorskip("torch.nn")
    jobs: tuple[object, ...] = (nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3)), 3, None)
    for job in jobs:
        with pytest.raises(ConfigError, match=r"JOB is a .*driple\.job_of_module\(module"):
            driple.predict(job, "1xA100")  # type: ignore[arg-type]
    for ask in (driple.inspect, driple.load_job, driple.sweep):
        with pytest.raises(ConfigError, match=r"JOB is a Linear, .*driple\.job_of_module"):
            ask(nn.Linear(3, 3))  # type: ignore[operator]


def test_several_jobs_come_from_anything_that_gives_them() -> None:
    result = driple.predict((one for one in (GRAPH, str(GRAPH))), "1xA100", num_steps=4)  # type: ignore[arg-type]
    assert len(result.answers) == 2


def test_options_are_no_dictionary() -> None:
    questions: tuple[Callable[..., object], ...] = (driple.predict, driple.inspect, driple.sweep)
    for ask in questions:
        with pytest.raises(ConfigError, match="options is a dict"):
            ask(GRAPH, options={"batch_size": 3})
