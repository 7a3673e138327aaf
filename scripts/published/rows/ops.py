"""sitar-lab/NeuSight: ops of whole language models, and single kernels, as one table.

    neusight_ops, neusight_kernels -> rows of `pytorch_ops.csv.gz`

Ops that launch no kernel (views, sizes, constants) are left out. Of the kernels a sample is kept:
of each op on each device the same number, evenly spread over their times.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from driple.catalog import device_named
from driple.errors import ConfigError
from scripts.published.rows.cells import Raw, number

__all__ = ["OPS_COLUMNS", "kernel_rows", "op_rows"]

OPS_COLUMNS = (
    "table", "device", "library", "model", "task", "size", "batch", "op", "module", "inputs",
    "output", "dtype", "kernel_size", "stride", "padding", "forward_s", "backward_s",
)  # fmt: skip
_NO_KERNEL = frozenset({
    "getitem", "getattr", "view", "permute", "transpose", "dim", "finfo", "size", "expand",
    "unsqueeze", "split", "tensor", "arange", "full", "ones", "reshape", "input_ids", "type",
    "long",
})  # fmt: skip
# Modules of the traced models, by the last part of their names.
_MODULES: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(("query", "key", "value", "dense", "fc1", "fc2", "q_proj", "k_proj", "v_proj",
                     "out_proj", "lm_head", "classifier", "seq_relationship", "decoder", "wi",
                     "wo", "q", "k", "v", "o"), "linear"),
    **dict.fromkeys(("LayerNorm", "ln_1", "ln_2", "ln_f", "final_layer_norm", "layer_norm",
                     "self_attn_layer_norm"), "layer_norm"),
    **dict.fromkeys(("word_embeddings", "position_embeddings", "token_type_embeddings", "wte",
                     "wpe", "embed_tokens", "embed_positions", "shared"), "embedding"),
    **dict.fromkeys(("drop", "attn_dropout", "resid_dropout"), "dropout"),
    "truediv": "div", "activation": "tanh", "transform_act_fn": "gelu",
    "intermediate_act_fn": "gelu", "activation_fn": "relu",
})  # fmt: skip
_BINARY = frozenset({"add", "div", "mul", "pow"})
_MOST_OF_MATRICES, _MOST_OF_OTHERS = 400, 100  # kernels of an op on a device


# The fit knows a chip by one of its cards: kernels do not depend on how much memory it has.
_SAME_CHIP = {"V100-PCIe-32G": "V100", "V100-SXM2-32G": "V100-SXM2"}


def _device(name: str) -> str:
    device = device_named(name.removeprefix("Tesla ").replace("AMD Instinct ", "")).name
    return _SAME_CHIP.get(device, device)


def _word(target: str) -> str:
    """Short name of a traced target, such as `matmul` of `<built-in method matmul of ...>`."""
    match = re.match(r"<(?:built-in )?(?:function|method) (\w+)|<class 'torch\.(\w+)'", target)
    if match:
        return match[1] or match[2]
    return re.sub(r"\.\d+\.", ".", target).rpartition(".")[2]


def _sizes(text: str) -> str:
    """`8x512x1024;1024` of `[[8, 512, 1024], [1024]]`."""
    if not text:
        return ""
    try:
        shapes = ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise ConfigError(f"{text!r} is no list of shapes") from error
    nested = shapes if shapes and isinstance(shapes[0], list | tuple) else [shapes]
    return ";".join("x".join(map(str, shape)) for shape in nested)


def _seconds(text: str) -> str:
    value = number(text)
    return f"{value / 1e3:.5g}" if value else ""


def op_rows(raw: Iterable[Raw]) -> Iterator[tuple[str, ...]]:
    """Ops of whole models: times are of the first layer's ops, and of what is outside layers."""
    for row in raw:
        word = _word(row["target"])
        op = _MODULES.get(word, word)
        if op in _NO_KERNEL or not row["dtype"]:
            continue
        yield (
            "model", _device(row["gpu"]), "torch2.1", row["model"],
            "train" if row["kind"] == "train" else "forward", row["seq"], row["batch"], op,
            word if word != op else "", _sizes(row["input_shapes"]), _sizes(row["output_shape"]),
            row["dtype"].removeprefix("torch."), "", "", "",
            _seconds(row["fw_ms"]), _seconds(row["bw_ms"]),
        )  # fmt: skip


def kernel_rows(raw: Iterable[Raw]) -> Iterator[tuple[str, ...]]:
    """A sample of the single kernels, in single precision, forward."""
    groups: dict[tuple[str, str], list[Raw]] = defaultdict(list)
    for row in raw:
        groups[row["gpu"], row["op"]].append(row)
    for (gpu, op), rows in groups.items():
        most = _MOST_OF_MATRICES if op in ("bmm", "linear", "conv") else _MOST_OF_OTHERS
        for row in _spread(sorted(rows, key=lambda item: float(item["latency_ms"])), most):
            yield (
                "kernel", _device(gpu), f"torch{row['torch'][:3]}" if row["torch"] else "",
                "", "forward", "", "", op, "", _inputs(row), "", "float32",
                row["kernel_size"], row["stride"], row["padding"],
                _seconds(row["latency_ms"]), "",
            )  # fmt: skip


def _spread(rows: Sequence[Raw], most: int) -> Iterator[Raw]:
    count = min(most, len(rows))
    return (rows[index * (len(rows) - 1) // max(1, count - 1)] for index in range(count))


def _inputs(row: Raw) -> str:
    batch, rows, columns, inner = row["b"], row["m"], row["n"], row["k"]
    if row["op"] == "bmm":
        return f"{batch}x{rows}x{inner};{batch}x{inner}x{columns}"
    if row["op"] == "linear":
        return f"{batch}x{rows}x{inner};{columns}x{inner}"
    if row["op"] == "conv":
        side = row["input_size"]
        kernel = row["kernel_size"]
        image = f"{batch}x{row['input_channel']}x{side}x{side}"
        return f"{image};{row['output_channel']}x{row['input_channel']}x{kernel}x{kernel}"
    shape = f"{batch}x{row['h']}"
    return f"{shape};{shape}" if row["op"] in _BINARY else shape
