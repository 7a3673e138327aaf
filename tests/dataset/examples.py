"""Made-up workloads whose labels follow from their graphs, for tests of data sets and training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driple.dataset import Dataset, Example
from driple.features import GroupedGraph
from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps, Traffic
from driple.graph.signature import OpSignature, Tensor
from driple.remarks import Remark
from driple.trace.provenance import Provenance
from driple.trace.targets import Targets

SETTING = "CPU-P1w2/ho-200M"
OP_TYPES = ("Conv2D", "Relu", "MatMul", "BiasAdd")


def chain_graph(num_nodes: int, *, bytes_per_node: int = 4096, branch: bool = False) -> OpGraph:
    """A chain of ops; with `branch`, its first op also feeds its last one, by control."""
    edges = [(i, i + 1) for i in range(num_nodes - 1)] + ([(0, num_nodes - 1)] if branch else [])
    is_control = np.zeros(len(edges), dtype=np.bool_)
    is_control[num_nodes - 1 :] = True
    sizes = bytes_per_node * (1 + np.arange(num_nodes, dtype=np.int64) % 3)
    return OpGraph(
        names=tuple(f"layer_{i // 4}/{OP_TYPES[i % 4]}_{i}" for i in range(num_nodes)),
        op_types=tuple(OP_TYPES[i % 4] for i in range(num_nodes)),
        devices=("/job:worker/task:0",) * num_nodes,
        edges=np.array(edges, dtype=np.int32).reshape(-1, 2),
        is_control=is_control,
        tensor_elements=sizes // 4,
        tensor_bytes=sizes,
        traffic=Traffic(
            received_bytes=np.array([13], dtype=np.int64),
            readers=np.array([[0, 0]], dtype=np.int32),
            sent_bytes=np.array([11 * num_nodes], dtype=np.int64),
            senders=np.array([num_nodes - 1], dtype=np.int32),
        ),
        signatures=tuple(
            OpSignature.of_op_type(name, (Tensor((2, 3), 1),), ()) for name in OP_TYPES
        ),
        signature_of=np.arange(num_nodes, dtype=np.int32) % len(OP_TYPES),
        executions=np.ones(num_nodes, dtype=np.int64),
        remote=(RemoteOps.of_op_type("ApplyAdam", num_nodes=num_nodes // 4, tensor_bytes=1024),),
        report=ReadReport(
            nodes_in_file=num_nodes + 7,
            notes=(Remark.of_text("two notes"), Remark.of_text("ünïcode")),
        ),
    )


def example(
    workload: str = "chain8/b1", *, num_nodes: int = 8, batch_size: int = 1, family: str = "chain"
) -> Example:
    """One workload; its targets are products of powers of node number and batch size."""
    work = num_nodes * batch_size
    rows = [
        [20 + 40 * work / (work + 100), 0.002 * work, 0.01 * num_nodes],
        [5 + 20 * work / (work + 50), 0.001 * work, 0.008 * num_nodes],
        [2.0 * num_nodes, 0.004 * num_nodes, 0.003 * work],
        [1.5 * num_nodes, 0.003 * num_nodes, 0.0035 * work],
    ]
    targets = Targets(np.array(rows))
    graph = chain_graph(num_nodes, bytes_per_node=512 * batch_size, branch=family != "chain")
    return Example(
        workload=workload,
        family=family,
        setting=SETTING,
        graph=graph,
        targets=targets,
        iteration_time_s=targets.iteration_time_s,
        label_source="measured",
        details={"batch_size": batch_size, "sync": True, "optimizer": "sgd", "rate": 0.5},
    )


def synthetic_dataset(num_workloads: int = 12) -> Dataset:
    """Chains and branched chains of different lengths and batch sizes, in two families."""
    examples = []
    for i in range(num_workloads):
        family = ("chain", "branch")[i % 2]
        num_nodes, batch_size = 12 + 5 * i, 2 ** (i % 4)
        name = f"{family}{num_nodes}/b{batch_size}"
        examples.append(example(name, num_nodes=num_nodes, batch_size=batch_size, family=family))
    return Dataset(
        name="synthetic",
        setting=SETTING,
        examples=tuple(examples),
        about=Provenance(licence="none"),
    )


def grouped_dataset(num_workloads: int = 6) -> Dataset:
    """The same workloads, of whose graphs only two groups each are known."""
    data = synthetic_dataset(num_workloads)
    return replace(
        data,
        examples=tuple(
            replace(
                item,
                graph=GroupedGraph(
                    features=np.array([[0.5, 8.0 * i, 3.0], [0.1, 4.0, i]], dtype=np.float32),
                    edges=np.array([[0, 1]], dtype=np.int32),
                ),
            )
            for i, item in enumerate(data.examples, start=1)
        ),
    )


def of_setting(dataset: Dataset, setting: str) -> Dataset:
    """The same workloads with the same labels, as if measured on another setting."""
    examples = tuple(replace(item, setting=setting) for item in dataset.examples)
    return replace(dataset, setting=setting, examples=examples)
