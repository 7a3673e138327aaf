"""Examples and data sets check themselves; hashes see the content and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.dataset import Dataset, fingerprint, graph_hash, merge_examples
from driple.errors import DatasetError
from driple.trace.provenance import Provenance
from driple.trace.targets import Targets
from tests.dataset.examples import SETTING, chain_graph, example, synthetic_dataset


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -0.001])
def test_a_bad_label_is_named_with_its_workload(bad: float) -> None:
    """NaN, infinite and negative labels are refused; the line names workload and target."""
    values = example().targets.values.copy()
    values[2, 1] = bad
    with pytest.raises(
        DatasetError, match=r"'chain8/b1': label net_tx\.burst_duration is "
    ) as caught:
        replace(example(), targets=Targets(values))
    assert "\n" not in str(caught.value)


def test_zero_is_a_label() -> None:
    """A resource that is never idle has an idle duration of 0."""
    values = example().targets.values.copy()
    values[0, 2] = 0.0
    assert replace(example(), targets=Targets(values)).targets.flat[2] == 0.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iteration_time_s": 0.0}, "iteration_time_s is 0.0"),
        ({"iteration_time_s": float("nan")}, "iteration_time_s is nan"),
        ({"label_source": "guessed"}, "label source is 'guessed'"),
        ({"family": ""}, "family is empty"),
        ({"targets": Targets(np.ones((2, 3)))}, "6 targets, must be 12"),
    ],
)
def test_other_nonsense_is_refused(changes: dict[str, object], words: str) -> None:
    """Whatever training could trip over later is refused when the example is made."""
    with pytest.raises(DatasetError, match=words):
        replace(example(), **changes)  # type: ignore[arg-type]


def test_a_dataset_has_each_workload_once_and_one_setting() -> None:
    """Two rows of one name, or of another setting, are refused."""
    with pytest.raises(DatasetError, match="occurs more than once"):
        Dataset(name="d", setting=SETTING, examples=(example(), example()))
    with pytest.raises(DatasetError, match="one data set per setting"):
        Dataset(name="d", setting="V100-P1w2/ho-PCIe", examples=(example(),))
    with pytest.raises(DatasetError, match="no name"):
        Dataset(name="", setting=SETTING, examples=())


def test_merging_replaces_in_place_and_appends() -> None:
    """A workload measured again takes its old row; a new one comes last."""
    dataset = synthetic_dataset(4)
    again = replace(dataset.examples[1], iteration_time_s=9.0)
    merged = merge_examples(dataset, [example("new"), again])
    assert merged.workloads == (*dataset.workloads, "new")
    assert merged.iteration_times_s()[1] == 9.0
    assert merged.about == dataset.about


def test_arrays_of_a_dataset() -> None:
    """Targets and times come out row by row, also of no rows at all."""
    dataset = synthetic_dataset(3)
    assert dataset.targets().shape == (3, 12)
    assert dataset.targets()[2].tolist() == dataset.examples[2].targets.flat.tolist()
    assert replace(dataset, examples=()).targets().shape == (0, 12)


def test_graph_hash_ignores_names_and_sees_content() -> None:
    """Names, devices and report are not content; types, edges, sizes and remote ops are."""
    graph = chain_graph(6, branch=True)
    same = replace(graph, names=tuple("abcdef"), devices=("",) * 6)
    assert graph_hash(same) == graph_hash(graph)
    others = [
        replace(graph, op_types=("Other", *graph.op_types[1:])),
        replace(graph, edges=graph.edges[:, ::-1]),
        replace(graph, is_control=~graph.is_control),
        replace(graph, tensor_bytes=graph.tensor_bytes + 1),
        replace(graph, tensor_elements=graph.tensor_elements + 1),
        replace(graph, remote=()),
        replace(graph, signatures=graph.signatures[::-1]),
        replace(graph, signature_of=graph.signature_of[::-1]),
        replace(graph, executions=graph.executions + 1),
        *(
            replace(graph, traffic=replace(graph.traffic, **{name: values + 1}))
            for name, values in (
                ("received_bytes", graph.traffic.received_bytes),
                ("readers", graph.traffic.readers),
                ("sent_bytes", graph.traffic.sent_bytes),
                ("senders", graph.traffic.senders),
            )
        ),
    ]
    hashes = {graph_hash(other) for other in [graph, *others]}
    assert len(hashes) == 1 + len(others)


def test_graph_hash_ignores_the_layout_of_arrays() -> None:
    """Byte order, integer width and memory order are not content."""
    graph = chain_graph(6)
    other = replace(
        graph,
        edges=np.asfortranarray(graph.edges.astype(">i8")),
        tensor_bytes=graph.tensor_bytes.astype(np.int32),
    )
    assert graph_hash(other) == graph_hash(graph)


def test_fingerprint_sees_labels_and_not_the_order() -> None:
    """The order of rows and the provenance change nothing; a label does."""
    dataset = synthetic_dataset(4)
    turned = replace(dataset, examples=dataset.examples[::-1], about=Provenance())
    assert fingerprint(turned) == fingerprint(dataset)
    changed = merge_examples(dataset, [replace(dataset.examples[0], iteration_time_s=1.0)])
    assert fingerprint(changed) != fingerprint(dataset)
