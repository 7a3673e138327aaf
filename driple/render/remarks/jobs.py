"""Sentences on what was assumed about a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driple.units import counted

__all__ = ["SENTENCES"]

_OPTIONS = {
    "batch_size": ("{samples} per device", "--batch-size"),
    "seq_len": ("{tokens} per sample", "--seq-len"),
    "input_shape": ("input {}", "--input"),
    "precision": ("precision {}", "--precision"),
    "optimizer": ("optimizer {}", "--optimizer"),
}


def _filled(words: str, value: str | int | None) -> str:
    """Words with a value, or with what a number counts."""
    number = int(value) if value is not None and str(value).isdigit() else 0
    return words.format(value, samples=counted(number, "sample"), tokens=counted(number, "token"))


def _assumed(**values: str | int | None) -> str:
    """All values that were assumed, and the options that set them."""
    assumed = [name for name in _OPTIONS if values.get(name) is not None]
    words = ", ".join(_filled(_OPTIONS[name][0], values[name]) for name in assumed)
    flags = ", ".join(_OPTIONS[name][1] for name in assumed)
    return f"{words}; set {'it' if len(assumed) == 1 else 'them'} with {flags}"


_LEFT_OPEN = {
    "not_modelled": "not modelled: {fields}, which {change}",
    "not_known": "not known: {fields}, which may {change}",
    "no_file": "no file beside it: {fields}, which {change}",
}


def _left_open(
    reason: str, file: str, fields: Sequence[str], more: int, changes: Sequence[str]
) -> str:
    """Decisive fields of a file that were not read, and what they change."""
    listed = f"{', '.join(fields)}{f' and {more} more' if more else ''}"
    several = more or len(fields) > 1 or reason == "not_known"
    change = f"{'change' if several else 'changes'} {' and '.join(changes)}"
    return f"{file}, {_LEFT_OPEN[reason].format(fields=listed, change=change)}"


def _no_verdict(file: str, fields: Sequence[str], more: int) -> str:
    rest = f" and {more} more" if more else ""
    verb = "decide it and are" if more or len(fields) > 1 else "decides it and is"
    return f"no verdict, as {', '.join(fields)}{rest} of {file} {verb} not modelled"


_USUAL = {
    "batch_size": "{samples} per device", "seq_len": "{tokens} per sample",
    "optimizer": "{}", "grad_accumulation": "{} pass per update",
    "activation_checkpointing": "{} activation checkpointing",
}  # fmt: skip


def _batches(
    *,
    file: str,
    tool: str,
    global_batch: int,
    batch_size: int,
    passes: int,
    num_devices: int | None,
) -> str:
    where = "on no whole number of devices"
    if num_devices is not None:
        where = f"on {counted(num_devices, 'device')} alone"
    return (
        f"{file}: {counted(global_batch, 'sample')} per update agree with {batch_size} a device in "
        f"{counted(passes, 'pass')} {where}, and {tool} refuses to start on others"
    )


def _usual(file: str, tool: str, values: Sequence[str]) -> str:
    words = []
    for name, _, value in (one.partition(" ") for one in values):
        if name == "clip_gradients":
            words.append("gradients clipped" if value == "True" else "gradients not clipped")
        elif name == "fused_loss":
            words.append("a loss without logits")
        elif name == "activation_checkpointing" and value == "none":
            words.append("no activation checkpointing")
        elif value != "1" or name == "batch_size":
            words.append(_filled(_USUAL[name], value))
    return f"as {tool} does where {file} says nothing: {', '.join(words)}"


def _adapters(*, with_rest: bool) -> str:
    rest = " and all that is not quantized" if with_rest else ""
    return (
        f"adapters{rest} in fp32, as PEFT keeps them, and a frozen model in the precision of its "
        "checkpoint; dtype=bf16 within --lora keeps adapters in bf16, as torchtune and litgpt do"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "assumed_options": _assumed,
    "assumed_loss": lambda loss, others: f"loss {loss}; set it with --loss {' or '.join(others)}",
    "adapters_in_fp32": _adapters,
    "other_batch": (
        "the graph's convolutions take {num_images} images at once, whatever --batch-size says: "
        "its work is theirs, and figures per sample count {batch_size}"
    ),
    "derived_from_forward": (
        "an ONNX file is a forward pass: the loss, the backward pass and the update are derived "
        "from it, and all floating-point weights are trained"
    ),
    # a file of training arguments
    "engine_keeps_masters": (
        "{scheme} is DeepSpeed's, which updates a copy in fp32 of weights in half precision: that "
        "is --precision {usual}; {asked}, which was asked for, counts"
    ),
    "batches_agree_on": _batches,
    "other_scheme": "{file} trains with {scheme}; {asked}, which was asked for, counts",
    "usual_of_tool": _usual,
    "fields_left_open": _left_open,
    "no_verdict": _no_verdict,
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
    "decided_by_values": lambda places: (
        "what the library's own code decides by values ("
        f"{places[0]}{f' and {len(places) - 1} more places' if len(places) > 1 else ''}) is taken "
        "as usual: masks choose all that they may, and checks pass"
    ),
    "four_turns_of_loops": (
        "of loops over tokens four turns are followed, and the others taken as the third of them"
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
