"""The measured time of the very graph, where a data set has it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from driple.answers import by_measurement
from driple.answers.by_measurement import ask_measured
from driple.answers.ready_job import ReadyJob
from driple.cluster.setting import Setting
from driple.errors import PredictionError
from driple.jobs.load import load_job
from tests.simulate.jobs import net

SETTING = Setting.parse("V100-P1w2/ho-PCIe")
READY = ReadyJob(load_job(net(4)))


def row(source: str, step_s: float) -> SimpleNamespace:
    return SimpleNamespace(label_source=source, iteration_time_s=step_s)


def lookups(
    monkeypatch: pytest.MonkeyPatch, graphs: list[SimpleNamespace], steps: list[SimpleNamespace]
) -> list[Path]:
    """Data sets that have these rows of the graph, and of its step; returns where was looked."""
    looked: list[Path] = []

    def find_graph(place: Path, _: str) -> list[SimpleNamespace]:
        looked.append(place)
        return graphs

    monkeypatch.setattr(by_measurement, "find_graph", find_graph)
    monkeypatch.setattr(by_measurement, "find_measured_step", lambda *_: steps)
    return looked


def dataset(folder: Path) -> Path:
    place = folder / SETTING.file_name
    place.mkdir(parents=True)
    (place / "dataset.json").write_text("{}")
    return folder


def test_the_first_measured_row_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row("simulated", 1.0), row("measured", 2.0), row("measured", 3.0)]
    lookups(monkeypatch, rows, [])
    answer = ask_measured(READY, SETTING, dataset(tmp_path))
    assert answer.step_time.value == 2.0
    assert (answer.step_time.method, answer.step_time.source) == ("measured", "measured")
    assert answer.step_time.interval is None
    assert answer.p90 == 0.0
    assert answer.measured is rows[1]
    assert answer.setting == SETTING


def test_a_graph_that_is_not_there_is_known_by_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups(monkeypatch, [], [row("measured", 4.0)])
    assert ask_measured(READY, SETTING, dataset(tmp_path)).step_time.value == 4.0
    lookups(monkeypatch, [row("measured", 5.0)], [row("measured", 4.0)])
    assert ask_measured(READY, SETTING, tmp_path).step_time.value == 5.0


def test_without_a_measured_row_nothing_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = lookups(monkeypatch, [row("simulated", 1.0)], [])
    with pytest.raises(PredictionError, match=f"measured on {SETTING.name}"):
        ask_measured(READY, SETTING, dataset(tmp_path / "some"))
    assert looked
    looked.clear()
    (tmp_path / "empty" / SETTING.file_name).mkdir(parents=True)
    with pytest.raises(PredictionError):
        ask_measured(READY, SETTING, tmp_path / "empty")
    assert not looked
