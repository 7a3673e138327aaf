"""What would help: as many changes as are promised, those that suit the job among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from driple.api.plan_results import PlanResult
from driple.api.planning import plan
from driple.jobs.load import JobOptions
from driple.jobs.own_model import kept_processes
from driple.planning.amount import Amount
from driple.planning.changes import MOST_CHANGES, helpful_changes
from driple.planning.evaluator import Evaluator
from driple.planning.prices import PriceBook
from driple.planning.variants import JobVariants
from driple.remarks import remark
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


def options_of(batch_size: int = 32, **options: object) -> JobOptions:
    return JobOptions(
        batch_size=batch_size, input_shape=(3, 128, 128), precision="amp-bf16", **options  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def one_process() -> Iterator[None]:
    """Reads the net for all tests: half a minute of imports in place of two."""
    with kept_processes():
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the net."""
    place = tmp_path_factory.mktemp("net")
    (place / "net.py").write_text(_NET)
    return place


@cache
def planned(folder: Path, **options: object) -> PlanResult:
    """The plan of the net, made once."""
    return plan(
        f"{folder / 'net.py'}:build",
        options=options_of(**options),  # type: ignore[arg-type]
        samples=10_000,
        settings="1xA100",
        would_help=True,
    )


def words_of(result: PlanResult) -> list[str]:
    return [sentence(change.what) for change in result.changes]


def test_channels_last_helps_where_norms_and_convolutions_run_in_nchw(folder: Path) -> None:
    """By its own flag, and not again where it is used already."""
    first = planned(folder)
    assert len(first.changes) == MOST_CHANGES
    words = words_of(first)
    assert "channels_last in place of NCHW" in words
    change = first.changes[words.index("channels_last in place of NCHW")]
    after = planned(folder, channels_last=True)
    assert not any("channels_last" in one for one in words_of(after))
    best, other = (one.choice.best for one in (first, after))
    assert best is not None
    assert other is not None
    assert change.time_ratio == pytest.approx(other.training_s / best.training_s)


def test_a_step_that_waits_gains_by_less_work_for_its_host(folder: Path) -> None:
    """CUDA graphs and a fused optimizer, each as the job that has it would be answered."""
    first = planned(folder, optimizer="adamw", batch_size=1)
    best = first.choice.best
    assert best is not None and best.parts is not None
    assert best.parts.host_pct > 50
    amount = Amount(samples_per_epoch=10_000, epochs=1, source=remark("samples_by_option"))
    variants = JobVariants(
        f"{folder / 'net.py'}:build", options_of(optimizer="adamw", batch_size=1)
    )
    evaluator = Evaluator(variants, amount, PriceBook())
    tried = helpful_changes(evaluator, best, first.offers, keeps_batch=False, most=20)
    changes = {sentence(change.what): change for change in tried}
    graphs = "CUDA graphs, torch.compile(mode='reduce-overhead')"
    for words, asked in (
        (graphs, {"optimizer": "adamw", "cuda_graphs": True}),
        ("adamw-fused in place of adamw", {"optimizer": "adamw-fused"}),
    ):
        other = planned(folder, batch_size=1, **asked).choice.best
        assert other is not None
        expected = other.training_s / best.training_s
        assert changes[words].time_ratio == pytest.approx(expected)
    assert changes[graphs].time_ratio < changes["torch.compile"].time_ratio
    again = planned(folder, optimizer="adamw-fused", cuda_graphs=True, batch_size=1)
    assert not {graphs, "torch.compile"} & {*words_of(again)}


def test_shards_are_not_replayed(tmp_path: Path) -> None:
    """FSDP gathers parameters into memory that it frees."""
    gains = {}
    for scheme in ("ddp", "fsdp"):
        result = plan(
            write_gpt(tmp_path),
            options=JobOptions(seq_len=64, batch_size=2),
            samples=1000,
            settings="2xA100/NVLink",
            schemes=scheme,
            would_help=True,
        )
        gains[scheme] = any("CUDA graphs" in one for one in words_of(result))
    assert gains == {"ddp": True, "fsdp": False}


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
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer lists what helps, and says if that was all."""
    for result in (planned(folder), planned(folder, channels_last=True, compiled=True)):
        print_plan(result, 5, explain=False, would_help=True)
        out = capsys.readouterr().out
        assert len(re.findall(r"^  \d\. ", out, re.MULTILINE)) == len(result.changes)
        is_all = len(result.changes) < MOST_CHANGES
        assert ("saves 1 % or more" in out or "by more than 1 %" in out) == is_all
