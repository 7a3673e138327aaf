"""`driple throughput` on TensorFlow's records of three real steps."""

import gzip
import json
from pathlib import Path

import pytest

from driple.async_sgd.jobtrace import read_job_trace
from driple.async_sgd.overhead import Overhead
from tests.cli.test_main import ROOT, driple, refused

RECORDS = sorted((ROOT / "tests/data/throughput").glob("*.pb.gz"))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("throughput")
    files = []
    for record in RECORDS:
        files.append(folder / record.stem)
        files[-1].write_bytes(gzip.decompress(record.read_bytes()))
    made = folder / "job.npz"
    done = driple(
        *("trace", "import", *files, "-o", made, "--batch-size", 64, "--bandwidth", "10G")
    )
    assert done.returncode == 0, done.stderr
    assert "3 steps" in done.stderr
    return made


def test_predict_prints_a_curve_beside_the_plain_models(trace: Path) -> None:
    done = driple("throughput", "predict", trace, "--workers", "1,2", "--steps", 50, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [point["workers"] for point in found["curve"]] == [1, 2]
    for point in found["curve"]:
        low, high = point["interval"]
        assert low <= point["examples_per_s"] <= high
        assert {"linear", "Lin", "Cynthia"} <= set(point["baselines"])
    shown = driple("throughput", "predict", trace, "--workers", "1-2", "--steps", 50)
    assert "examples/s" in shown.stdout


def test_predict_draws_the_curve_and_what_the_workers_do(trace: Path, tmp_path: Path) -> None:
    curve, timeline, chrome = (tmp_path / name for name in ("c.png", "t.png", "t.json"))
    done = driple(
        *("throughput", "predict", trace, "--workers", "1-3", "--steps", 20),
        *("--plot", curve, "--timeline", timeline, "--chrome-trace", chrome),
    )
    assert done.returncode == 0, done.stderr
    assert min(curve.stat().st_size, timeline.stat().st_size) > 10_000
    assert json.loads(chrome.read_text())["traceEvents"]


def test_a_platform_tells_bandwidth_and_overhead(trace: Path, tmp_path: Path) -> None:
    records = [file.with_suffix("") for file in RECORDS]
    files = [trace.parent / file.name for file in records]
    platform = tmp_path / "platform.json"
    line = {"s_per_byte": 2e-10, "s": 3e-4}
    platform.write_text(json.dumps({"bytes_per_s": 2.4e7, "overhead": line}))
    arguments = ("trace", "import", *files, "--batch-size", 64, "--bandwidth", "200M")
    made = tmp_path / "job.npz"
    done = driple(*arguments, "--link", platform, "-o", made)
    assert done.returncode == 0, done.stderr
    found = read_job_trace(made)
    assert found.bytes_per_s == 2.4e7
    assert found.about.overhead == Overhead(**line)
    platform.write_text('{"bytes_per_s": 2.4e7}')
    assert "trace link" in refused(*arguments, "--link", platform, "-o", made)
    assert "no such" in refused(*arguments, "--link", tmp_path / "no.json", "-o", made).lower()


def test_bad_input_gets_one_line(trace: Path, tmp_path: Path) -> None:
    assert "1000" in refused("throughput", "predict", trace, "--workers", "1000000")
    assert "--workers" in refused("throughput", "predict", trace, "--workers", "0")
    assert "trace run" in refused("throughput", "predict", tmp_path / "none.npz")
    assert "--workers" in refused("throughput", "predict", trace, "--workers", "many")
    assert "10G" in refused("throughput", "predict", trace, "--bandwidth", "fast")
    assert "order" in refused("throughput", "predict", trace, "--order", "upward")
