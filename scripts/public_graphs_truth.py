"""Traffic and FLOPs of a training graph as TensorFlow itself runs it, for the check of the reader.

graph file -> one step of its train op on fake devices (a worker, servers) -> what ran, and what
crossed between devices. Nothing of `driple` is used. TensorFlow prunes, places, partitions and
runs; sizes are those of the run (`RunMetadata`), so that loops count as often as they turn.

Input queues, iterators and Python functions become random inputs. Variables get small random
values. An op that this TensorFlow lacks (such as `HorovodAllreduce`) becomes an identity.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from public_graphs_flops import RanOp, flops_of
from public_graphs_layout import to_channels_last

__all__ = ["Truth", "TruthError", "load_definition", "run_step", "train_ops"]

WORKER = "/device:CPU:0"
_UPDATE = re.compile(r"(Resource)?(Sparse)?(Resource)?Apply[A-Z]\w*|(Resource)?Scatter(Nd)?(Sub|Add|Update)")
_COUNTER = ("AssignAdd", "AssignSub", "AssignAddVariableOp", "AssignSubVariableOp")
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp", "TemporaryVariable")
_INPUTS = re.compile(
    r"IteratorGetNext\w*|Queue\w*Dequeue\w*|PyFunc\w*|EagerPyFunc|.*PlaceholderWithDefault"
    r"|Placeholder(V2)?|ReadFile|ReaderRead\w*|Unstage|StagePeek|LookupTableFind(V2)?"
)
_ATTRS_OF_TYPES = ("component_types", "output_types", "Tout", "dtypes", "dtype", "T")
_LARGEST_DIMENSION = 10_000_000


class TruthError(Exception):
    """A graph cannot be run as it is; says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """One step as it ran.

    Attributes:
        target: train op that was run.
        sent_bytes: from the worker to servers, once per tensor and destination.
        received_bytes: from servers to the worker.
        flops: of all devices.
        worker_flops: of the worker alone.
        by_op: FLOPs by op type.
        parameters: elements of the variables that updates change.
        nodes: nodes that ran.
        uncounted: floating-point op types without a formula, with executions.
        crossing: the largest tensors that cross: (direction, name, bytes).
    """

    target: str
    sent_bytes: int
    received_bytes: int
    flops: float
    worker_flops: float
    by_op: Mapping[str, float]
    parameters: int
    nodes: int
    uncounted: Mapping[str, int]
    crossing: Sequence[tuple[str, str, int]] = field(default_factory=tuple)


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


def _base(name: str) -> str:
    return name.lstrip("^").split(":")[0]


def _ancestors(nodes: Mapping[str, Any], name: str) -> set[str]:
    found, waiting = {name}, [name]
    while waiting:
        for given in map(_base, nodes[waiting.pop()].input):
            if given not in found and given in nodes:
                found.add(given)
                waiting.append(given)
    return found


def is_update(op_type: str) -> bool:
    """Whether an op changes a variable by a gradient."""
    return bool(_UPDATE.fullmatch(op_type))


def train_ops(graph: Any) -> list[str]:
    """Train ops, that with most updates first: no later op runs more updates than they do."""
    nodes = {node.name: node for node in graph.node}
    updates = {node.name for node in graph.node if is_update(node.op)}
    readers: defaultdict[str, list[str]] = defaultdict(list)
    for node in graph.node:
        for given in node.input:
            readers[_base(given)].append(node.name)
    after, waiting = set(updates), list(updates)
    while waiting:
        for reader in readers[waiting.pop()]:
            if reader not in after and not nodes[reader].op.startswith(("Save", "MergeSum", "Ass" "ert")):
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


def _types(node: Any) -> list[int]:
    for name in _ATTRS_OF_TYPES:
        if name in node.attr:
            found = node.attr[name]
            return list(found.list.type) if found.HasField("list") else [found.type]
    raise TruthError(f"input {node.name} ({node.op}) names no type")


def _shapes(node: Any, nodes: Mapping[str, Any]) -> list[Any]:
    for name in ("_output_shapes", "output_shapes", "shapes", "shape"):
        if name in node.attr:
            value = node.attr[name]
            found = list(value.list.shape) if value.HasField("list") else [value.shape]
            # Before version 24 of TensorFlow's graphs, a placeholder without a shape had rank 0.
            is_open = node.op == "Placeholder" and name == "shape" and not found[0].dim
            if found and not is_open and not all(s.unknown_rank for s in found):
                return found
    if "Dequeue" in node.op:
        return _queue_shapes(node, nodes)
    return []


def _queue_shapes(node: Any, nodes: Mapping[str, Any]) -> list[Any]:
    from tensorflow.core.framework import tensor_shape_pb2
    from tensorflow.python.framework import tensor_util

    queue = nodes[_base(node.input[0])]
    found = list(queue.attr["shapes"].list.shape)
    if "Many" not in node.op and "UpTo" not in node.op:
        return found
    count = nodes[_base(node.input[1])]
    size = int(tensor_util.MakeNdarray(count.attr["value"].tensor)) if count.op == "Const" else -1
    batched = []
    for shape in found:
        made = tensor_shape_pb2.TensorShapeProto()
        made.dim.add().size = size
        made.dim.extend(shape.dim)
        batched.append(made)
    return batched


@dataclass
class _Input:
    name: str
    dtype: int
    shape: tuple[int, ...] | None


def _replace_inputs(
    graph: Any, target: str, batch: int | None, given: Mapping[str, Sequence[int]]
) -> tuple[Any, list[_Input]]:
    """The ancestors of a train op; what feeds them from outside becomes placeholders."""
    from tensorflow.core.framework import graph_pb2

    nodes = {node.name: node for node in graph.node}
    made = graph_pb2.GraphDef(versions=graph.versions, library=graph.library)
    inputs: dict[str, _Input] = {}
    done, waiting = set(), [target]
    cut: dict[str, list[int]] = {}
    while waiting:
        name = waiting.pop()
        if name in done or name in cut:
            continue
        node = nodes[name]
        if _INPUTS.fullmatch(node.op) or any(k.split(":")[0] == name for k in given):
            cut[name] = _types(node)
            continue
        done.add(name)
        waiting.extend(_base(n) for n in node.input)
    for name in sorted(done):
        node = made.node.add()
        node.CopyFrom(nodes[name])
        kept: list[str] = []
        for entry in node.input:
            if _base(entry) not in cut:
                kept.append(entry)
                continue
            if entry.startswith("^"):
                continue
            number = int(entry.split(":")[1]) if ":" in entry else 0
            fed = f"{_base(entry)}_fed{number}"
            if fed not in inputs:
                source = nodes[_base(entry)]
                inputs[fed] = _Input(
                    fed,
                    cut[source.name][number],
                    _bound(source, number, nodes, batch, given),
                )
            kept.append(fed)
        del node.input[:]
        node.input.extend(kept)
    for item in inputs.values():
        node = made.node.add(name=item.name, op="Placeholder")
        node.attr["dtype"].type = item.dtype
        node.attr["shape"].shape.SetInParent()
        for size in item.shape or ():
            node.attr["shape"].shape.dim.add().size = size
    return made, list(inputs.values())


def _bound(
    node: Any, number: int, nodes: Mapping[str, Any], batch: int | None, given: Mapping[str, Any]
) -> tuple[int, ...]:
    for key in (f"{node.name}:{number}", node.name):
        if key in given:
            return tuple(given[key])
    if node.op == "PlaceholderWithDefault" and node.input and nodes[_base(node.input[0])].op == "Const":
        return tuple(d.size for d in nodes[_base(node.input[0])].attr["value"].tensor.tensor_shape.dim)
    shapes = _shapes(node, nodes)
    if number >= len(shapes) or shapes[number].unknown_rank:
        raise TruthError(f"input {node.name}:{number} ({node.op}) has no shape; give one")
    sizes = [d.size for d in shapes[number].dim]
    if sizes and sizes[0] < 0 and batch:
        sizes[0] = batch
    if any(size < 0 for size in sizes):
        raise TruthError(f"input {node.name}:{number} ({node.op}) has shape {sizes}; give one")
    return tuple(sizes)


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
    """What takes a variable by reference or handle runs where the variable is, as TensorFlow does."""
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


def _value(item: _Input, high: Mapping[str, float], rng: np.random.Generator) -> Any:
    import tensorflow as tf

    dtype = tf.dtypes.as_dtype(item.dtype).as_numpy_dtype
    name = item.name.rsplit("_fed", 1)[0]
    largest = high.get(f"{name}:{item.name.rsplit('_fed', 1)[1]}", high.get(name))
    shape = item.shape or ()
    if dtype is object:
        return np.full(shape, b"0", dtype=object)
    if np.issubdtype(dtype, np.integer):
        return np.full(shape, 1 if largest is None else largest).astype(dtype)
    if dtype is np.bool_:
        return np.full(shape, largest is None or bool(largest))
    if largest is not None:
        return np.full(shape, largest).astype(dtype)
    return rng.uniform(0.05, 0.95, shape).astype(dtype)


def run_step(
    graph: Any,
    target: str,
    *,
    batch: int | None = None,
    inputs: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
) -> Truth:
    """Run one step of a train op on a fake cluster.

    Args:
        graph: GraphDef.
        target: name of the train op.
        batch: samples; binds unknown first dimensions of inputs.
        inputs: shapes of inputs, by node name or tensor name.
        values: constant value of an input, by name; else 1 (whole numbers) or random.

    Raises:
        TruthError: an input without a shape, or an op that TensorFlow lacks.
    """
    import tensorflow as tf

    cut, fed = _replace_inputs(graph, target, batch, inputs or {})
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
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    rng = np.random.default_rng(0)
    with v1.Graph().as_default() as built:
        v1.import_graph_def(cut, name="")
        starts = _initial_values(built, rng)
        feed = {f"{item.name}:0": _value(item, values or {}, rng) for item in fed}
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
    return _measure(data, target, _num_parameters(cut, built))


def _num_parameters(graph: Any, built: Any) -> int:
    names = {_base(node.input[0]) for node in graph.node if is_update(node.op)}
    nodes = {node.name: node for node in graph.node}
    sizes = 0
    for name in names:
        node = nodes[name]
        while node.op in ("Identity", "Enter", "RefEnter", "Switch", "RefSwitch"):
            node = nodes[_base(node.input[0])]
        sizes += prod(d.size for d in node.attr["shape"].shape.dim)
    return sizes


def _initial_values(built: Any, rng: np.random.Generator) -> list[tuple[Any, Any, Any]]:
    """An assignment of small random values to each variable, through a placeholder."""
    import tensorflow as tf

    made = []
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
                start = tf.raw_ops.Assign(
                    ref=op.outputs[0], value=holder, validate_shape=False
                ).op
        if dtype.is_floating:
            value = np.abs(rng.normal(0.02, 0.01, shape)) + 1e-3
        else:
            value = np.zeros(shape)
        made.append((start, holder, value.astype(dtype.as_numpy_dtype)))
    return made


def _measure(data: Any, target: str, parameters: int) -> Truth:
    import tensorflow as tf

    outputs: defaultdict[str, list[dict[int, tuple[int, ...]]]] = defaultdict(list)
    for device in data.step_stats.dev_stats:
        for stats in device.node_stats:
            name = stats.node_name.split(" ")[0].split(":")[0] if " " in stats.node_name else stats.node_name
            outputs[name].append(
                {
                    out.slot: tuple(d.size for d in out.tensor_description.shape.dim)
                    for out in stats.output
                }
            )
    sent = received = 0
    flops: Counter[str] = Counter()
    worker_flops, uncounted, nodes = 0.0, Counter[str](), 0
    crossing: list[tuple[str, str, int]] = []
    sources = {
        node.attr["tensor_name"].s: node.input[0]
        for partition in data.partition_graphs
        for node in partition.node
        if node.op in ("_Send", "_HostSend")
    }
    all_nodes = {n.name: n for partition in data.partition_graphs for n in partition.node}
    for partition in data.partition_graphs:
        named = {node.name: node for node in partition.node}

        def shape_of(entry: str, turn: int, named: Mapping[str, Any] = named) -> Any:
            name, _, slot = entry.partition(":")
            node = named.get(name)
            if node is not None and node.op in ("_Recv", "_HostRecv"):
                name, _, slot = sources[node.attr["tensor_name"].s].partition(":")
                node = all_nodes[name]
            runs = outputs.get(name)
            if not runs:
                if node is not None and node.op == "Const":
                    dims = node.attr["value"].tensor.tensor_shape.dim
                    return tuple(d.size for d in dims)
                return None
            return runs[min(turn, len(runs) - 1)].get(int(slot or 0))

        for node in partition.node:
            runs = outputs.get(node.name, [])
            nodes += bool(runs)
            if node.op in ("_Send", "_HostSend"):
                there = node.attr["recv_device"].s.decode()
                here = node.attr["send_device"].s.decode()
                if there == here or node.attr["client_terminated"].b:
                    continue
                size = tf.dtypes.as_dtype(node.attr["T"].type).size
                for turn in range(max(len(runs), 1)):
                    shape = shape_of(node.input[0], turn)
                    amount = prod(shape) * size if shape is not None else 0
                    if here.endswith("CPU:0"):
                        sent += amount
                        crossing.append(("sent", node.input[0], amount))
                    elif there.endswith("CPU:0"):
                        received += amount
                        crossing.append(("received", node.input[0], amount))
                continue
            given = [entry for entry in node.input if not entry.startswith("^")]
            for turn, run in enumerate(runs):
                if not run and node.op not in ("NoOp",) and not is_update(node.op):
                    continue
                op = RanOp(
                    node=node,
                    inputs=[shape_of(entry, turn) for entry in given],
                    outputs=[run.get(i) for i in range(max(run, default=-1) + 1)],
                )
                count, how = flops_of(op)
                flops[node.op] += count
                if node.device.endswith("CPU:0"):
                    worker_flops += count
                if how == "none" and prod(op.outputs[0] or (0,)) > 1000 if op.outputs else False:
                    uncounted[node.op] += 1
    crossing.sort(key=lambda item: -item[2])
    return Truth(
        target=target,
        sent_bytes=sent,
        received_bytes=received,
        flops=sum(flops.values()),
        worker_flops=worker_flops,
        by_op=dict(flops.most_common(12)),
        parameters=parameters,
        nodes=nodes,
        uncounted=dict(uncounted.most_common(12)),
        crossing=tuple(crossing[:12]),
    )
