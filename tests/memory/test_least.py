"""The least memory of a step, by hand, and the devices that it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from driple.catalog import DEVICES, Instance, shipped_catalog
from driple.graph.opgraph import OpGraph
from driple.graph.torch.torch_graph import graph_of_step
from driple.memory.least import LeastMemory, device_memory_bytes, least_memory
from driple.planning.cost import refused_for_facts, refused_for_memory, refused_for_precision

GIB = 2**30
K80 = Instance(name="small", device="K80", num_devices=1, interconnect="PCIe")


def graph_of(update: str) -> OpGraph:
    with torch.device("meta"):
        model, inputs = nn.Linear(300, 500, bias=False), torch.zeros(200, 300)
    return graph_of_step(model, inputs, lambda outputs: outputs.sum(), update)


@pytest.mark.parametrize(
    ("update", "states"),
    [("update_sgd", 0), ("update_momentum", 1), ("update_adam", 2), ("update_other", 0)],
)
def test_parameters_gradients_states_and_the_largest_tensor(update: str, states: int) -> None:
    """A layer of 300 x 500 weights; its gradient, as large, is the largest tensor."""
    weights = 4 * 300 * 500
    found = least_memory(graph_of(update))
    assert found == LeastMemory(
        parameters_bytes=weights,
        gradients_bytes=weights,
        states_bytes=states * weights,
        largest_tensor_bytes=weights,
    )
    assert found.total_bytes == (3 + states) * weights


def least(total_bytes: int) -> LeastMemory:
    return LeastMemory(
        parameters_bytes=total_bytes, gradients_bytes=0, states_bytes=0, largest_tensor_bytes=0
    )


def test_what_is_larger_than_a_device_is_refused_with_both_numbers() -> None:
    """A K80 has 12 GiB of each of its GPUs, a V100 of p3dn.24xlarge 32, one of p3.16xlarge 16."""
    assert refused_for_memory(least(12 * GIB), K80) is None
    refused = refused_for_memory(least(13 * GIB), K80, 2)
    assert refused is not None
    assert refused.name == "small*2"
    assert "at least 14 GB (parameters 14," in refused.reason
    assert "a K80 of small has 12 GiB" in refused.reason
    shipped = shipped_catalog().instances
    assert refused_for_memory(least(20 * GIB), shipped["p3.16xlarge"]) is not None
    assert refused_for_memory(least(20 * GIB), shipped["p3dn.24xlarge"]) is None


def test_every_device_has_a_memory_and_instances_agree_with_it() -> None:
    """Of devices that come with two sizes, the catalogue has the smaller one.

    Providers subtract what error correction takes: a B200 of AWS has 179 GB of 180.
    """
    assert all(device.memory_bytes >= 6e9 for device in DEVICES.values())
    for instance in shipped_catalog().instances.values():
        own = device_memory_bytes(instance)
        usual = device_memory_bytes(replace(instance, device_memory_gb=None))
        assert own == pytest.approx(usual, rel=0.01) or own == pytest.approx(2 * usual)


def test_what_the_catalogue_does_not_know_is_refused_by_name() -> None:
    """One instance must not stop the answer for all others."""
    shipped = shipped_catalog().instances
    assert refused_for_facts(shipped["p5.48xlarge"], 2) is None
    refused = refused_for_facts(shipped["Standard_ND96isr_MI300X_v5"])
    assert refused is not None
    assert "does not state counter_window_s of a MI300X" in refused.reason
    several = refused_for_facts(shipped["gpu_8x_h100_sxm5"], 2)
    assert several is not None
    assert several.name == "gpu_8x_h100_sxm5*2"
    assert "its network_gbps" in several.reason
    assert refused_for_facts(shipped["gpu_8x_h100_sxm5"]) is None


def test_emulated_bfloat16_is_refused() -> None:
    """No run tells how slow it is; Ampere computes it."""
    refused = refused_for_precision("bfloat16 (98%), float32 (2%)", K80)
    assert refused is not None
    assert "K80 (Kepler) only emulates" in refused.reason
    assert refused_for_precision("float16", K80) is None
    assert refused_for_precision("bfloat16", replace(K80, device="A100")) is None
    assert refused_for_precision("bfloat16", replace(K80, device="MI300X")) is None
    for name in ("T4", "V100", "P100", "M60"):
        assert refused_for_precision("bfloat16", replace(K80, device=name)) is not None
