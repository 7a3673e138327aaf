"""A raw graph -> OpGraph: one step of one worker.

    RawGraph --inline--> nodes --links, order--> shapes --> step --> places --> traffic --> OpGraph

Entry point: `graph_of`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.datatypes import BYTES_OF
from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps
from driple.graph.optimizers import update_of_remote
from driple.graph.options import ReadOptions
from driple.graph.tf.describe import DataInputs, describe_nodes
from driple.graph.tf.functions import Inlined, inline_functions
from driple.graph.tf.holders import holders_of
from driple.graph.tf.infer import Inferred, infer_shapes
from driple.graph.tf.keras_optimizer import named_update
from driple.graph.tf.links import GraphLinks, edges_of, in_order
from driple.graph.tf.loops import Executions, count_executions
from driple.graph.tf.names import check_names
from driple.graph.tf.places import Places, place_nodes
from driple.graph.tf.raw import RawGraph, RawNode
from driple.graph.tf.roles import find_roles
from driple.graph.tf.sizes import OutputSize, output_size, output_types
from driple.graph.tf.step import TrainStep, find_step
from driple.graph.tf.step_loops import step_loops
from driple.graph.tf.step_ops import PRODUCTS
from driple.graph.tf.towers import samples_of_part
from driple.graph.tf.traffic import traffic_of
from driple.graph.tf.unknown_loops import loops_in_step, loops_remark
from driple.remarks import Remark, remark
from driple.units import counted

__all__ = ["graph_of"]

_MOST_BYTES = 2**62
_RESOURCE = 20  # DT_RESOURCE, the handle of a variable
_DEFAULT_BYTES = 4
_FEW = 3  # inputs that a note names
_HANDLE_READERS = ("ReadVariableOp", "Resource", "Assign")


def graph_of(raw: RawGraph, notes: tuple[Remark, ...], options: ReadOptions) -> OpGraph:
    """The graph of one step of one worker.

    Args:
        raw: the graph as it stands in the file.
        notes: what the reader of the file remarked.
        options: what the user added.

    Raises:
        GraphError: corrupt, without a worker's ops, or contradicting the options.
    """
    check_names(raw)
    inlined = inline_functions(raw)
    nodes = inlined.nodes
    _check_names(nodes)
    edges, is_control, inputs, dangling = edges_of(nodes)
    order = in_order(nodes, edges)
    _mark_captured_variables(nodes, inputs)
    links = GraphLinks.of(len(nodes), edges, is_control)
    step = find_step(
        nodes,
        inputs,
        links,
        order,
        target=options.target,
        named=raw.train_ops,
        signatures=inlined.signatures,
    )
    holder = holders_of(nodes, inputs, order)
    loops = step_loops(nodes, inputs, edges, order, runs=step.runs, holder=holder)
    inferred = infer_shapes(nodes, inputs, order, options, stacked=loops.stacked)
    for node, shapes in zip(nodes, inferred.shapes, strict=True):
        node.shapes = shapes
    places = place_nodes(nodes, inputs, links, order, step.runs)
    executions = count_executions(
        nodes,
        inputs,
        edges,
        order,
        values=inferred.values,
        loop_turns=options.loop_turns,
        step_loops=loops.loops,
    )
    kept = np.flatnonzero(places.kept)
    position = np.full(len(nodes), -1, dtype=np.int32)
    position[kept] = np.arange(len(kept), dtype=np.int32)
    inside = places.kept[edges].all(axis=1) if len(edges) else np.zeros(0, dtype=np.bool_)
    sizes = [
        output_size(node) if runs else None for node, runs in zip(nodes, step.runs, strict=True)
    ]
    kept_sizes = [size for i in kept.tolist() if (size := sizes[i]) is not None]
    num_bytes = np.array([size.tensor_bytes for size in kept_sizes], dtype=np.int64)
    if num_bytes.sum(dtype=np.float64) > _MOST_BYTES:
        raise GraphError("tensors of the graph add up to over 2^62 bytes; the file is corrupt")
    signatures, signature_of = describe_nodes(nodes, inputs, order, kept.tolist())
    remote = _remote(nodes, sizes, step.runs & ~places.kept)
    traffic = traffic_of(
        inputs,
        step.runs,
        places,
        step.handed_on,
        _bytes_of_output(nodes, inputs, executions),
    )
    state_bytes = _state_bytes(nodes, sizes, places)
    roles = find_roles(nodes, inputs, order, runs=step.runs, places=places, sizes=sizes)
    return OpGraph(
        names=tuple(nodes[i].name for i in kept),
        op_types=tuple(nodes[i].op for i in kept),
        devices=tuple(nodes[i].device for i in kept),
        edges=position[edges[inside]].reshape(-1, 2),
        is_control=is_control[inside],
        tensor_elements=np.array([size.elements for size in kept_sizes], dtype=np.int64),
        tensor_bytes=num_bytes,
        remote=remote,
        traffic=traffic,
        report=_report(
            raw,
            inlined,
            step,
            places,
            sizes=kept_sizes,
            is_open=_open_nodes(nodes, inferred)[kept],
            unknown_loops=loops_in_step(nodes, step.runs, executions.unknown),
            loop_turns=options.loop_turns,
            depends_on_data=int(inferred.data_dependent[kept].sum()),
            sources=inferred.sources,
            open_inputs=inferred.open_inputs,
            unsized=_variables_without_shape(nodes, step.runs),
            names=[nodes[i].name for i in kept.tolist()],
            dangling=dangling,
            executions=executions,
            state_bytes=state_bytes,
            samples=None
            if places.num_parts == 1
            else samples_of_part(nodes, inputs, order, places.kept),
            batch_size=_batch_of(inferred, step.runs),
            notes=(*notes, *inferred.notes),
        ),
        signatures=signatures,
        signature_of=signature_of,
        executions=executions.count[kept],
        is_training=step.is_training,
        layout=places.layout,
        parameters=roles.parameters,
        update=named_update(
            update_of_remote(remote, traffic, state_bytes),
            (node.name for node in nodes if node.op == "VarHandleOp"),
            roles.parameters,
        ),
        phases=roles.phases,
    )


def _check_names(nodes: Sequence[RawNode]) -> None:
    if not nodes:
        raise GraphError("graph has no nodes; a GraphDef of a training step was expected")
    nameless = sum(not node.name or not node.op for node in nodes)
    if nameless:
        raise GraphError(
            f"{nameless} of {counted(len(nodes), 'node')} without a name or an op; no GraphDef, or "
            "a corrupt one: write the graph again (tf.io.write_graph)"
        )


def _mark_captured_variables(nodes: Sequence[RawNode], inputs: DataInputs) -> None:
    """Make variables of the placeholders that stand for their handles in a function's graph."""
    for i, node in enumerate(nodes):
        for source, _ in inputs[i][:1]:
            given = nodes[source]
            if (
                given.op in {"Placeholder", "_Arg"}
                and given.types.get("dtype", given.types.get("T", (0,)))[0] == _RESOURCE
                and node.op.startswith(_HANDLE_READERS)
            ):
                given.op = "VarHandleOp"
                # `shape` is that of the handle, a scalar, not of the variable.
                shapes = given.shape_attributes
                given.shape_attributes = {k: shapes[k] for k in shapes if k == "_handle_shapes"}


def _open_nodes(nodes: Sequence[RawNode], inferred: Inferred) -> npt.NDArray[np.bool_]:
    """Nodes whose sizes are open; those that data decide only where a product is among them."""
    depends = inferred.data_dependent
    if any(PRODUCTS.fullmatch(nodes[i].op) for i in np.flatnonzero(depends).tolist()):
        return inferred.unknown
    return inferred.unknown & ~depends


def _variables_without_shape(nodes: Sequence[RawNode], runs: npt.NDArray[np.bool_]) -> list[str]:
    """Names of the variables of a step that nothing gives a shape: handles without attributes."""
    handles = {
        node.name: node.shape_attributes.get("shape", (None,))[0]
        for node, is_run in zip(nodes, runs.tolist(), strict=True)
        if is_run and node.op == "VarHandleOp"
    }
    read = {
        node.inputs[0].split(":")[0]: node.shapes
        for node in nodes
        if node.op == "ReadVariableOp" and node.inputs
    }
    return [
        name
        for name, shape in handles.items()
        if shape is None and name in read and not any(s is not None for s in read[name] or ())
    ]


def _bytes_of_output(
    nodes: Sequence[RawNode], inputs: DataInputs, executions: Executions
) -> Callable[[int, int, int | None], int]:
    """Bytes of one output of a node in a step; handles and control signals have none."""

    def nbytes(source: int, slot: int, reader: int | None) -> int:
        node = nodes[source]
        shapes, types = node.shapes or (), output_types(node)
        kind = types[slot] if slot < len(types) else 0
        if kind == _RESOURCE:
            return 0
        shape = shapes[slot] if slot < len(shapes) else None
        if shape is None and reader is not None:
            shape = _shape_of_updated(nodes, inputs, reader)
        if shape is None:
            return 0
        count = 1
        for size in shape:
            count *= 1 if size == -1 else size
        turns = 1 if reader is None else int(executions.count[[source, reader]].min())
        return min(count * BYTES_OF.get(kind, _DEFAULT_BYTES) * turns, _MOST_BYTES)

    return nbytes


def _shape_of_updated(
    nodes: Sequence[RawNode], inputs: DataInputs, reader: int
) -> tuple[int, ...] | None:
    """Shape of the variable that a dense update changes: its gradient has the same."""
    if not nodes[reader].op.startswith(("Apply", "ResourceApply")) or not inputs[reader]:
        return None
    shapes = nodes[inputs[reader][0][0]].shape_attributes.get("shape", (None,))
    return shapes[0]


def _state_bytes(
    nodes: Sequence[RawNode], sizes: Sequence[OutputSize | None], places: Places
) -> int:
    """Bytes of the slot variables of updates that are written as arithmetic, of what reads them."""
    bytes_of: dict[int, int] = {}
    if places.slots.variables.any():
        for i, variable in enumerate(places.holder):
            size = sizes[i]
            if variable >= 0 and places.slots.variables[variable] and size is not None:
                is_handle = nodes[i].op == "VarHandleOp"
                bytes_of[variable] = max(
                    bytes_of.get(variable, 0), 0 if is_handle else size.tensor_bytes
                )
    return min(sum(bytes_of.values()), _MOST_BYTES)


def _remote(
    nodes: Sequence[RawNode],
    sizes: Sequence[OutputSize | None],
    elsewhere: npt.NDArray[np.bool_],
) -> tuple[RemoteOps, ...]:
    totals: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for i in np.flatnonzero(elsewhere).tolist():
        total, size = totals[nodes[i].op], sizes[i]
        total[0] += 1
        total[1] = min(total[1] + (size.tensor_bytes if size else 0), _MOST_BYTES)
    return tuple(
        RemoteOps.of_op_type(op, num_nodes=count, tensor_bytes=size)
        for op, (count, size) in sorted(totals.items())
    )


def _few(names: Sequence[str]) -> tuple[str, ...]:
    """The first few of some nodes."""
    return tuple(name[:60] for name in names[:_FEW])


def _batch_of(inferred: Inferred, runs: npt.NDArray[np.bool_]) -> int | None:
    """The first size that all inputs of the step have; None if it is open, or they differ."""
    sizes = frozenset().union(*(known for i, known in inferred.batches.items() if runs[i]))
    if len(sizes) != 1 or sizes <= {-1}:
        return None
    (size,) = sizes
    return size


def _report(
    raw: RawGraph,
    inlined: Inlined,
    step: TrainStep,
    places: Places,
    *,
    sizes: Sequence[OutputSize],
    is_open: npt.NDArray[np.bool_],
    unknown_loops: tuple[str, ...],
    loop_turns: int | None,
    depends_on_data: int,
    sources: Sequence[str],
    open_inputs: Sequence[str],
    unsized: Sequence[str],
    names: Sequence[str],
    dangling: int,
    executions: Executions,
    state_bytes: int,
    samples: tuple[int, int] | None,
    batch_size: int | None,
    notes: tuple[Remark, ...],
) -> ReadReport:
    """Count what could not be taken at face value, and remark on it."""
    shapeless = [name for name, size in zip(names, sizes, strict=True) if not size.has_shape]
    untyped = [name for name, size in zip(names, sizes, strict=True) if not size.has_type]
    num_open = int(is_open.sum())
    said: list[Remark] = []
    if num_open:
        said.append(
            remark(
                "unknown_sizes",
                num_unknown=num_open,
                num_ops=len(sizes),
                source="graph",
                names=_few(sources),
                num_names=len(sources),
                open_inputs=tuple(open_inputs[:_FEW]),
                num_open_inputs=len(open_inputs),
                has_open_batch=any("=?" in form for form in open_inputs),
                unsized=unsized[0][:60] if unsized else "",
            )
        )
    if unknown_loops and loop_turns is None:
        said.append(loops_remark(unknown_loops, None))
    if depends_on_data:
        said.append(
            remark("sizes_of_data", num_ops=depends_on_data, num_all=len(sizes), op_type="Where")
        )
    if unsized:
        said.append(remark("variables_without_shape", num_names=len(unsized), names=_few(unsized)))
    said += [*notes, *step.notes, *places.notes]
    if samples is not None:
        said.append(remark("samples_of_part", num_samples=samples[0], num_all=samples[1]))
    if len(shapeless) == len(sizes):
        said.append(remark("no_shapes"))
    elif shapeless:
        said.append(
            remark(
                "nodes_without_shape",
                num_ops=len(sizes),
                num_names=len(shapeless),
                names=_few(shapeless),
            )
        )
    if untyped:
        said.append(remark("nodes_without_type", num_names=len(untyped), names=_few(untyped)))
    if dangling:
        said.append(remark("dangling_inputs", num_inputs=dangling))
    said += executions.notes
    if unknown_loops and loop_turns is not None:
        said.append(loops_remark(unknown_loops, loop_turns))
    if inlined.unresolved:
        said.append(remark("unresolved_functions", functions=tuple(inlined.unresolved)))
    return ReadReport(
        nodes_in_file=len(raw.nodes),
        nodes_inlined=inlined.num_inlined,
        nodes_without_shape=len(shapeless),
        unknown_dimensions=num_open,
        nodes_without_device=places.without_device,
        dangling_inputs=dangling,
        loops_of_unknown_length=len(executions.unknown),
        unknown_turns=unknown_loops if loop_turns is None else (),
        unresolved_functions=inlined.unresolved,
        unknown_share=num_open / len(sizes) if sizes else 0.0,
        train_ops=step.train_ops,
        target=step.target,
        left_out=step.left_out,
        state_bytes=state_bytes,
        samples_share=1.0 if samples is None else samples[0] / samples[1],
        batch_size=batch_size,
        notes=tuple(said),
    )
