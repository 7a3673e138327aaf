"""Predicting with NumPy: equal to the torch model, without torch, and honest about nonsense."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from driple.errors import CheckpointError, ConfigError, GraphError, PredictionError, upgrade_hint
from driple.features import InputConfig, build_input
from driple.features.features import CONTEXT_NAMES
from driple.graph import READER_VERSION
from driple.graph.opgraph import OpGraph, RemoteOps
from driple.inspector.checkpoint import save_checkpoint
from driple.inspector.config import InspectorConfig
from driple.inspector.intervals import Intervals
from driple.inspector.model import make_batch
from driple.inspector.predict import Predictor, predict
from driple.inspector.scaling import InputScaler, TargetScaler
from driple.inspector.trained_on import Source, TrainedOn
from driple.remarks import Remark
from driple.render.remarks import sentence, sentences
from driple.trace.targets import RESOURCES

from .examples import (
    SETTING,
    checkpoint_of,
    constant_inspector,
    random_input,
    random_inspector,
)

STRUCTURES = [
    InspectorConfig(layer=layer, update=update, readout=readout, hidden=16)
    for layer, update, readout in product(
        ("gcn", "gat", "gin", "mpnn"),
        ("gru", "residual"),
        ("add", "mean", "max", "sort", "set2set"),
    )
] + [InspectorConfig(update="residual", readout="max", hidden=16, members=3)]


def small_graph(op_types: tuple[str, ...] = ("Add", "Conv2D", "Add")) -> OpGraph:
    num_nodes = len(op_types)
    sizes = np.arange(1, num_nodes + 1, dtype=np.int64)
    return OpGraph(
        names=tuple(f"n{i}" for i in range(num_nodes)),
        op_types=op_types,
        devices=("",) * num_nodes,
        edges=np.array([(i, i + 1) for i in range(num_nodes - 1)], dtype=np.int32).reshape(-1, 2),
        is_control=np.zeros(max(0, num_nodes - 1), dtype=np.bool_),
        tensor_elements=sizes,
        tensor_bytes=4 * sizes,
    )


@pytest.mark.parametrize("config", STRUCTURES, ids=lambda c: f"{c.layer}-{c.update}-{c.readout}")
def test_numpy_equals_torch(config: InspectorConfig) -> None:
    """Every structure, random weights, graphs of several sizes: within 1e-5 of the torch model."""
    for seed, num_context, depth in ((0, 0, "m/2"), (1, 7, "log2"), (2, 0, 1)):
        config = replace(config, num_context=num_context, depth=depth)
        model = random_inspector(config, 20, seed)
        inputs = [random_input(10 * seed + n, n, num_context) for n in (1, 2, 13, 20, 20)]
        with torch.no_grad():
            expected = model(make_batch(inputs)).numpy()
        own = Predictor(checkpoint_of(model, 20)).predict_inputs(inputs)
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_numpy_equals_torch_for_preset_paper(scale: float) -> None:
    """M = 100, K = 50, width 64, 100 steps of set2set; also with raw tensor sizes of 10^8."""
    model = random_inspector(InspectorConfig(), 100)
    inputs = [random_input(i, 100) for i in range(3)]
    inputs = [replace(x, features=x.features * np.float32([1, scale, 1])) for x in inputs]
    with torch.no_grad():
        expected = model(make_batch(inputs)).numpy()
    own = Predictor(checkpoint_of(model, 100)).predict_inputs(inputs)
    np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("output", ["leaky_relu", "linear"])
def test_head_equals_torch(output: str) -> None:
    """Seven fully connected layers and both outputs."""
    config = InspectorConfig(hidden=16, mlp_layers=7, output=output, depth=2, dropout=0.5)
    model = random_inspector(config, 5)
    inputs = [random_input(i, 5) for i in range(8)]
    with torch.no_grad():
        expected = model(make_batch(inputs)).numpy()
    own = Predictor(checkpoint_of(model, 5)).predict_inputs(inputs)
    np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-5)


def intervals_of(half_width: float) -> Intervals:
    """As wide for every number, in logarithms, and for graphs at any usual distance."""
    return Intervals(
        level=0.9,
        near=np.full(13, half_width),
        far=None,
        threshold=9.0,
        reach=9.0,
        known=np.zeros((1, 0), dtype=np.float32),
    )


def test_scalers_are_applied() -> None:
    """Inputs are scaled before, targets after: as when both are done by hand."""
    model = random_inspector(InspectorConfig(hidden=8), 6)
    inputs = [random_input(i, 6) for i in range(4)]
    labels = np.random.default_rng(0).lognormal(size=(5, 12))
    scaler, targets = InputScaler.fit(inputs), TargetScaler.fit(labels, "log")
    checkpoint = checkpoint_of(model, 6, target_scaler=targets)
    plain = Predictor(checkpoint_of(model, 6))
    expected = targets.inverse(plain.predict_inputs([scaler.transform(x) for x in inputs]))
    own = Predictor(replace(checkpoint, input_scaler=scaler)).predict_inputs(inputs)
    np.testing.assert_allclose(own, expected)


def test_batch_mates_change_nothing_at_all() -> None:
    """Alone and among others: the same bits."""
    predictor = Predictor(checkpoint_of(random_inspector(InspectorConfig(hidden=8), 9), 9))
    inputs = [random_input(i, 9 - i) for i in range(4)]
    together = predictor.predict_inputs(inputs)
    alone = np.concatenate([predictor.predict_inputs([item]) for item in inputs])
    assert together.tobytes() == alone.tobytes()
    assert predictor.predict_inputs([]).shape == (0, 12)


def test_prediction_is_the_json_of_the_design() -> None:
    """The keys of `driple predict --json`, by name and place."""
    model = constant_inspector(0.5, 9)
    prediction = predict(small_graph(("Add", "Conv2D", "New", "New")), checkpoint_of(model, 9))
    printed = prediction.to_json_dict()
    assert list(printed) == [
        "setting",
        "targets",
        "units",
        "iteration_time_s",
        "interval",
        "warnings",
        "remarks",
        "closed_form_s",
        "graph",
        "checkpoint",
    ]
    assert printed["setting"] == SETTING
    targets = printed["targets"]
    assert isinstance(targets, dict)
    assert tuple(targets) == RESOURCES
    assert set(targets["net_tx"]) == {"burst_amount", "burst_duration", "idle_duration"}
    periods_s = [
        targets[name]["burst_duration"] + targets[name]["idle_duration"]
        for name in ("net_tx", "net_rx")
    ]
    assert printed["iteration_time_s"] == pytest.approx(max(periods_s))
    assert printed["interval"] is None  # the checkpoint was not calibrated
    assert printed["warnings"] == [
        {
            "code": "op_types_never_seen",
            "values": {"num_op_types": 1, "num_ops": 2, "num_all": 4, "op_types": ["New"]},
        }
    ]
    assert printed["graph"] == {
        "nodes": 4,
        "edges": 3,
        "groups": 4,
        "unknown_op_types": {"New": 2},
    }
    assert printed["checkpoint"] == {
        "setting": SETTING,
        "provenance": "measured",
        "trained_on": {"dataset": "test", "num_workloads": 3},
        "metrics": {"nrmse": 0.125},
        "outdated": None,
    }


def test_unknown_ops_are_counted_among_all_ops() -> None:
    """Ops on servers are unknown too, and part of the whole: never 5 of 2."""
    model = constant_inspector(0.5, 9, num_context=len(CONTEXT_NAMES))
    elsewhere = (RemoteOps.of_op_type("ApplyNew", num_nodes=5, tensor_bytes=0),)
    prediction = predict(
        replace(small_graph(("Add", "Conv2D")), remote=elsewhere), checkpoint_of(model, 9)
    )
    assert sentences(prediction.strange) == (
        "1 op type that the inspector has never seen, in 5 of 7 ops: ApplyNew",
    )


def test_impossible_numbers_are_refused() -> None:
    """A model that gives -1 of a largest label of 5 s gives -5 s: no job does, and no clamping."""
    scaler = TargetScaler.fit(np.full((1, 12), 5.0), "max")
    checkpoint = checkpoint_of(constant_inspector(-1, 4), 4, target_scaler=scaler)
    with pytest.raises(PredictionError) as caught:
        predict(small_graph(), checkpoint)
    message = str(caught.value)
    assert "device_util.burst_amount -5 %" in message
    assert "12 more impossible numbers" in message
    assert message.endswith(
        "--set preset=default, or driple predict JOB --method simulator --setting " + SETTING
    )
    graph_input = build_input(small_graph(), checkpoint.op_type_table, checkpoint.input_config)
    assert (Predictor(checkpoint).predict_inputs([graph_input]) == -5.0).all()
    default = replace(checkpoint, preset="default")
    with pytest.raises(PredictionError, match="use driple predict JOB --method simulator"):
        predict(small_graph(), default)


def test_a_step_that_takes_no_time_is_refused() -> None:
    """All zeros: no number is negative, and still there is no answer."""
    with pytest.raises(PredictionError, match=r"it gives iteration time 0 s, where 0 is"):
        predict(small_graph(), checkpoint_of(constant_inspector(0, 4), 4))


def test_another_version_is_named_and_claims_no_share() -> None:
    """What differs, what it means, which command helps; the interval stays, without a share."""
    intervals = intervals_of(0.1)
    checkpoint = replace(checkpoint_of(constant_inspector(0.5, 4), 4), intervals=intervals)
    graph = small_graph(("Add", "Conv2D"))
    assert (predict(graph, checkpoint).outdated, predict(graph, checkpoint).level) == (None, 0.9)
    old = predict(graph, replace(checkpoint, reader_version=1))
    assert old.level is None
    assert old.ends is not None
    assert sentences(old.warnings) == ()
    assert f"trained with reader version 1, this Driple has reader version {READER_VERSION}" in (
        sentence(old.outdated)
    )
    assert sentence(old.outdated).endswith(f"driple train --setting {SETTING} --preset paper")
    moved = TrainedOn(transferred_from=Source(setting="CPU-P1w2/ho-200M"))
    both = replace(checkpoint, reader_version=1, features_version=1, trained_on=moved)
    words = sentence(predict(graph, both).outdated)
    assert "with reader version 1 and features version 1" in words
    assert f"driple transfer --from CPU-P1w2/ho-200M --to {SETTING} --preset paper" in words
    newer = predict(graph, replace(checkpoint, reader_version=READER_VERSION + 1))
    assert sentence(newer.outdated).endswith(f"{upgrade_hint()} gets the newer program")


@pytest.mark.parametrize("setting", ["V100-P1w2/ho-PCIe", "CPU-P1w2/ho-200M"])
def test_an_interval_of_a_share_ends_at_100_percent_of_a_gpu(setting: str) -> None:
    """Neither end passes what a counter shows, and the value stays; on a CPU 100 % is one core."""
    intervals = intervals_of(0.2)
    factor = np.exp(0.2)
    for value in (50.0, 95.0, 120.0, 150.0):
        checkpoint = replace(
            checkpoint_of(constant_inspector(value, 4), 4), intervals=intervals, setting=setting
        )
        prediction = predict(small_graph(), checkpoint)
        assert prediction.ends is not None
        assert prediction.numbers[:12] == pytest.approx(value)
        ends = np.array([value / factor, value * factor])
        bounded = ends if setting.startswith("CPU") else np.minimum(ends, 100.0)
        for share in (0, 3):
            assert prediction.ends[share] == pytest.approx(bounded)
        for other in (1, 2, 4, 5, 6, 9):  # durations, MB/s
            assert prediction.ends[other] == pytest.approx(ends)


def test_a_contradiction_widens_times_to_the_closed_form() -> None:
    """The ends of all times reach as far as the closed form is away; amounts stay."""
    intervals = intervals_of(0.1)
    checkpoint = replace(checkpoint_of(constant_inspector(0.5, 4), 4), intervals=intervals)
    alone = predict(small_graph(), checkpoint)
    assert alone.compared(2.0, None).ends is alone.ends
    assert sentences(alone.compared(2.0, None).warnings) == ()
    prediction = alone.compared(
        2.0, Remark.of_text("the two contradict")
    )  # the prediction is 0.5 s + 0.5 s
    assert (prediction.level, sentences(prediction.warnings)) == (None, ("the two contradict",))
    assert prediction.ends is not None
    assert prediction.ends[12] == pytest.approx([0.5, 2.0])
    assert prediction.ends[1] == pytest.approx([0.25, 1.0])
    assert prediction.ends[0] == pytest.approx([0.5 * np.exp(-0.1), 0.5 * np.exp(0.1)])


def test_strangeness_warns_only_where_nothing_was_compared() -> None:
    """A closed form that agrees makes a remark of it."""
    graph = small_graph(("Add", "New"))
    prediction = predict(graph, checkpoint_of(constant_inspector(0.5, 4), 4))
    assert sentences(prediction.warnings) == sentences(prediction.strange) != ()
    agreeing = prediction.compared(1.0, None)
    assert (sentences(agreeing.warnings), sentences(agreeing.remarks)) == (
        (),
        sentences(prediction.strange),
    )


def test_what_is_no_number_is_an_error() -> None:
    """Weights that overflow give one line, neither NaN nor a warning."""
    model = random_inspector(InspectorConfig(hidden=8, update="residual", layer="gin"), 4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1e30)
    with warnings.catch_warnings(), pytest.raises(CheckpointError, match="no finite number"):
        warnings.simplefilter("error")
        predict(small_graph(), checkpoint_of(model, 4))


def test_odd_inputs_are_refused() -> None:
    """An empty graph, and an input built with a context the checkpoint does not take."""
    checkpoint = checkpoint_of(random_inspector(InspectorConfig(hidden=8), 4), 4)
    with pytest.raises(GraphError, match="no nodes"):
        predict(small_graph(()), checkpoint)
    with pytest.raises(ConfigError, match="input_config"):
        Predictor(checkpoint).predict_inputs([random_input(0, 4, 7)])


@pytest.mark.parametrize("policy", ["uniform", "proportional"])
def test_checkpoint_decides_how_the_graph_is_grouped(policy: str) -> None:
    """Uniform: M of the checkpoint. Proportional: log10 of the node number."""
    model = constant_inspector(0.5, 5)
    checkpoint = checkpoint_of(model, 5, input_config=InputConfig(policy=policy, num_groups=5))
    graph = small_graph(("Add",) * 100)
    assert predict(graph, checkpoint).num_groups == (5 if policy == "uniform" else 2)


def test_predicting_loads_no_training_packages(tmp_path: Path) -> None:
    """A process that loads a checkpoint and predicts has none of the heavy packages in it."""
    path = tmp_path / "c.safetensors"
    save_checkpoint(checkpoint_of(constant_inspector(0.5, 4), 4), path)
    code = f"""
import sys
import numpy as np
from driple.graph.opgraph import OpGraph
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.predict import predict
graph = OpGraph(names=("a", "b"), op_types=("Add", "X"), devices=("", ""),
                edges=np.array([[0, 1]], dtype=np.int32), is_control=np.zeros(1, dtype=bool),
                tensor_elements=np.ones(2, dtype=np.int64), tensor_bytes=np.ones(2, dtype=np.int64))
assert predict(graph, load_checkpoint({str(path)!r})).num_groups == 2
heavy = {{"torch", "tensorflow", "pandas", "sklearn", "networkx", "matplotlib", "pyarrow", "scipy"}}
sys.exit(", ".join(sorted(heavy & set(sys.modules))) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
