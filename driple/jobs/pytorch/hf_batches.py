"""Batches of Hugging Face models by task: which tensors, and of which sizes.

class name, config -> task;  task, sizes -> {"input_ids": [b, t], "labels": [b, t], ...} on meta
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from driple.errors import ConfigError

__all__ = ["BatchSizes", "Task", "batch_of_task", "learns_pairs", "task_of", "without_labels"]

Task = Literal[
    "tokens", "sequences", "answers", "choices", "text_to_text", "images", "pixels", "speech",
    "audio", "pairs",
]  # fmt: skip
# The end of a class's name tells its task.
_ENDINGS: tuple[tuple[str, Task], ...] = (
    ("ForCausalLM", "tokens"),
    ("LMHeadModel", "tokens"),
    ("ForMaskedLM", "tokens"),
    ("ForTokenClassification", "tokens"),
    ("ForSequenceClassification", "sequences"),
    ("ForQuestionAnswering", "answers"),
    ("ForMultipleChoice", "choices"),
    ("ForImageClassification", "images"),
    ("ForSemanticSegmentation", "pixels"),
    ("ForConditionalGeneration", "text_to_text"),
    ("ForCTC", "audio"),
    ("ForAudioClassification", "audio"),
)
_BATCHES = {"images": 32, "pixels": 8, "pairs": 32}
_BATCH, _LENGTH, _TARGET = 8, 512, 128
_CHOICES = 4
_LABELS = frozenset({"labels", "start_positions", "end_positions", "return_loss"})
_AUDIO_SAMPLES = 16_000 * 10  # ten seconds
_LENGTHS = ("max_position_embeddings", "n_positions", "max_sequence_length", "n_ctx", "seq_length")


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSizes:
    """Sizes of a batch.

    Attributes:
        batch_size: samples.
        seq_len: tokens of a sample; None if it has none.
        input_shape: one image or one piece of speech; None for text.
    """

    batch_size: int
    seq_len: int | None = None
    input_shape: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls,
        task: Task,
        config: Any,
        batch_size: int | None,
        seq_len: int | None,
        shape: tuple[int, ...] | None,
        *,
        source: str,
    ) -> BatchSizes:
        """The given sizes, and the usual ones of the task and the config for all others.

        Raises:
            ConfigError: an option that does not fit the task, or a length that the model lacks.
        """
        batch = batch_size or _BATCHES.get(task, _BATCH)
        if task in ("images", "pixels"):
            if seq_len is not None:
                raise ConfigError(f"{source} takes images; give --input in place of --seq-len")
            return cls(batch_size=batch, input_shape=shape or _image_shape(config, source))
        if task == "audio":
            return cls(batch_size=batch, input_shape=shape or (_AUDIO_SAMPLES,))
        if task == "speech":
            length = _length(config, seq_len, _TARGET, "max_target_positions", source)
            usual = (int(config.num_mel_bins), 2 * int(config.max_source_positions))
            return cls(batch_size=batch, seq_len=length, input_shape=shape or usual)
        if task == "pairs":
            length = _length(config, seq_len, _LENGTH, "", source)
            images = _image_shape(getattr(config, "vision_config", config), source)
            return cls(batch_size=batch, seq_len=length, input_shape=shape or images)
        if shape is not None:
            raise ConfigError(f"{source} takes tokens; give --seq-len in place of --input")
        return cls(batch_size=batch, seq_len=_length(config, seq_len, _LENGTH, "", source))


def _length(config: Any, given: int | None, usual: int, field: str, source: str) -> int:
    """Tokens of a sample, no more than the model has positions for."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    names = (field,) if field else _LENGTHS
    known = [getattr(text, name, None) for name in names]
    most = next((one for one in known if isinstance(one, int) and one > 0), None)
    # RoBERTa's kin count positions from behind the padding token's number.
    if most is not None and getattr(config, "model_type", "") in _SHIFTED:
        most -= (getattr(config, "pad_token_id", None) or 0) + 1
    if given is not None:
        if most is not None and given > most and not hasattr(text, "rope_parameters"):
            raise ConfigError(
                f"--seq-len {given} is more than the {most} positions of {source}; give up to "
                f"{most}"
            )
        return given
    return usual if most is None else min(usual, most)


_SHIFTED = ("roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "xlm-roberta-xl", "esm")


def _image_shape(config: Any, source: str) -> tuple[int, ...]:
    size = getattr(config, "image_size", None)
    channels = getattr(config, "num_channels", 3)
    if isinstance(size, int):
        return (channels, size, size)
    if isinstance(size, list | tuple) and len(size) == 2:
        return (channels, *size)
    if size is None:
        return (channels, 224, 224)
    raise ConfigError(f"{source} has image_size {str(size)[:40]}; give --input 3xHEIGHTxWIDTH")


def learns_pairs(kind: Any) -> bool:
    """Whether a class of transformers learns which text belongs to which image, as CLIP does."""
    known = inspect.signature(kind.forward).parameters
    return {"input_ids", "pixel_values", "return_loss"} <= set(known)


def task_of(kind: Any, config: Any, source: str) -> Task:
    """The task that a class of transformers is trained for.

    Raises:
        ConfigError: none that a batch is known for.
    """
    name = kind.__name__
    if learns_pairs(kind):
        return "pairs"
    if (
        hasattr(config, "num_mel_bins")
        and hasattr(config, "max_source_positions")
        and (name.endswith("ForConditionalGeneration"))
    ):
        return "speech"
    for ending, task in _ENDINGS:
        if name.endswith(ending):
            if task == "text_to_text" and not getattr(config, "is_encoder_decoder", False):
                break  # a model of images and text
            return task
    raise ConfigError(
        f"{source} is {name}, for which no usual batch is known; build it in FILE.py:FUNCTION that "
        "returns (model, batch)"
    )


def batch_of_task(task: Task, model: Any, sizes: BatchSizes) -> dict[str, Any]:
    """A batch of a task, with its labels or the word that asks for a loss, on the meta device.

    Args:
        task: of the model.
        model: of transformers.
        sizes: of the batch.
    """
    batch, length, shape = sizes.batch_size, sizes.seq_len or 0, sizes.input_shape or ()
    tokens = _whole(batch, length)
    text = {"input_ids": tokens, "attention_mask": tokens}
    classes = _whole(batch)
    found: dict[str, Any]
    if task == "tokens":
        found = {**text, "labels": tokens}
    elif task == "sequences":
        found = {**text, "labels": _sequence_labels(model.config, batch)}
    elif task == "answers":
        found = {**text, "start_positions": classes, "end_positions": classes}
    elif task == "choices":
        choices = _whole(batch, _CHOICES, length)
        found = {"input_ids": choices, "attention_mask": choices, "labels": classes}
    elif task == "text_to_text":
        found = {**text, "decoder_input_ids": tokens, "labels": tokens}
    elif task == "images":
        found = {"pixel_values": _numbers(batch, *shape), "labels": classes}
    elif task == "pixels":
        found = {"pixel_values": _numbers(batch, *shape), "labels": _whole(batch, *shape[1:])}
    elif task == "pairs":
        found = {**text, "pixel_values": _numbers(batch, *shape), "return_loss": True}
    elif task == "speech":
        found = {
            "input_features": _numbers(batch, *shape),
            "decoder_input_ids": tokens,
            "labels": tokens,
        }
    else:
        labels = classes if type(model).__name__.endswith("Classification") else _whole(batch, 64)
        found = {"input_values": _numbers(batch, *shape), "labels": labels}
    known = inspect.signature(model.forward).parameters
    return {name: value for name, value in found.items() if name in known}


def without_labels(batch: dict[str, Any]) -> dict[str, Any]:
    """A batch for a forward pass alone: without labels a model computes no loss."""
    return {name: value for name, value in batch.items() if name not in _LABELS}


def _sequence_labels(config: Any, batch: int) -> Tensor:
    """Class numbers; a number per sample for regression, as transformers decides by num_labels."""
    if getattr(config, "problem_type", None) == "multi_label_classification":
        return _numbers(batch, config.num_labels)
    return _numbers(batch) if getattr(config, "num_labels", 2) == 1 else _whole(batch)


def _whole(*sizes: int) -> Tensor:
    return torch.zeros(sizes, dtype=torch.int64, device="meta")


def _numbers(*sizes: int) -> Tensor:
    return torch.zeros(sizes, device="meta")
