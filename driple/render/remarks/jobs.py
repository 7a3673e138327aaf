"""Sentences on what was assumed about a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

__all__ = ["SENTENCES"]

_OPTIONS = {
    "batch_size": ("{} samples per device", "--batch-size"),
    "seq_len": ("{} tokens per sample", "--seq-len"),
    "input_shape": ("input {}", "--input"),
    "precision": ("precision {}", "--precision"),
    "optimizer": ("optimizer {}", "--optimizer"),
}


def _assumed(**values: str | int | None) -> str:
    """All values that were assumed, and the options that set them."""
    assumed = [name for name in _OPTIONS if values.get(name) is not None]
    words = ", ".join(_OPTIONS[name][0].format(values[name]) for name in assumed)
    flags = ", ".join(_OPTIONS[name][1] for name in assumed)
    return f"{words}; set {'it' if len(assumed) == 1 else 'them'} with {flags}"


def _unused(file: str, fields: Sequence[str], num_fields: int) -> str:
    more = num_fields - len(fields)
    rest = f" and {more} more" if more > 0 else ""
    return f"fields of {file} that were not used: {', '.join(fields)}{rest}"


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "assumed_options": _assumed,
    "other_batch": (
        "the graph's convolutions take {num_images} images at once, whatever --batch-size says: "
        "its work is theirs, and figures per sample count {batch_size}"
    ),
    "derived_from_forward": (
        "an ONNX file is a forward pass: the loss, the backward pass and the update are derived "
        "from it, and all floating-point weights are trained"
    ),
    # a file of training arguments
    "scheme_of_config": (
        "{file} trains with {scheme}; the setting decides how work is distributed, so name it there"
    ),
    "fields_not_used": _unused,
    "precision_of_program": "{file} leaves out {field}, which is {precision} in {program}",
    # models of transformers
    "config_names_code": (
        "the config names code of its own (auto_map), which is not executed: the model is "
        "transformers' own of this type"
    ),
    "config_is_quantized": "the weights are trained in full, not quantized as the config says",
    "trained_as": lambda model, architecture: (
        f"trained as {model}, since the config "
        f"{f'names {architecture}' if architecture else 'names no class'}"
    ),
    "whole_sequences": (
        "all sequences are of full length, without padding, and one text in each row"
    ),
    "even_experts": "each expert gets the same number of tokens",
    "slow_layers": (
        "layers of state-space models and linear attention run by transformers' own PyTorch code, "
        "as without the packages mamba-ssm, causal-conv1d and flash-linear-attention, whose "
        "kernels are much faster and are not modelled"
    ),
    # models of one's own
    "random_batch": (
        "the batch holds random values, as none was given (--data FILE.py:FUNCTION gives one)"
    ),
    "usual_loss": "the loss is the {loss} of the outputs (--loss FILE.py:FUNCTION names another)",
    "compiled_by_code": "compiled by torch.compile, as the code says",
    "types_of_code": lambda types: f"parameters of type {' and '.join(types)}, as the code says",
}
