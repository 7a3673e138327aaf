"""Each command works a thing out once: costs of ops, machines, step plans, adjacency, prior."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from driple.answers.stated_error import job_kind
from driple.cli.main import run
from driple.cluster.topology import topology_of
from driple.features.communities import group_nodes
from driple.graph import read_graph
from driple.graph.cost.cost import SignatureCosts, cost_of_graph
from driple.graph.cost.formulas import cost_of_completed
from driple.graph.cost.products import product_of
from driple.graph.liveness import executed_nodes
from driple.inspector import cost_prior as law
from driple.inspector import forward
from driple.simulate.calibration import Calibration
from driple.simulate.gpu_times import gpu_op_times
from driple.simulate.place import place_of
from driple.simulate.prepared_job import OpKinds
from driple.step.plan import execution_order, plan_step
from tests.work import calls_of

pytestmark = pytest.mark.reads_anew
EXAMPLE = Path(__file__).resolve().parents[2] / "datasets" / "examples" / "resnet50.pbtxt"
ONE, OTHER = "V100-P1w2/ho-PCIe", "2080Ti-P1w2/ho-PCIe"


def driple(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    place_of.cache_clear()  # a command has a process of its own
    monkeypatch.setattr(sys, "argv", ["driple", *arguments])
    with pytest.raises(SystemExit) as ended:
        sys.exit(run())
    assert ended.value.code in (0, None)


# What depends on the graph alone, whatever settings are asked for.
OF_A_GRAPH = (
    cost_of_graph,
    SignatureCosts.of.__func__,  # type: ignore[attr-defined]  # of a class method
    OpKinds.of.__func__,  # type: ignore[attr-defined]
)
# The simulator asks for these once; memory does too, of the graph in an order of its own.
OF_AN_ORDER = (executed_nodes, execution_order)


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "--method", "simulator", "--set", "steps=4"),
        ("predict",),
        ("predict", "--method", "all", "--set", "steps=4"),
    ],
)
def test_what_depends_on_the_graph_is_worked_out_once(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With two settings as well; machines once for each setting, and step plans.

    The simulator plans a second time, with a slower host.
    """
    settings = ("--setting", ONE, "--setting", OTHER)
    num_signatures = len(read_graph(EXAMPLE).signatures)
    counted = (*OF_A_GRAPH, *OF_AN_ORDER, cost_of_completed, product_of, topology_of, plan_step)
    with calls_of(*counted) as counts:
        driple(monkeypatch, command[0], str(EXAMPLE), *settings, *command[1:], "--json")
    assert ONE in capsys.readouterr().out
    assert counts.pop("cost_of_completed") == num_signatures
    assert counts.pop("product_of") == num_signatures
    assert counts.pop("topology_of") == 2
    assert counts.pop("plan_step") == (4 if "--method" in command else 2)
    assert {counts.pop(one.__qualname__) for one in OF_AN_ORDER} == {2}
    assert set(counts.values()) == {1}, counts


def test_a_prediction_works_out_nothing_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five members of two layers each share an adjacency; the cost prior sums a context once."""
    functions = (
        *OF_A_GRAPH,
        *OF_AN_ORDER,
        topology_of,
        plan_step,
        gpu_op_times,
        job_kind,
        group_nodes,
        forward.run_inspector,
        forward._adjacency,
        law.sums_of,
    )
    with calls_of(*functions) as counts:
        driple(monkeypatch, "predict", str(EXAMPLE), "--setting", ONE, "--json")
    assert "iteration_time_s" in capsys.readouterr().out
    assert {counts.pop(one.__qualname__) for one in OF_AN_ORDER} == {2}
    assert set(counts.values()) == {1}, counts


def test_closed_forms_share_costs_and_machines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with calls_of(*OF_A_GRAPH, *OF_AN_ORDER, topology_of, gpu_op_times) as counts:
        driple(
            monkeypatch, "predict", str(EXAMPLE), "--method", "analytic", "--setting", ONE, "--json"
        )
    assert "iteration_time_s" in capsys.readouterr().out
    assert {counts.pop(one.__qualname__) for one in OF_AN_ORDER} == {2}
    assert set(counts.values()) == {1}, counts


def test_workers_with_one_device_are_calibrated_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not once for each of ten workers: the setting is checked, simulated and described.

    Once more with a slower host, and once for what limits the step.
    """
    with calls_of(Calibration.device) as counts:
        name = "V100-P5w10/ho-1G"
        options = ("--method", "simulator", "--setting", name, "--set", "steps=2", "--json")
        driple(monkeypatch, "predict", str(EXAMPLE), *options)
    assert name in capsys.readouterr().out
    assert counts["Calibration.device"] <= 6
