"""Names and positions in the tables of costs against TensorFlow's own op definitions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from driple.graph.cost.complete import _RULES
from driple.graph.cost.formulas import _FLOPS, has_formula
from driple.graph.cost.moves import _FREE, MOVES
from driple.graph.cost.updates import UPDATES
from driple.graph.opkind import KINDS
from driple.graph.tf.op_kinds import _TABLE, kind_of_op_type
from tests.conftest import RunTensorFlow

DEFINITIONS = """
import json
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
ops = op_def_pb2.OpList()
ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
print(json.dumps({op.name: [arg.name for arg in op.input_arg] for op in ops.op}))
"""


@pytest.fixture(scope="module")
def inputs_of(run_tensorflow: RunTensorFlow) -> Any:
    return run_tensorflow(DEFINITIONS)


# Ops of Horovod; of updates all names are formed, and TensorFlow has most.
ELSEWHERE = re.compile(r"Horovod\w+|(Resource)?(Sparse)?Apply\w+")


def test_tables_hold_no_op_that_tensorflow_lacks(inputs_of: dict[str, list[str]]) -> None:
    named = {op_type for op_types in _TABLE.values() for op_type in op_types}
    missing = named - set(inputs_of)
    assert not {name for name in missing if not ELSEWHERE.fullmatch(name)}


def test_tables_hold_kinds_of_the_vocabulary_and_leave_few_out() -> None:
    """Those without a formula are left out, and what only servers do."""
    named = {*_FLOPS, *MOVES, *_FREE, *UPDATES}
    assert named <= KINDS
    assert set(_RULES) <= KINDS
    left = {kind for kind in KINDS - named if not kind.startswith("other")}
    servers = {"gradient_accumulator", "accumulate_gradient", "take_gradient"}
    assert left == servers | {"python_call", "update_other"}


def test_an_op_is_in_one_table_only() -> None:
    """Arithmetic, move or free."""
    tables = (set(_FLOPS), set(MOVES), set(_FREE), set(UPDATES))
    assert sum(map(len, tables)) == len(set.union(*tables))


def test_every_update_of_an_optimizer_has_its_gradient_where_tensorflow_has_it(
    inputs_of: dict[str, list[str]],
) -> None:
    updates = {
        name: inputs
        for name, inputs in inputs_of.items()
        if name.removeprefix("Resource").removeprefix("Sparse").startswith("Apply")
    }
    assert len(updates) > 50
    for name, inputs in updates.items():
        update = UPDATES[kind_of_op_type(name)]
        assert inputs[update.gradient] in {"grad", "delta"}, name
        scalars = {"lr", "alpha", "beta1_power", "grad", "rho"}
        first = next(i for i, one in enumerate(inputs) if one in scalars)
        assert update.num_variables == first, name


def test_gradients_of_known_ops_are_known() -> None:
    """Training runs both."""
    missing = [
        f"{name}{end}"
        for name in (
            "BlockLSTM",
            "LSTMBlockCell",
            "GRUBlockCell",
            "MaxPool",
            "AvgPool",
            "MaxPool3D",
        )
        for end in ("", "Grad")
        if not has_formula(kind_of_op_type(f"{name}{end}"))
    ]
    assert not missing
