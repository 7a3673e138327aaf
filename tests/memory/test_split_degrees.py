"""Memory of contexts, experts, interleaved stages and shared states, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting
from driple.graph.step_facts import Phase, TensorRole
from driple.memory.device_tensors import device_tensors
from driple.memory.estimate import memory_of_graph
from driple.memory.place import MemoryPlace
from driple.memory.split_model import device_steps
from driple.memory.step_memory import StepMemory
from driple.schemes.scheme import Sharding
from tests.memory.test_split_model import activations_of, gpt2
from tests.step.mixtures import EXPERTS, INNER, LAYERS, WIDTH, dense, mixture

ELEMENTS = LAYERS * EXPERTS * 3 * WIDTH * INNER  # of all experts


def alive_at_turn(step: StepMemory, turn: int) -> int:
    """Bytes of activations when the backward pass begins."""
    alive = (step.made_by >= 0) & (step.made_by < turn) & (step.freed_after >= turn)
    return int(step.nbytes[alive & (step.roles == TensorRole.ACTIVATION)].sum())


@pytest.mark.parametrize("degree", [2, 4])
def test_activations_of_a_share_of_the_tokens(degree: int) -> None:
    """1 / n of all; parameters, gradients and states are whole."""
    graph = dense()
    (whole,), (part,) = device_steps(graph), device_steps(graph, Degrees(context=degree))
    turn = int(np.flatnonzero(graph.phases == Phase.BACKWARD)[0])
    assert alive_at_turn(part, turn) == pytest.approx(alive_at_turn(whole, turn) / degree, rel=0.02)
    assert part.weights.nbytes.tolist() == whole.weights.nbytes.tolist()
    assert part.update == whole.update


@pytest.mark.parametrize("degree", [2, 8])
def test_experts_of_a_device(degree: int) -> None:
    """Parameters, gradients and states of E / n experts; activations of as many tokens."""
    graph = mixture()
    (whole,), (part,) = device_steps(graph), device_steps(graph, Degrees(expert=degree))
    less = 2 * (ELEMENTS - ELEMENTS // degree)
    assert whole.weights.nbytes.sum() - part.weights.nbytes.sum() == less
    gradients = part.nbytes[
        (part.roles == TensorRole.GRADIENT) & (part.freed_after >= part.num_nodes)
    ]
    assert gradients.sum() == part.weights.trained_bytes
    assert activations_of(part) == pytest.approx(activations_of(whole), rel=0.01)


def test_states_of_experts_have_fewer_sharers() -> None:
    """On 8 devices with ep4: dense states by 8, those of experts by the 2 with the same ones."""
    graph = mixture()
    (step,) = device_steps(graph, Degrees(expert=4))
    states = device_tensors(step, Sharding(shards_states=True), 8, 8).states.sum()
    experts = np.array(["experts" in name for name in graph.parameters.names])
    nbytes = step.weights.nbytes.astype(float)
    wanted = 2 * (nbytes[experts].sum() / 2 + nbytes[~experts].sum() / 8)
    assert states == pytest.approx(wanted, rel=0.01)  # Adam: two states, in bf16


@pytest.mark.parametrize("states", ["zero1", "zero2", "fsdp"])
def test_sharing_states_saves_memory(states: str) -> None:
    for scheme in ("tp2", "ep4", "pp2", "tp2-pp2", "cp2-ep2"):
        plain, shared = (
            memory_of_graph(mixture(passes=2), Setting.parse(f"8xH100/NVLink@{name}"))
            for name in (scheme, f"{scheme}-{states}")
        )
        assert shared.parts["optimizer"] < plain.parts["optimizer"], scheme
        assert shared.fits == "yes"


def test_replicas_that_share_out_states() -> None:
    """Devices with the same shard: all of a stage but for the tensor group."""
    for name, count in (("tp2-pp2-zero1", 4), ("tp4-cp2-zero1", 4), ("ep8-zero1", 16)):
        place = MemoryPlace.of(Setting.parse(f"2x8xH100/NVLink+400G@{name}"))
        assert (place.shards, place.copies) == (count, count)


def test_interleaved_stages_keep_more() -> None:
    """The first of p devices with v stages keeps (2 (p - 1) + (v - 1) p + 1) of 1 / v of them.

    Of p = 2 and v = 2: 5 / 2 stages' activations, where 1F1B keeps 2.
    """
    graph = gpt2(4, passes=8)
    plain = device_steps(graph, Degrees(pipeline=2))[0]
    woven = device_steps(graph, Degrees(pipeline=2, virtual=2))[0]
    turn = int(np.flatnonzero(graph.phases == Phase.BACKWARD)[0])
    kept = [alive_at_turn(one, turn) for one in (plain, woven)]
    assert kept[1] / kept[0] == pytest.approx(5 / 4, rel=0.15)
    assert woven.weights.nbytes.sum() == pytest.approx(plain.weights.nbytes.sum(), rel=0.35)
