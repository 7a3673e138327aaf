"""Sums of a trace: by hand, and of a real one that torch.profiler writes here."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.measure.kineto.use import trace_use
from tests.measure.kineto.traces import event, gpu_step, gpu_steps, write


def us(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value * 1e6, 3) for name, value in seconds.items()}


def test_kernels_count_by_the_op_that_launched_them(tmp_path: Path) -> None:
    use = trace_use(write(tmp_path / "t.json.gz", gpu_steps(3), "NVIDIA H100 80GB HBM3"))
    assert (use.num_steps, use.marked, use.on_gpu, use.device) == (
        3, True, True, "NVIDIA H100 80GB HBM3",
    )  # fmt: skip
    assert use.step_s == pytest.approx(100e-6)
    assert us(use.kinds) == {"conv": 10, "conv_gradient": 20, "update": 5}
    assert us(use.phases) == {"forward": 10, "backward": 20, "update": 5}
    assert us({"/".join(path): s for path, s in use.modules.items() if s}) == {
        "": 5, "Net_0/Conv2d_0": 30,
    }  # fmt: skip


def test_the_median_of_steps_is_taken(tmp_path: Path) -> None:
    """One slow step of three changes nothing."""
    events = gpu_steps(3)
    events[6] = {**events[6], "dur": 19}  # the kernel of the first step's convolution
    assert us(trace_use(write(tmp_path / "t.json", events)).kinds)["conv"] == 10


def test_a_trace_without_steps_is_one(tmp_path: Path) -> None:
    use = trace_use(write(tmp_path / "t.json", gpu_step()[1:]))
    assert (use.num_steps, use.marked) == (1, False)
    assert use.step_s == pytest.approx(79e-6)  # from 1 to 80
    assert us(use.kinds)["conv"] == 10


def test_steps_that_are_not_consecutive_end_by_themselves(tmp_path: Path) -> None:
    events = [*gpu_step(0, 1), *gpu_step(900, 7, 10)]
    assert trace_use(write(tmp_path / "t.json", events)).step_s == pytest.approx(100e-6)


def test_kernels_of_their_own_kind(tmp_path: Path) -> None:
    events = [
        *gpu_step(),
        event("kernel", "ncclDevKernel_AllReduce_Sum_f32", 76, 3, correlation=2),
        event("kernel", "triton_poi_fused_add_0", 80, 2, correlation=77),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 83, 4, correlation=78),
        event("gpu_memset", "Memset (Device)", 88, 1),
        event("kernel", "elsewhere", 1, 1, device=1),
    ]
    use = trace_use(write(tmp_path / "t.json", events))
    kinds_us = us(use.kinds)
    assert [kinds_us[name] for name in ("collective", "fused", "transfer", "fill")] == [3, 2, 4, 1]
    assert use.other_devices == 1
    assert "other" not in kinds_us


def test_a_real_trace_of_a_small_model(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = schedule(wait=0, warmup=1, active=3, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, with_stack=True) as profiler:
        for _ in range(4):
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    path = tmp_path / "trace.json.gz"
    profiler.export_chrome_trace(str(path))
    use = trace_use(path)
    assert (use.num_steps, use.marked, use.on_gpu) == (3, True, False)
    assert {"matmul", "relu", "relu_gradient", "update"} <= set(use.kinds)
    assert set(use.phases) == {"forward", "backward", "update"}
    paths = [path for path in use.modules if path]
    assert [path[0] for path in paths] == ["Sequential_0"] * 4
    assert [path[-1].partition("_")[0] for path in paths[1:]] == ["Linear", "ReLU", "Linear"]
    assert all(use.modules[path] > 0 for path in paths[1:])
    gaps_s = sum(gap.seconds for gap in use.gaps)
    assert 0 < gaps_s < use.step_s
    assert use.busy_s < use.step_s
