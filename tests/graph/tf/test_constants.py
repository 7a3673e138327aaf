"""Values of constants against TensorFlow's own reading of the same TensorProto."""

import numpy as np
import pytest

from driple.graph.tf.constants import constant_of
from driple.graph.tf.graphdef import raw_from_bytes
from driple.graph.tf.pbtxt import raw_from_text

TYPES = ("float32", "float64", "float16", "int32", "int64", "int8", "uint8", "uint16", "bool")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)])
def test_constants_have_tensorflows_values(dtype: str, shape: tuple[int, ...]) -> None:
    """Of every type, zeros and repeated values among them, in text and binary."""
    tf = pytest.importorskip("tensorflow")
    from google.protobuf import text_format

    for fill in (0, 1, None):
        values = np.full(shape, fill or 0) if fill is not None else np.arange(np.prod(shape))
        array = values.reshape(shape).astype(dtype)
        graph = tf.compat.v1.GraphDef()
        node = graph.node.add(name="c", op="Const")
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
        node.attr["dtype"].type = tf.as_dtype(dtype).as_datatype_enum
        text = raw_from_text(text_format.MessageToString(graph)).nodes[0].constant
        binary = raw_from_bytes(graph.SerializeToString())[0].nodes[0].constant
        assert text == binary
        assert binary is not None
        assert binary.shape == shape
        if dtype == "float16" and array.size < 2:
            continue  # in a field of its own, which is not read
        assert binary.values == tuple(array.ravel().tolist())


def test_values_are_kept_of_small_constants_only() -> None:
    """What is large, of unknown rank, cut off, or no number has a shape and no values."""
    assert constant_of(3, (4096,), [7], b"").values is None
    assert constant_of(3, None, [7], b"").values is None
    assert constant_of(3, (2,), [], b"\1\0\0\0").values is None
    assert constant_of(7, (1,), [], b"").values is None
    assert constant_of(3, (1,), [], b"", is_long=True).values is None
    assert constant_of(3, (3,), [5, 6], b"").values == (5, 6, 6)
