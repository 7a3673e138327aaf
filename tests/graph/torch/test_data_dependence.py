"""A model that decides by values is refused with its own line, and can be traced on real inputs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from torch import nn

from driple.errors import GraphError
from driple.graph.torch.data_dependence import NeedsValuesError
from driple.graph.torch.step import StepOptions, traced_step

HEAD = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
"""
BODIES = {
    "item": "        scale = y.abs().max().item()\n        return (y * scale).sum()\n",
    "branch": "        if y.sum() > 0:\n            y = -y\n        return y.sum()\n",
    "nonzero": "        rows = torch.nonzero(y)\n        return y.sum() + rows.shape[0]\n",
    "mask": "        return y[y > 0].sum()\n",
    "select": "        return torch.masked_select(y, y > 0).sum()\n",
}


def net(folder: Path, body: str) -> tuple[type[nn.Module], Path]:
    path = folder / "net.py"
    path.write_text(HEAD + body)
    spec = importlib.util.spec_from_file_location("net", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Net, path


@pytest.mark.parametrize("name", sorted(BODIES))
def test_the_line_of_the_model_is_named(tmp_path: Path, name: str) -> None:
    model_class, path = net(tmp_path, BODIES[name])
    with torch.device("meta"):
        model, inputs = model_class(), torch.zeros(3, 4)
    with pytest.raises(GraphError) as raised:
        traced_step(model, inputs, None, StepOptions())
    message = str(raised.value)
    assert f"{path}, line 11: `{BODIES[name].splitlines()[0].strip()}`" in message
    assert "torch.cond" in message
    assert "\n" not in message


@pytest.mark.parametrize("name", sorted(BODIES))
def test_real_inputs_get_through(tmp_path: Path, name: str) -> None:
    model_class, _ = net(tmp_path, BODIES[name])
    graph = traced_step(model_class(), torch.rand(3, 4), None, StepOptions(trace="real"))
    assert len(graph.parameters.gradients) == 2


def test_real_and_meta_traces_of_a_plain_model_are_the_same() -> None:
    def model() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))

    real = traced_step(
        model(), torch.rand(2, 3, 8, 8), lambda outputs: outputs.sum(), StepOptions(trace="real")
    )
    with torch.device("meta"):
        shapes, inputs = model(), torch.zeros(2, 3, 8, 8)
    meta = traced_step(shapes, inputs, lambda outputs: outputs.sum(), StepOptions())
    assert real.op_types == meta.op_types
    assert real.signatures == meta.signatures
    assert real.edges.tolist() == meta.edges.tolist()


def test_an_exception_of_the_model_is_one_line_with_its_place(tmp_path: Path) -> None:
    model_class, path = net(tmp_path, "        raise ValueError('odd\\nsecond line')\n")
    with torch.device("meta"):
        model, inputs = model_class(), torch.zeros(3, 4)
    with pytest.raises(GraphError) as raised:
        traced_step(model, inputs, None, StepOptions())
    assert str(raised.value) == f"the training step fails: ValueError: odd ({path}, line 11)"


@pytest.mark.parametrize("values", ["y.detach().cpu().numpy().mean()", "y.detach().numpy().max()"])
def test_values_for_numpy_are_refused_as_values(tmp_path: Path, values: str) -> None:
    model_class, path = net(
        tmp_path, f"        scale = {values}\n        return (y * float(scale)).sum()\n"
    )
    with torch.device("meta"):
        model, inputs = model_class(), torch.zeros(3, 4)
    with pytest.raises(NeedsValuesError, match=f"{path}, line 11"):
        traced_step(model, inputs, None, StepOptions())
