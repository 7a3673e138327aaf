"""`inspect --measured`: predicted beside measured, of a real trace and of one written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import driple
from driple.api.traced_beside import device_of_trace
from driple.catalog import shipped_catalog
from driple.errors import TraceError
from tests.cli.test_main import driple as command
from tests.cli.test_main import refused
from tests.measure.kineto.traces import gpu_steps, write

ROOT = Path(__file__).resolve().parents[2]
GRAPH = str(ROOT / "datasets/examples/resnet20.pbtxt")
MODEL = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.body = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        return x + self.drop(self.body(self.norm(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build_model():
    return Net()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A model's file, and a trace of it on this machine's CPU."""
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile, schedule

    folder = tmp_path_factory.mktemp("recorded")
    (folder / "net.py").write_text(MODEL)
    names: dict[str, object] = {}
    exec(MODEL, names)  # noqa: S102  # the text above
    model = names["build_model"]()  # type: ignore[operator]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = schedule(wait=0, warmup=1, active=2, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, with_stack=True) as profiler:
        for _ in range(3):
            labels = torch.zeros(4, dtype=torch.long)
            torch.nn.functional.cross_entropy(model(torch.randn(4, 16)), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    profiler.export_chrome_trace(str(folder / "trace.json.gz"))
    return f"{folder / 'net.py'}:build_model", folder / "trace.json.gz"


def test_a_real_trace_beside_its_own_model(recorded: tuple[str, Path]) -> None:
    job, trace = recorded
    asked = ["--batch-size", "4", "--input", "16", "--setting", "1xV100", "--measured", str(trace)]
    as_json = json.loads(command("inspect", job, *asked, "--depth", "4", "--json").stdout)
    traced = as_json["traced"]
    assert (traced["steps"], traced["marked"], traced["on_gpu"]) == (2, True, False)
    rows = {row["name"]: row for row in traced["modules"]}
    assert {"blocks.0.norm", "blocks.0.body", "blocks.0.body.2", "blocks.1", "head"} <= set(rows)
    for row in rows.values():
        assert row["predicted_s"]["value"] > 0
        assert row["measured_s"]["value"] > 0
    inner = (
        rows["blocks.1.norm"]["measured_s"]["value"] + rows["blocks.1.body"]["measured_s"]["value"]
    )
    assert rows["blocks.1"]["measured_s"]["value"] >= 0.5 * inner  # medians of each
    kinds = {row["name"]: row for row in traced["kinds"]}
    for name in ("matmul", "layer_norm", "gelu", "gelu_gradient", "update"):
        assert kinds[name]["predicted_s"] and kinds[name]["measured_s"], name
    assert [one["code"] for one in traced["remarks"]] == ["trace_of_host"]
    assert traced["gaps"][0]["cause"] == "no_op"
    shown = command("inspect", job, *asked).stdout
    for words in ("median of 2 steps", "kind of op", "layer norm", "blocks.0", "no op on the host"):
        assert words in shown


def test_the_setting_is_the_device_of_the_trace(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.json", gpu_steps(3), "NVIDIA A100-SXM4-80GB")
    done = command("inspect", GRAPH, "--measured", str(trace))
    assert "times are of 1xA100-80G" in done.stderr
    assert "predicted for one A100-80G" in done.stdout
    assert "a kernel runs 35 us (35 %), none 65 us" in done.stdout
    other = driple.inspect(GRAPH, "1xV100", measured=trace).traced
    assert other is not None
    assert other.remarks[0].code == "measured_elsewhere"


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100-80G"),
        ("NVIDIA A100-PG509-200", "A100"),
        ("Tesla V100-SXM2-32GB", "V100-SXM2-32G"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA GeForce RTX 4090", "4090"),
        ("AMD Radeon Graphics", None),
        ("", None),
    ],
)
def test_devices_of_traces(tmp_path: Path, name: str, device: str | None) -> None:
    trace = write(tmp_path / "t.json", gpu_steps(1), name)
    assert device_of_trace(trace, shipped_catalog()) == device


def test_what_is_no_trace_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [{"na')
    line = refused("inspect", GRAPH, "--measured", str(path))
    assert "cut off" in line
    assert "No such file" in refused("inspect", GRAPH, "--measured", str(tmp_path / "none.json"))
    with pytest.raises(TraceError):
        driple.inspect(GRAPH, measured=path)
