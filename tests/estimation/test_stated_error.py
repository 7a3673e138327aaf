"""The error that is stated belongs to the answer: same device, cluster, precision and network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from torch import nn

from driple.calibration.checked import checked_runs
from driple.calibration.published import PublishedRun, read_published
from driple.calibration.validate import HeldOut, HeldOutPrediction
from driple.cluster.setting import Setting
from driple.dataset.graph_store import GraphStore
from driple.errors import ConfigError
from driple.estimation.checked_runs import (
    CheckedRun,
    runs_from_json,
    runs_to_json,
    shipped_checked_runs,
)
from driple.estimation.stated_error import (
    LEAST_CONVOLUTION_SHARE,
    LEAST_PRODUCT_FLOPS,
    JobKind,
    StatedError,
    job_kind,
    stated_error,
)
from driple.graph import read_graph
from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.jobs.workload import Workload

ROOT = Path(__file__).parents[2]
CNN, HALF = JobKind(), JobKind(half=True)


def run_of(
    kind: str, devices: Sequence[str], error_pct: float, *, held_out: str = "model",
    servers: int = 0, several: bool = False, link: str = "PCIe3", half: bool = False,
) -> CheckedRun:  # fmt: skip
    return CheckedRun(
        kind=kind, held_out=held_out, devices=tuple(sorted(set(devices))),
        num_workers=len(devices), num_servers=servers, several_machines=several, link=link,
        half=half, error_pct=error_pct,
    )  # fmt: skip


RUNS = [
    *(run_of("single", ["V100"], error) for error in (1, 2, 3, 4, 5)),
    *(run_of("single", ["K80"], error) for error in (10, 20, 30, 40, 50)),
    *(run_of("single", ["K80"], error, half=True) for error in (60, 60, 60, 60, 60)),
    *(run_of("single", ["A100"], 70) for _ in range(4)),
    *(run_of("single", ["V100"], 11, held_out="device") for _ in range(5)),
    *(run_of("ring", ["K80"] * 4, 8) for _ in range(6)),
    *(run_of("ring", ["K80"] * 4, 16, held_out="device") for _ in range(6)),
    *(run_of("ring", ["K80"] * 8, 24, several=True, link="10G") for _ in range(6)),
    *(run_of("servers", ["K80"] * 2, 12, servers=1, several=True, link="10G") for _ in range(6)),
]


def stated(name: str, job: JobKind = CNN) -> StatedError:
    setting = Setting.parse(name if "-" in name else f"{name}-R1/ho-PCIe")
    return stated_error(setting, job, runs=RUNS)


def test_each_device_states_its_own_error_in_any_order() -> None:
    """By hand: medians of five rows; of a device with too few rows, that of left-out devices."""
    shuffled = Random(0).sample(RUNS, len(RUNS))
    for device, median in (("V100", 3), ("K80", 30), ("A100", 11), ("H100", 11)):
        found = stated(device)
        assert (found.num_runs, found.median_pct) == (5, median)
        alone = Setting.parse(f"{device}-R1/ho-PCIe")
        assert stated_error(alone, CNN, runs=shuffled) == found
    assert stated("K80").p90_pct == pytest.approx(46)
    assert "too few are of H100" in stated("H100").sentence()


def test_precision_scheme_and_number_of_devices_count() -> None:
    assert stated("K80", HALF).median_pct == 60
    assert stated("K80-R4/ho-PCIe").median_pct == 8
    assert stated("V100-R4/ho-PCIe").median_pct == 16
    assert stated("K80-R8/ho-10G").median_pct == 24
    assert stated("K80-P1w2/ho-10G").p90_pct == pytest.approx(46)  # no less than a K80's own
    for name, why in (
        ("K80-R8/ho-PCIe", "no published ring in one machine has more than 4 devices"),
        ("K80-R8/ho-40G", "faster network than 10G"),
        ("H100-R4/ho-NVLink", "go over PCIe, this one over NVLink-H100"),
        ("K80-P2w2/ho-10G", "up to 1 of them and 2 workers, this setting 2 and 2"),
        ("K80-P1w2/ho-PCIe", "on several machines; of computing alone: the simulator's error on 5"),
        ("K80-P1w2/ho-40G", "networks of up to 10G"),
    ):
        found = stated(name)
        assert (found.num_runs, found.median_pct, found.p90) == (0, None, None), name
        assert found.sentence().startswith(
            "this answer was not checked against any published run of this kind: "
        )
        assert why in found.sentence()
    assert "in this precision" in stated("K80-R4/ho-PCIe", HALF).sentence()
    assert "in this precision" in stated("K80-P1w2/ho-10G", HALF).sentence()


def test_cpus_were_measured_by_setting() -> None:
    found = stated("CPU-P1w2/ho-200M")
    assert found.num_runs == 67
    assert "measured on CPU-P1w2/ho-200M" in found.sentence()
    assert "CPU-P1w3/ho-200M" in stated("CPU-P1w2/ho-1G").sentence()


def test_only_the_published_kind_of_network_carries_an_error() -> None:
    """ResNet-50 does; ResNet-20 on small images, BERT and MobileNet do not."""
    pytest.importorskip("torch")
    from driple.jobs.pytorch.step_graph import graph_of_workload
    from driple.jobs.pytorch.workloads import pytorch_workload_named

    alone = Setting.parse("V100-R1/ho-PCIe")
    large = read_graph(ROOT / "datasets/examples/resnet50.pbtxt")
    assert job_kind(large) == CNN
    assert stated_error(alone, large).num_runs == 15
    small = read_graph(ROOT / "datasets/examples/resnet20.pbtxt")
    assert "smaller than in any published run" in stated_error(alone, small).sentence()
    for name, why in (("bert-base", "convolutional"), ("mobilenet_v2", "depthwise")):
        found = stated_error(alone, graph_of_workload(pytorch_workload_named(name), 2))
        assert found.num_runs == 0
        assert why in found.sentence()


def test_half_precision_is_that_of_the_products() -> None:
    import torch

    from driple.graph.torch.torch_graph import graph_of_step

    with torch.device("meta"):
        model = nn.Conv2d(64, 256, 3).bfloat16()
        images = torch.zeros(32, 64, 56, 56, dtype=torch.bfloat16)
    graph = graph_of_step(model, images, lambda outputs: outputs.sum())
    assert job_kind(graph) == HALF
    bare = replace(
        graph, signatures=tuple(replace(one, kind="mul") for one in graph.signatures),
    )  # fmt: skip
    assert "no convolution or matrix product" in job_kind(bare).unlike


def test_the_limits_are_those_of_the_published_runs() -> None:
    """The least share of convolutions, and the smallest product, of all that were published."""
    shares, sizes = [], {}
    for name, graph in GraphStore.open(ROOT / "datasets/calibration/graphs").graphs():
        job = Workload.parse(name)
        convolutions, products, count = _products(graph)
        shares.append(convolutions / products)
        sizes[job.model] = products / count / job.batch_size
    least = min(
        sizes[run.model] * run.batch_size
        for run in read_published(ROOT / "datasets/published")
        if run.model in sizes
    )
    assert pytest.approx(min(shares), rel=0.05) == LEAST_CONVOLUTION_SHARE
    assert min(shares) > LEAST_CONVOLUTION_SHARE
    assert pytest.approx(least, rel=0.1) == LEAST_PRODUCT_FLOPS
    assert least > LEAST_PRODUCT_FLOPS


def _products(graph: OpGraph) -> tuple[float, float, int]:
    """FLOPs of 2-D convolutions, of all products, and the number of products."""
    flops = cost_of_graph(graph).flops
    product = np.array([family_of(kind) in PRODUCT_FAMILIES for kind in graph.kinds])
    plain = np.array([kind.startswith("conv") for kind in graph.kinds])
    return flops[plain].sum(), flops[product].sum(), int(product.sum())


def prediction(
    held_out: HeldOut, *, fused: bool = False, overlapped: bool = True
) -> HeldOutPrediction:
    run = PublishedRun(
        source="here", kind="ring", model="vgg16", batch_size=32, half=False, fused=fused,
        devices=("K80", "K80"), num_servers=0, gpus_per_machine=1, link="10G",
        overlapped=overlapped, seconds=1.0,
    )  # fmt: skip
    return HeldOutPrediction(run=run, held_out=held_out, name="", simulated_s=1.25, roofline_s=1.0)


def test_runs_that_no_answer_is_like_are_left_out_and_the_rest_comes_back() -> None:
    predictions = [
        prediction("model"), prediction("nothing"), prediction("model", fused=True),
        prediction("device", overlapped=False),
    ]  # fmt: skip
    (run,) = checked_runs(predictions)
    assert run == run_of("ring", ["K80", "K80"], 25.0, several=True, link="10G")
    assert runs_from_json(runs_to_json(RUNS)) == tuple(RUNS)
    for odd in ("", "[]", json.dumps({"format": 2}), runs_to_json(RUNS).replace("half", "other")):
        with pytest.raises(ConfigError, match=r"checked_runs\.json"):
            runs_from_json(odd)
    assert {run.kind for run in shipped_checked_runs()} == {"single", "ring", "servers"}
