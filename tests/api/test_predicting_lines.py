"""Lines of `predict --jobs`: each is a row, and what cannot be answered says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import driple
from driple.api.predicting_lines import (
    COLUMNS,
    MOST_LINE_BYTES,
    LineBlock,
    LineOptions,
    answer_lines,
)
from tests.cli.test_main import ROOT

SMALL = str(ROOT / "datasets/examples/resnet20.pbtxt")


def rows_of(*lines: object) -> list[dict[str, Any]]:
    texts = [
        line if isinstance(line, bytes | None) else json.dumps(line).encode() for line in lines
    ]
    block = LineBlock(first=1, lines=tuple(texts))
    text, count, errors = answer_lines(LineOptions(), block)
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == count
    assert sum(row["status"] != 200 for row in rows) == errors
    for row in rows:
        assert list(row) == list(COLUMNS)
    return rows


def test_a_row_has_the_numbers_of_predict() -> None:
    (row,) = rows_of({"job": SMALL, "setting": "4xA100"})
    answer = driple.predict(SMALL, "4xA100").answers[0]
    assert row["iteration_time_s"] == answer.iteration_time_s.value
    assert (row["line"], row["job"], row["setting"]) == (1, SMALL, answer.setting.name)
    assert row["p10_s"] < row["p50_s"] == row["iteration_time_s"] < row["p90_s"]
    assert answer.targets is not None
    assert row["device_util_burst_amount"] == answer.targets.flat[0]
    assert row["capacity_bytes"] == 40 * 2**30


def test_each_setting_of_a_line_is_a_row_and_one_error_ends_no_other() -> None:
    rows = rows_of({"job": SMALL, "setting": ["1xA100", "9xNone", "2xV100"], "scheme": "ddp"})
    assert [row["status"] for row in rows] == [200, 422, 200]
    assert {row["line"] for row in rows} == {1}
    assert "9xNone" in rows[1]["reason"]


@pytest.mark.parametrize(
    ("line", "status", "reason"),
    [
        (b"{", 400, "is no JSON"),
        (b"[1]", 400, "must be a JSON object"),
        (b"[" * 5000, 400, "nested too deep"),
        (b'{"job": "a", "job": "b"}', 400, "job"),
        (b'{"job": NaN}', 400, "NaN"),
        (b"\xff\xfe\xff", 400, "is no JSON"),
        (None, 413, f"more than {MOST_LINE_BYTES} bytes"),
        ({}, 422, "has no job"),
        ({"job": 3}, 422, "job must be a text"),
        ({"job": "nothing"}, 422, "nothing"),
        ({"job": SMALL, "sitting": "1xA100"}, 422, "unknown field 'sitting'"),
        ({"job": SMALL, "setting": []}, 422, "setting has 0 names"),
        ({"job": SMALL, "setting": [3]}, 422, "setting must be a text"),
        ({"job": SMALL, "scheme": "ddp"}, 422, "scheme needs a setting"),
        ({"job": SMALL, "method": ["auto"]}, 422, "method must be a text"),
        ({"job": SMALL, "seed": -1}, 422, "seed"),
        ({"job": SMALL, "batch_size": 4}, 422, "--batch-size"),
        ({"job": SMALL, "data": "x.py:f"}, 422, "unknown field 'data'"),
    ],
)
def test_what_cannot_be_answered_is_a_row(line: object, status: int, reason: str) -> None:
    (row,) = rows_of(line)
    assert row["status"] == status
    assert reason in row["reason"]
    assert row["iteration_time_s"] is None


def test_a_line_runs_no_code(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef build(): pass\n")
    (row,) = rows_of({"job": f"{file}:build", "setting": "1xA100"})
    assert row["status"] == 422
    assert "is code, which no line of a file runs" in row["reason"]
    assert not (tmp_path / "ran").exists()


def test_an_empty_line_is_no_row() -> None:
    assert [row["line"] for row in rows_of(b"\n", {"job": SMALL})] == [2]


def test_a_defect_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("driple.api.predicting.predict", broken)
    (row,) = rows_of({"job": SMALL, "setting": "1xA100"})
    assert row["status"] == 500
    assert "a defect of Driple, KeyError" in row["reason"]
