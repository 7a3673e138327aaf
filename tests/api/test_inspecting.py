"""`inspect`: phases, modules and kinds add up to the step, whatever framework the graph is of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import driple
from driple.api.module_tree import ModuleNode, module_tree
from driple.errors import SettingError
from driple.graph import read_graph
from driple.graph.step_facts import ParameterTable, Phase
from driple.render.remarks import sentences
from tests.cli.test_main import driple as command
from tests.cli.test_main import refused

ROOT = Path(__file__).resolve().parents[2]
GRAPH = ROOT / "datasets/examples/resnet20.pbtxt"
RING = "V100-R8/ho-NVLink"


def nodes_of(tree: ModuleNode) -> list[ModuleNode]:
    return [tree, *(one for child in tree.children for one in nodes_of(child))]


@pytest.fixture(scope="module")
def torch_result() -> driple.api.InspectResult:
    return driple.inspect("mobilenet_v2", "1xA100")


def test_kinds_add_up_to_the_step() -> None:
    """FLOPs, bytes and seconds of all kinds are those of the step; the update comes on top."""
    result = driple.inspect(GRAPH, RING)
    parts, cost = result.breakdown, result.job.cost
    assert sum(one.flops for one in parts.kinds) == pytest.approx(cost.total_flops)
    assert sum(one.moved_bytes for one in parts.kinds) == pytest.approx(cost.total_bytes)
    assert parts.total_s is not None
    ops_s = sum(one.time_s or 0.0 for one in parts.kinds)
    assert 0.9 * parts.total_s < ops_s < parts.total_s
    largest = parts.kinds[0]
    assert largest.time_pct == pytest.approx(100 * (largest.time_s or 0.0) / parts.total_s)


def test_on_servers_the_update_takes_no_time_of_the_device() -> None:
    ring, servers = driple.inspect(GRAPH, RING), driple.inspect(GRAPH, "V100-P1w2")
    for result, updates in ((ring, True), (servers, False)):
        ops_s = sum(one.time_s or 0.0 for one in result.breakdown.kinds)
        assert ((result.breakdown.total_s or 0.0) > ops_s * (1 + 1e-9)) is updates
        (update,) = [one for one in result.breakdown.phases if one.name == "update"]
        assert ((update.time_s or 0.0) > 0) is updates
    said = sentences(servers.assumptions)
    assert any("parameter servers update the parameters" in words for words in said)


def test_scopes_of_the_backward_pass_count_with_the_forward_pass() -> None:
    """Each convolution of the graph has its gradients' FLOPs: about three times its own."""
    result = driple.inspect(GRAPH)
    tree = result.breakdown.modules
    assert tree is not None
    model = next(one for one in tree.children if one.path == "model")
    assert model.flops > 0.99 * result.job.cost.total_flops
    assert not [one for one in nodes_of(tree) if "gradients" in one.path or "_grad" in one.path]
    graph, cost = result.job.graph, result.job.cost
    flops = dict(zip(graph.names, (cost.flops * cost.executions).tolist(), strict=True))
    for conv in [one for one in model.children if one.name.startswith("conv")][:5]:
        assert conv.flops >= 1.9 * flops[f"{conv.path}/Conv2D"]
        assert conv.ops >= 2


def test_a_module_contains_those_within_it() -> None:
    tree = driple.inspect(GRAPH).breakdown.modules
    assert tree is not None
    for node in nodes_of(tree):
        assert sum(one.ops for one in node.children) <= node.ops
        assert sum(one.flops for one in node.children) <= node.flops * (1 + 1e-9) + 1
        seconds = [one.time_s or 0.0 for one in node.children]
        assert seconds == sorted(seconds, reverse=True)


def test_parameters_belong_to_the_module_that_reads_them() -> None:
    """By name where the module is known; a frozen one counts too; phases keep their order."""
    graph = read_graph(GRAPH)
    count = graph.num_nodes
    modules = ("stem", "stem.conv", "body.0.fc", "body.0.norm")
    table = ParameterTable(
        names=("stem.conv.weight", "elsewhere"),
        elements=np.array([10, 7], dtype=np.int64),
        nbytes=np.array([40, 28], dtype=np.int64),
        is_trained=np.array([True, False]),
        readers=np.array([[0, 3], [1, 2]], dtype=np.int32),
    )
    with_modules = replace(
        graph,
        modules=modules,
        module_of=np.resize(np.array([0, 1, 2, -1], dtype=np.int32), count),
        parameters=table,
        phases=np.resize(np.array([Phase.BACKWARD, Phase.FORWARD], dtype=np.int8), count),
    )
    ones = np.ones(count)
    tree = module_tree(with_modules, ones, ones, ones)
    assert tree is not None
    assert (tree.ops, tree.flops, tree.parameters, tree.parameter_bytes) == (count, count, 17, 68)
    by_path = {one.path: one for one in nodes_of(tree)}
    assert by_path["stem.conv"].parameters == 10
    assert by_path["stem"].parameters == 10
    assert by_path["body.0.fc"].parameters == 7  # of the op that reads it
    assert by_path["body.0.fc"].name == "body.0.fc"  # a chain of one child each is one module
    result = driple.inspect(with_modules, RING)
    assert [one.name for one in result.breakdown.phases] == ["forward", "backward", "update"]
    facts = result.parameters
    assert (facts.count, facts.elements, facts.trained_elements) == (2, 17, 10)
    assert sum(one.time_pct or 0.0 for one in result.breakdown.phases) == pytest.approx(100)


def test_a_graph_without_names_that_group_its_ops_says_so() -> None:
    graph = read_graph(GRAPH)
    bare = replace(
        graph, names=tuple(f"op{i}" for i in range(graph.num_nodes)), phases=graph.phases
    )
    result = driple.inspect(bare, RING)
    assert result.breakdown.modules is None
    assert "the graph names no modules" in sentences(result.unknown)


def test_a_pytorch_model_is_read_with_its_kinds(torch_result: driple.api.InspectResult) -> None:
    names = {one.name for one in torch_result.breakdown.kinds}
    assert {"conv", "conv_input_gradient", "conv_filter_gradient", "batch_norm"} <= names
    assert torch_result.parameters.nbytes == pytest.approx(14e6, rel=0.01)
    assert torch_result.parameters.optimizer == "momentum"
    assert any("set them with --batch-size" in one for one in sentences(torch_result.assumptions))
    parts = torch_result.breakdown
    assert [one.name for one in parts.phases] == ["forward", "backward", "update"]
    assert sum(one.time_pct or 0.0 for one in parts.phases) == pytest.approx(100)
    assert parts.modules is not None
    assert parts.modules.parameters == 3_504_872  # of the paper's network, with its classifier
    assert {one.name for one in parts.modules.children} >= {"features", "head"}
    assert torch_result.job.graph.layout == "one_device"


def test_the_frame_has_phases_kinds_and_modules() -> None:
    result = driple.inspect(GRAPH, depth=1)
    frame = result.to_frame()
    assert {"kind", "module"} <= set(frame["part"])
    modules = frame[frame["part"] == "module"]
    assert modules["name"].str.count("/").max() == 0
    assert modules["flops"].iloc[0] == pytest.approx(result.job.cost.total_flops)


def test_the_tables_fit_80_columns_and_state_the_numbers_of_the_json() -> None:
    options = (GRAPH, "--setting", RING, "--depth", "2", "--top", "5")
    shown = command("inspect", *options)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    result = json.loads(command("inspect", *options, "--json").stdout)
    milliseconds = f"{1e3 * result['compute_s']['value']:.3g} ms"
    assert milliseconds in " ".join(shown.stdout.split())
    first = result["kinds"][0]
    (row,) = [line for line in lines if line.startswith(first["name"].replace("_", " ") + "  ")]
    assert f"{first['time_pct']['value']:.1f} %" in row
    (root,) = [line for line in lines if line.startswith("whole model")]
    assert f"{result['modules']['flops'] / 1e9:.3g}" in root
    assert [line for line in lines if "more and own ops" in line]


def test_bad_options_get_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingError):
        driple.inspect(GRAPH, "1xNothing")
    assert "--depth" in refused("inspect", GRAPH, "--depth", "-1")
    assert "none.toml" in refused("inspect", GRAPH, "--catalog", tmp_path / "none.toml")
