"""What would help: as many changes as are promised, those that suit the job among them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from driple.api.plan_results import PlanResult
from driple.api.planning import plan
from driple.jobs.load import JobOptions
from driple.planning.changes import MOST_CHANGES
from driple.render.plan_tables import print_plan
from driple.render.remarks import sentence
from tests.planning.gpt import write_gpt

_NET = """
from torch import nn
def build():
    layers = [nn.Conv2d(3, 64, 3, padding=1)]
    for _ in range(4):
        layers += [nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
"""


def planned(folder: Path, **options: object) -> PlanResult:
    pytest.importorskip("torch")
    file = folder / "net.py"
    file.write_text(_NET)
    return plan(
        f"{file}:build",
        options=JobOptions(
            batch_size=32, input_shape=(3, 128, 128), precision="amp-bf16", **options  # type: ignore[arg-type]
        ),
        samples=10_000,
        settings="1xA100",
        would_help=True,
    )  # fmt: skip


def words_of(result: PlanResult) -> list[str]:
    return [sentence(change.what) for change in result.changes]


def test_channels_last_helps_where_norms_and_convolutions_run_in_nchw(tmp_path: Path) -> None:
    """By its own flag, and not again where it is used already."""
    first = planned(tmp_path)
    assert len(first.changes) == MOST_CHANGES
    words = words_of(first)
    assert "channels_last in place of NCHW" in words
    change = first.changes[words.index("channels_last in place of NCHW")]
    after = planned(tmp_path, channels_last=True)
    assert not any("channels_last" in one for one in words_of(after))
    best, other = (one.choice.best for one in (first, after))
    assert best is not None
    assert other is not None
    assert change.time_ratio == pytest.approx(other.training_s / best.training_s)


def test_models_without_images_have_no_such_change(tmp_path: Path) -> None:
    result = plan(
        write_gpt(tmp_path),
        options=JobOptions(seq_len=64, batch_size=8),
        samples=1000,
        settings="1xA100",
        would_help=True,
    )
    assert not any("channels_last" in one for one in words_of(result))


def test_fewer_changes_than_promised_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer lists what helps, and says if that was all."""
    for result in (planned(tmp_path), planned(tmp_path, channels_last=True, compiled=True)):
        print_plan(result, 5, explain=False, would_help=True)
        out = capsys.readouterr().out
        assert len(re.findall(r"^  \d\. ", out, re.MULTILINE)) == len(result.changes)
        is_all = len(result.changes) < MOST_CHANGES
        assert ("saves 1 % or more" in out or "by more than 1 %" in out) == is_all
