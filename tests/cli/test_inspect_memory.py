"""`driple inspect --memory`: memory over a step as a user reads it, as a picture and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.test_main import EXAMPLE, ROOT, driple

JOB = ("mobilenet_v2", "--batch-size", "16", "--setting", "1xA100", "--memory")
OPEN = ROOT / "tests/data/cases/11_unknown_batch.pbtxt"


def refused(*words: str | Path) -> str:
    """What a command says that ends with status 2."""
    done = driple("inspect", *words)
    assert done.returncode == 2, done.stdout
    return done.stderr


def test_the_table_has_numbers_kinds_and_modules() -> None:
    """Parts add up to the whole."""
    pytest.importorskip("torch")
    shown = driple("inspect", *JOB).stdout
    assert "allocated" in shown
    assert "of 40 GiB: fits" in shown
    assert "at the peak: backward pass" in shown
    table = shown.partition("at the peak  ")[2].partition("module")[0]
    shares = [float(line.split()[-2]) for line in table.splitlines() if line.endswith(" %")]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert "features.*" in shown
    facts = shown.partition(": memory of one training step")[2].splitlines()[1:]
    assert max(len(line) for line in facts) <= 80


def test_json_has_the_curve_and_its_peak() -> None:
    """At most a few hundred points, with the highest among them."""
    pytest.importorskip("torch")
    memory = json.loads(driple("inspect", *JOB, "--json").stdout)["memory"]
    assert sum(memory["at_peak_bytes"].values()) == memory["peak_bytes"]
    curve = memory["curve"]["bytes"]
    totals = [sum(values) for values in zip(*curve.values(), strict=True)]
    assert max(totals) == memory["peak_bytes"]
    assert 50 < len(totals) <= 200
    modules = sum(sum(one["bytes"].values()) for one in memory["modules"])
    assert modules == pytest.approx(memory["peak_bytes"], rel=0.01)
    assert memory["estimate"]["allocated_bytes"]["value"] >= memory["peak_bytes"]
    assert json.loads(driple("inspect", EXAMPLE, "--json").stdout)["memory"] is None


@pytest.mark.parametrize("job", [EXAMPLE, OPEN])
def test_a_picture_of_a_tensorflow_graph(job: str | Path, tmp_path: Path) -> None:
    """Lifetimes follow from the order of its ops; unknown sizes make it a lower bound."""
    pytest.importorskip("matplotlib")
    picture = tmp_path / "memory.png"
    done = driple("inspect", job, "--memory", "--plot", picture)
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000
    assert "allow_growth" in done.stdout
    assert ("at least" in done.stdout) is (job == OPEN)
    assert bool(re.search(r"\([\d.]+ to [\d.]+\)", " ".join(done.stdout.split()))) is (job != OPEN)


def test_shards_need_less_than_the_whole_model() -> None:
    """What FSDP gathers is a kind of its own."""
    pytest.importorskip("torch")
    peaks = {}
    for name in ("8xA100", "8xA100@fsdp"):
        job = ("bert-tiny", "--batch-size", "2", "--optimizer", "adamw", "--setting", name)
        peaks[name] = json.loads(driple("inspect", *job, "--memory", "--json").stdout)["memory"]
    whole, shards = (one["at_peak_bytes"] for one in peaks.values())
    for kind in ("parameters", "optimizer"):
        assert shards[kind] == pytest.approx(whole[kind] / 8, rel=0.02)


def test_what_makes_no_sense_is_refused() -> None:
    """In one line that says what to do."""
    assert ".png, .svg or .pdf" in refused(EXAMPLE, "--memory", "--plot", "memory.txt")
