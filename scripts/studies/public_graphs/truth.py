"""Traffic and FLOPs of a training graph as TensorFlow itself runs it, for the check of the reader.

graph file -> one step of its train op on fake devices (a worker, servers) -> what ran, and what
crossed between devices. Nothing of `driple` is used. TensorFlow prunes, places, partitions and
runs; sizes are those of the run (`RunMetadata`), so that loops count as often as they turn.

Input queues, iterators and Python functions become random inputs. Variables get small random
values. An op that this TensorFlow lacks (such as `HorovodAllreduce`) becomes an identity.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from scripts.studies.public_graphs.flops import is_update
from scripts.studies.public_graphs.inputs import TruthError, base_name, replace_inputs, value_of
from scripts.studies.public_graphs.layout import to_channels_last
from scripts.studies.public_graphs.measure import Truth, measure

__all__ = ["Truth", "TruthError", "load_definition", "run_step", "train_ops"]

WORKER = "/device:CPU:0"
_COUNTER = ("AssignAdd", "AssignSub", "AssignAddVariableOp", "AssignSubVariableOp")
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp", "TemporaryVariable")


def load_definition(path: Path) -> tuple[Any, list[str]]:
    """The GraphDef of a file, and the train ops that its collections name."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError
    from tensorflow.core.framework import graph_pb2
    from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

    content = path.read_bytes()
    if path.suffix == ".pbtxt":
        graph = graph_pb2.GraphDef()
        text_format.Parse(content.decode(), graph, allow_unknown_field=True)
        return graph, []
    if path.suffix == ".meta":
        meta = meta_graph_pb2.MetaGraphDef()
        meta.ParseFromString(content)
        names = meta.collection_def["train_op"].node_list.value
        return meta.graph_def, [name.split(":")[0] for name in names]
    model = saved_model_pb2.SavedModel()
    try:
        model.ParseFromString(content)
    except DecodeError:
        model.Clear()
    if model.meta_graphs:
        return model.meta_graphs[0].graph_def, []
    graph = graph_pb2.GraphDef()
    graph.ParseFromString(content)
    return graph, []


def _ancestors(nodes: Mapping[str, Any], name: str) -> set[str]:
    ancestors, waiting = {name}, [name]
    while waiting:
        for given in map(base_name, nodes[waiting.pop()].input):
            if given not in ancestors and given in nodes:
                ancestors.add(given)
                waiting.append(given)
    return ancestors


def train_ops(graph: Any) -> list[str]:
    """Train ops, that with most updates first: no later op runs more updates than they do."""
    nodes = {node.name: node for node in graph.node}
    updates = {node.name for node in graph.node if is_update(node.op)}
    readers: defaultdict[str, list[str]] = defaultdict(list)
    for node in graph.node:
        for given in node.input:
            readers[base_name(given)].append(node.name)
    after, waiting = set(updates), list(updates)
    while waiting:
        for reader in readers[waiting.pop()]:
            if reader not in after and not nodes[reader].op.startswith(
                ("Save", "MergeSum", "Assert")
            ):
                after.add(reader)
                waiting.append(reader)
    holds: dict[frozenset[str], str] = {}
    sizes: dict[str, int] = {}
    for name in sorted(after):
        if nodes[name].op not in ("NoOp", "Identity", *_COUNTER) and name not in updates:
            continue
        all_before = _ancestors(nodes, name)
        held = frozenset(all_before & updates)
        sizes[name] = len(all_before)
        if held not in holds or sizes[holds[held]] < sizes[name]:
            holds[held] = name
    sets = [held for held in holds if not any(held < other for other in holds)]
    return [holds[s] for s in sorted(sets, key=lambda s: (-len(s), -sizes[holds[s]]))]


def _on_device(name: str, servers: dict[str, str]) -> str:
    """The fake device of a device name: each server its own, all of the worker's are one."""
    task = re.search(r"/job:ps(?:.*/task:(\d+))?", name)
    if task is None:
        return WORKER if name else ""
    return servers.setdefault(task.group(1) or "0", f"/device:CPU:{len(servers) + 1}")


def _place(graph: Any) -> int:
    """Give every node a fake device; variables of a graph without servers are on one server.

    Returns:
        Number of servers.
    """
    servers: dict[str, str] = {}
    has_servers = any("/job:ps" in node.device for node in graph.node)
    for node in graph.node:
        if has_servers:
            node.device = _on_device(node.device, servers)
        elif node.op in _VARIABLES:
            node.device = "/device:CPU:1"
        else:
            node.device = "" if "_class" in node.attr else WORKER
    if not has_servers:
        _place_updates(graph)
    return max(len(servers), 1)


def _place_updates(graph: Any) -> None:
    """Ops that take a variable by reference or handle run where the variable is."""
    from tensorflow.python.framework import op_def_registry

    for node in graph.node:
        definition = op_def_registry.get(node.op)
        if definition is None:
            continue
        takes = any(arg.is_ref or arg.type == 20 for arg in definition.input_arg)
        if takes and (is_update(node.op) or "Assign" in node.op or "ReadVariable" in node.op):
            node.device = ""


def _repair(graph: Any) -> None:
    """Attributes and op types that this TensorFlow does not take."""
    from tensorflow.python.framework import op_def_registry

    names = {node.name for node in graph.node}
    for node in graph.node:
        if re.search("[Aa]ll_?[Rr]educe", node.op) and op_def_registry.get(node.op) is None:
            dtype = node.attr["T"].type
            node.op = "Identity"
            kept = list(node.input[:1])
            node.ClearField("attr")
            del node.input[:]
            node.input.extend(kept)
            node.attr["T"].type = dtype
        definition = op_def_registry.get(node.op)
        if definition is None:
            if node.op in {f.signature.name for f in graph.library.function}:
                continue
            raise TruthError(f"node {node.name}: op {node.op} is not in this TensorFlow")
        known = {attr.name for attr in definition.attr}
        for name in list(node.attr):
            if not name.startswith("_") and name not in known:
                del node.attr[name]
        for name in ("_output_shapes", "_XlaScope", "_XlaCompile", "_tpu_replicate"):
            if name in node.attr:
                del node.attr[name]
        if "_class" in node.attr:
            classes = node.attr["_class"].list.s
            held = [c for c in classes if c.decode().removeprefix("loc:@") in names]
            if len(held) != len(classes):
                del node.attr["_class"]
                if held:
                    node.attr["_class"].list.s.extend(held)


def run_step(
    graph: Any,
    target: str,
    *,
    batch: int | None = None,
    inputs: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float | Sequence[float]] | None = None,
) -> Truth:
    """Run one step of a train op on a fake cluster.

    Args:
        graph: GraphDef.
        target: name of the train op.
        batch: samples; binds unknown first dimensions of inputs.
        inputs: shapes of inputs, by node name or tensor name.
        values: values of an input, by name, repeated to its shape; else ones or random.


    Raises:
        TruthError: an input without a shape, or an op that TensorFlow lacks.
    """
    import tensorflow as tf

    cut, fed = replace_inputs(graph, target, batch, inputs or {})
    _repair(cut)
    to_channels_last(cut)
    num_servers = _place(cut)
    v1 = tf.compat.v1
    options = v1.ConfigProto(
        device_count={"CPU": num_servers + 1},
        allow_soft_placement=True,
        intra_op_parallelism_threads=1,
        inter_op_parallelism_threads=1,
    )
    options.graph_options.optimizer_options.opt_level = -1
    # Drop what nobody reads, as a default session does, but keep op types: no fusion, no folding.
    options.graph_options.rewrite_options.optimizers.extend(["pruning", "dependency"])
    rng = np.random.default_rng(0)
    with v1.Graph().as_default() as built:
        v1.import_graph_def(cut, name="")
        starts = _initial_values(built, rng)
        feed = {f"{item.name}:0": value_of(item, values or {}, rng) for item in fed}
        with v1.Session(config=options) as session:
            for start, holder, value in starts:
                session.run(start, {holder: value})
            data = v1.RunMetadata()
            session.run(
                built.get_operation_by_name(target),
                feed,
                options=v1.RunOptions(
                    trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True
                ),
                run_metadata=data,
            )
    return measure(data, target, _num_parameters(cut, built))


def _num_parameters(graph: Any, built: Any) -> int:
    names = {base_name(node.input[0]) for node in graph.node if is_update(node.op)}
    nodes = {node.name: node for node in graph.node}
    sizes = 0
    for name in names:
        node = nodes[name]
        while node.op in ("Identity", "Enter", "RefEnter", "Switch", "RefSwitch"):
            node = nodes[base_name(node.input[0])]
        sizes += prod(d.size for d in node.attr["shape"].shape.dim)
    return sizes


def _initial_values(built: Any, rng: np.random.Generator) -> list[tuple[Any, Any, Any]]:
    """An assignment of small random values to each variable, through a placeholder."""
    import tensorflow as tf

    assignments = []
    for op in built.get_operations():
        if op.type not in _VARIABLES:
            continue
        shape = [d.size for d in op.node_def.attr["shape"].shape.dim]
        dtype = tf.dtypes.as_dtype(op.node_def.attr["dtype"].type)
        with tf.compat.v1.device(op.device or "/device:CPU:0"):
            holder = tf.compat.v1.placeholder(dtype, shape)
            if op.type == "VarHandleOp":
                start = tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=holder)
            else:
                start = tf.raw_ops.Assign(ref=op.outputs[0], value=holder, validate_shape=False).op
        if dtype.is_floating:
            value = np.abs(rng.normal(0.02, 0.01, shape)) + 1e-3
        else:
            value = np.zeros(shape)
        assignments.append((start, holder, value.astype(dtype.as_numpy_dtype)))
    return assignments
