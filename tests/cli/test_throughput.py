"""`driple trace import` and `driple sweep` on TensorFlow's records of three real steps."""

import gzip
import json
from pathlib import Path

import pytest

from driple.api import sweeping
from driple.async_sgd.jobtrace import read_job_trace
from driple.async_sgd.overhead import Overhead
from tests.api.test_schema import errors_of
from tests.cli.test_main import ROOT, driple, refused

RECORDS = sorted((ROOT / "tests/data/throughput").glob("*.pb.gz"))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("throughput")
    files = []
    for record in RECORDS:
        files.append(folder / record.stem)
        files[-1].write_bytes(gzip.decompress(record.read_bytes()))
    file = folder / "job.npz"
    done = driple(
        *("trace", "import", *files, "-o", file, "--batch-size", 64, "--bandwidth", "10G"),
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert errors_of(json.loads(done.stdout)) == []
    assert "3 steps" in done.stderr
    return file


def test_sweep_prints_a_curve_beside_the_plain_models(trace: Path) -> None:
    done = driple("sweep", trace, "--workers", "1,2", "--set", "steps=50", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["clusters"]["workers"] == [1, 2]
    rates = result["estimates"]["examples_per_s"]
    ends = rates["interval"]
    for low, rate, high in zip(ends["low"], rates["value"], ends["high"], strict=True):
        assert low <= rate <= high
    assert ends["level"] == 0.95
    assert {"linear", "Lin", "Cynthia"} <= set(result["facts"]["baselines_examples_per_s"])
    shown = driple("sweep", trace, "--workers", "1-2", "--set", "steps=50")
    assert "examples/s" in shown.stdout


def test_sweep_draws_the_curve_and_what_the_workers_do(trace: Path, tmp_path: Path) -> None:
    curve, timeline, chrome = (tmp_path / name for name in ("c.png", "t.png", "t.json"))
    done = driple(
        *("sweep", trace, "--workers", "1-3", "--set", "steps=20"),
        *("--plot", curve, "--timeline", timeline),
    )
    assert done.returncode == 0, done.stderr
    assert min(curve.stat().st_size, timeline.stat().st_size) > 10_000
    done = driple("sweep", trace, "--workers", "2", "--set", "steps=20", "--timeline", chrome)
    assert done.returncode == 0, done.stderr
    assert json.loads(chrome.read_text())["traceEvents"]


def test_a_platform_tells_bandwidth_and_overhead(trace: Path, tmp_path: Path) -> None:
    records = [file.with_suffix("") for file in RECORDS]
    files = [trace.parent / file.name for file in records]
    platform = tmp_path / "platform.json"
    line = {"s_per_byte": 2e-10, "s": 3e-4}
    platform.write_text(json.dumps({"bytes_per_s": 2.4e7, "overhead": line}))
    arguments = ("trace", "import", *files, "--batch-size", 64, "--bandwidth", "200M")
    trace_file = tmp_path / "job.npz"
    done = driple(*arguments, "--link", platform, "-o", trace_file)
    assert done.returncode == 0, done.stderr
    read = read_job_trace(trace_file)
    assert read.bytes_per_s == 2.4e7
    assert read.about.overhead == Overhead(**line)
    platform.write_text('{"bytes_per_s": 2.4e7}')
    assert "trace link" in refused(*arguments, "--link", platform, "-o", trace_file)
    assert (
        "no such" in refused(*arguments, "--link", tmp_path / "no.json", "-o", trace_file).lower()
    )


def test_bad_input_gets_one_line(trace: Path, tmp_path: Path) -> None:
    assert "1000" in refused("sweep", trace, "--workers", "1000000")
    assert "--workers" in refused("sweep", trace, "--workers", "0")
    assert "trace run" in refused("sweep", tmp_path / "none.npz")
    assert "--workers" in refused("sweep", trace, "--workers", "many")
    assert "10G" in refused("sweep", trace, "--bandwidth", "fast")
    assert "order" in refused("sweep", trace, "--set", "order=upward")
    assert "--set price needs" in refused("sweep", trace, "--set", "price=1,2,3")
    assert "--set price needs" in refused("sweep", trace, "--set", "price=inf")
    assert "--set overhead needs two" in refused("sweep", trace, "--set", "overhead=1")
    assert "--ps takes one number" in refused("sweep", trace, "--ps", "1,2")


def test_a_price_makes_a_cost_of_each_example(trace: Path) -> None:
    """One worker at 3.6 an hour and a server at 3.6: 0.002 a second over the examples."""
    done = driple(
        "sweep", trace, "--workers", "1", "--set", "steps=20", "--set", "price=3.6,3.6", "--json"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    (rate,) = result["estimates"]["examples_per_s"]["value"]
    (cost,) = result["estimates"]["cost_per_example"]["value"]
    assert cost == pytest.approx(1e-3 * (1 + result["facts"]["servers"]) / rate)


def test_a_window_of_zero_lets_each_stream_go_whole(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `--no-flow-control` did."""
    seen = []
    right = sweeping.sweep
    monkeypatch.setattr(
        sweeping,
        "sweep",
        lambda *words, **more: seen.append(more["trace"]) or right(*words, **more),
    )
    for window in ((), ("--set", "window=0"), ("--set", "window=3")):
        driple("sweep", trace, "--workers", "1", "--set", "steps=20", *window)
    assert [one.window_bytes for one in seen] == [28e6, None, 3e6]
