"""A forward pass alone: the ops of the forward part of a step, without gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from driple.cluster.setting import Setting
from driple.errors import GraphError
from driple.graph.cost import cost_of_graph, cost_of_op
from driple.graph.cost.elementwise import INFERENCE
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate

declare_torchvision_ops()  # before timm, which imports torchvision

import timm  # noqa: E402


def traced(name: str, options: StepOptions) -> OpGraph:
    with torch.device("meta"):
        model, images = timm.create_model(name).train(), torch.zeros(4, 3, 224, 224)
        labels = torch.zeros(4, dtype=torch.int64)
    graph = traced_step(
        model, images, lambda out: nn.functional.cross_entropy(out, labels), options
    )
    assert all(module.training for module in model.modules())
    return graph


@pytest.mark.parametrize("name", ["resnet18", "vit_tiny_patch16_224", "efficientnet_b0"])
def test_it_has_the_products_of_a_steps_forward_part(name: str) -> None:
    step = traced(name, StepOptions(precision="bf16"))
    alone = traced(name, StepOptions(precision="bf16", task="forward"))
    products = ("conv", "depthwise_conv", "matmul", "batch_matmul", "attention")

    def flops(graph: OpGraph) -> float:
        kept = [
            kind in products and phase == Phase.FORWARD
            for kind, phase in zip(graph.kinds, graph.phases.tolist(), strict=True)
        ]
        return float(cost_of_graph(graph).flops[kept].sum())

    assert flops(alone) == flops(step) > 0
    assert set(alone.phases.tolist()) == {Phase.FORWARD}
    assert not alone.is_training
    assert not alone.remote
    assert not len(alone.traffic.sent_bytes)
    assert alone.update.moved_bytes == alone.update.num_kernels == 0
    assert len(alone.parameters.names) == len(step.parameters.names)


def test_batch_norm_uses_kept_statistics() -> None:
    """Half the FLOPs, and one result."""
    step, alone = (
        traced("efficientnet_b0", StepOptions()),
        traced("efficientnet_b0", StepOptions(task="forward")),
    )
    norms = [op for op in alone.signatures if op.kind == "batch_norm"]
    assert norms
    assert all(INFERENCE in op.numbers and len(op.outputs) == 1 for op in norms)
    trained = next(op for op in step.signatures if op.kind == "batch_norm")
    assert INFERENCE not in trained.numbers
    same = next(op for op in norms if op.inputs == trained.inputs)
    assert 2 * cost_of_op(same).flops == cost_of_op(trained).flops


def test_norms_that_a_model_froze_use_them_in_training_too() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8).eval())
        images = torch.zeros(2, 3, 8, 8)
    graph = traced_step(model, images, lambda out: out.sum(), StepOptions())
    norms = [op for op in graph.signatures if op.kind.startswith("batch_norm")]
    assert [op.kind for op in norms] == ["batch_norm", "batch_norm_gradient"]
    assert all(INFERENCE in op.numbers for op in norms)


def test_a_model_without_parameters_to_train_has_one() -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8).requires_grad_(False)

        def forward(self, values: Tensor) -> Tensor:
            output: Tensor = self.layer(values)
            return output

    with torch.device("meta"):
        model, values = Frozen(), torch.zeros(2, 8)
    graph = traced_step(model, values, None, StepOptions(task="forward"))
    assert graph.kinds == ("matmul",)


def test_it_is_simulated_on_one_device_alone() -> None:
    graph = traced("resnet18", StepOptions(task="forward"))
    job = PreparedJob(graph)
    times = {}
    for name in ("1xA100", "V100-R8/ho-NVLink", "V100-P1w2/ho-PCIe"):
        setting = Setting.parse(name)
        if setting.num_workers == 1:
            times[name] = simulate(job, setting, shipped_calibration(setting)).iteration_time_s
            continue
        with pytest.raises(GraphError, match="forward pass runs on one device"):
            simulate(job, setting, shipped_calibration(setting))
    step = traced("resnet18", StepOptions())
    setting = Setting.parse("1xA100")
    whole = simulate(step, setting, shipped_calibration(setting)).iteration_time_s
    assert 0.15 * whole < times["1xA100"] < 0.5 * whole
