"""Batches of Hugging Face models: which tensors, and of which sizes.

    forward's parameters, config -> task; task, sizes -> {"input_ids": [b, t], ...} on meta

A class of transformers names its inputs the same way in all models, so a batch has a tensor for
each input that forward takes, and labels as the end of the class's name says.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from driple.errors import ConfigError
from driple.jobs.pytorch.hf_inputs import audio_inputs, image_inputs, numbers, vision_of, whole

__all__ = [
    "BatchSizes",
    "Task",
    "batch_of_task",
    "learns_pairs",
    "takes_labels",
    "task_of",
    "without_labels",
]

Task = Literal[
    "tokens", "sequences", "answers", "choices", "text_to_text", "images", "pixels", "speech",
    "audio", "pairs", "boxes", "masks", "depth", "videos", "series", "image_text", "audio_text",
]  # fmt: skip
# The end of a class's name tells its task.
_ENDINGS: tuple[tuple[str, Task], ...] = (
    ("ForCausalLM", "tokens"),
    ("LMHeadModel", "tokens"),
    ("ForMaskedLM", "tokens"),
    ("ForTokenClassification", "tokens"),
    ("ForPreTraining", "tokens"),
    ("GenerationDecoder", "tokens"),
    ("ForSequenceClassification", "sequences"),
    ("ForQuestionAnswering", "answers"),
    ("ForMultipleChoice", "choices"),
    ("ForImageClassification", "images"),
    ("ForImageClassificationWithTeacher", "images"),
    ("ForImageClassificationLearned", "images"),
    ("ForImageSuperResolution", "images"),
    ("ForMaskedImageModeling", "images"),
    ("ForSemanticSegmentation", "pixels"),
    ("ForImageMatting", "pixels"),
    ("VitsModel", "tokens"),
    ("ForDepthEstimation", "depth"),
    ("ForObjectDetection", "boxes"),
    ("ForUniversalSegmentation", "masks"),
    ("ForInstanceSegmentation", "masks"),
    ("ForVideoClassification", "videos"),
    ("ForConditionalGeneration", "text_to_text"),
    ("EncoderDecoderModel", "text_to_text"),
    ("MTModel", "text_to_text"),
    ("ForCTC", "audio"),
    ("ForRNNT", "audio"),
    ("ForTDT", "audio"),
    ("ForAudioClassification", "audio"),
    ("ForAudioFrameClassification", "audio"),
)
_BATCHES = {"images": 32, "pixels": 8, "pairs": 32, "boxes": 2, "masks": 2, "image_text": 1}
_BATCH, _LENGTH, _TARGET = 8, 512, 128
_CHOICES = 4
_MENTION = 30  # most tokens of an entity's mention
_PATCHES = 2048  # of an image, with row and column of each
_REGIONS = 36  # of an image, by a detector
_PROMPT = 16  # tokens that name the objects that are looked for
_OBJECTS = 8  # boxes of an image; COCO has 7.3 in the mean
_LABELS = frozenset(
    {"labels", "start_positions", "end_positions", "return_loss", "mask_labels", "class_labels"}
)
_SPOKEN_TOKENS = 64
_LENGTHS = ("max_position_embeddings", "n_positions", "max_sequence_length", "n_ctx", "seq_length")
_IMAGE_TASKS = frozenset({"images", "pixels", "boxes", "masks", "depth", "videos"})


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSizes:
    """BatchSizes of a batch.

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
        if task in _IMAGE_TASKS:
            if seq_len is not None:
                raise ConfigError(f"{source} takes images; give --input in place of --seq-len")
            usual = _image_shape(config, source)
            if task == "boxes" and getattr(config, "image_size", None) is None:
                usual = _usual_of_boxes(config)
            return cls(batch_size=batch, input_shape=shape or usual)
        if task in {"audio", "series"}:
            return cls(batch_size=batch, input_shape=shape)
        if task == "speech":
            length = _length(config, seq_len, _TARGET, "max_target_positions", source)
            usual = (int(config.num_mel_bins), 2 * int(config.max_source_positions))
            return cls(batch_size=batch, seq_len=length, input_shape=shape or usual)
        if task == "audio_text":
            length = _length(config, seq_len, _LENGTH, "", source)
            return cls(batch_size=batch, seq_len=length, input_shape=shape)
        if task in {"pairs", "image_text"}:
            length = _length(config, seq_len, _LENGTH, "", source)
            images = _image_shape(config, source)
            return cls(batch_size=batch, seq_len=length, input_shape=shape or images)
        if shape is not None:
            raise ConfigError(f"{source} takes tokens; give --seq-len in place of --input")
        return cls(batch_size=batch, seq_len=_length(config, seq_len, _LENGTH, "", source))


def _length(config: Any, given: int | None, usual: int, field: str, source: str) -> int:
    """Tokens of a sample, no more than the model has positions for."""
    text = config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config
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
    if getattr(config, "image_size", None) is None:
        config = vision_of(config)
    size = getattr(config, "image_size", None)
    channels = getattr(config, "num_channels", None) or getattr(config, "in_channels", None) or 3
    if isinstance(size, int):
        return (channels, size, size)
    if isinstance(size, list | tuple) and len(size) == 2:
        return (channels, *size)
    if size is None:
        return (channels, 224, 224)
    raise ConfigError(f"{source} has image_size {str(size)[:40]}; give --input 3xHEIGHTxWIDTH")


def _usual_of_boxes(config: Any) -> tuple[int, int, int]:
    """Images of COCO as detectors take them: squares by those that are made to be fast."""
    kind = str(getattr(config, "model_type", ""))
    if kind == "rf_detr":
        return 3, 560, 560  # patches of 14 in windows of 4
    return (3, 640, 640) if kind.startswith(_FAST_DETECTORS) else (3, 800, 1333)


_FAST_DETECTORS = ("rt_detr", "lw_detr", "d_fine", "deim", "pp_", "omdet", "yolos")


def learns_pairs(kind: Any) -> bool:
    """Whether a class of transformers learns which text belongs to which image, as CLIP does."""
    known = inspect.signature(kind.forward).parameters
    return {"input_ids", "pixel_values", "return_loss"} <= set(known)


def takes_labels(kind: Any) -> bool:
    """Whether forward of a class of transformers takes what its loss needs."""
    return bool(_LABELS & set(inspect.signature(kind.forward).parameters))


def task_of(kind: Any, config: Any, source: str) -> Task:
    """The task that a class of transformers is trained for.

    Raises:
        ConfigError: none that a batch is known for.
    """
    name, known = kind.__name__, set(inspect.signature(kind.forward).parameters)
    if learns_pairs(kind):
        return "pairs"
    if (
        hasattr(config, "num_mel_bins")
        and hasattr(config, "max_source_positions")
        and (name.endswith("ForConditionalGeneration"))
    ):
        return "speech"
    task = next((task for ending, task in _ENDINGS if name.endswith(ending)), None)
    if {"input_ids", "labels"} <= known and task in {None, "text_to_text", "tokens"}:
        if "pixel_values" in known:
            return "image_text"
        if known & {"input_features", "input_values"}:
            return "audio_text"
    if task == "images" and "pixel_values" not in known:
        return "sequences"  # of pixels as tokens
    if task is None or "input_ids" not in known:
        task = _task_of_inputs(known) or task
    if task is not None:
        return task
    raise ConfigError(
        f"{source} is {name}, for which no usual batch is known; build it in FILE.py:FUNCTION that "
        "returns (model, batch)"
    )


def _task_of_inputs(known: set[str]) -> Task | None:
    """The task of a model without tokens, by what it takes."""
    if "past_values" in known:
        return "series"
    if "pixel_values_videos" in known and "pixel_values" not in known:
        return "videos"
    if known & {"input_values", "input_features"}:
        return "audio"
    return None


def batch_of_task(task: Task, model: Any, sizes: BatchSizes) -> dict[str, Any]:
    """A batch of a task, with its labels or the word that asks for a loss, on the meta device.

    BatchSizes that a model reads as numbers, such as those of its images, have values on the CPU.

    Args:
        task: of the model.
        model: of transformers.
        sizes: of the batch.
    """
    known = inspect.signature(model.forward).parameters
    batch, length = sizes.batch_size, sizes.seq_len
    arrays: dict[str, Any] = {}
    if length is not None or "input_ids" in known:
        arrays |= _text(task, model.config, batch, length or _PROMPT)
    if "pixel_values" in known or "pixel_values_videos" in known:
        arrays |= image_inputs(model, set(known), batch, length or 0, sizes.input_shape or ())
    if task != "image_text" and known.keys() & {"input_values", "input_features"}:
        arrays |= audio_inputs(model, set(known), batch, sizes.input_shape)
    if "flattened_patches" in known:
        patch = int(getattr(model.config.vision_config, "patch_size", 16))
        arrays["flattened_patches"] = numbers(batch, _PATCHES, 2 + 3 * patch**2)
    if "task_inputs" in known:
        arrays["task_inputs"] = whole(batch, int(getattr(model.config, "task_seq_len", _PROMPT)))
    if task == "series":
        arrays |= _series(model.config, batch)
    arrays |= _labels(task, model, sizes, arrays)
    return {name: value for name, value in arrays.items() if name in known}


def _text(task: Task, config: Any, batch: int, length: int) -> dict[str, Any]:
    tokens = whole(batch, _CHOICES, length) if task == "choices" else whole(batch, length)
    arrays = {
        "input_ids": tokens,
        "attention_mask": tokens,
        "decoder_input_ids": tokens,
        "bbox": whole(batch, length, 4),
        "entity_ids": whole(batch, 2),
        "entity_position_ids": whole(batch, 2, _MENTION),
        "image_embeds_position_mask": tokens,
        "visual_feats": numbers(batch, _REGIONS, getattr(config, "visual_feat_dim", 2048)),
        "visual_embeds": numbers(batch, _REGIONS, getattr(config, "visual_embedding_dim", 512)),
        "visual_attention_mask": whole(batch, _REGIONS),
        "visual_pos": numbers(batch, _REGIONS, 4),
        "lengths": torch.full((batch,), length),  # numbers, which the model looks at
        "qformer_input_ids": tokens,
        "qformer_attention_mask": tokens,
    }
    return arrays


def _series(config: Any, batch: int) -> dict[str, Any]:
    """Past and future of several values over time."""
    past = getattr(config, "context_length", 512)
    channels = getattr(config, "num_input_channels", 1)
    return {
        "past_values": numbers(batch, past, channels),
        "future_values": numbers(batch, getattr(config, "prediction_length", 1), channels),
    }


def _labels(  # noqa: PLR0911  # one return per task
    task: Task, model: Any, sizes: BatchSizes, given: dict[str, Any]
) -> dict[str, Any]:
    """What the loss of a task compares the outputs with."""
    batch, shape, name = sizes.batch_size, sizes.input_shape or (), type(model).__name__
    classes = whole(batch)
    if task == "sequences":
        return {"labels": _sequence_labels(model.config, batch)}
    if task == "answers" and "start_positions" not in inspect.signature(model.forward).parameters:
        return {"labels": classes}  # of usual answers
    if task == "answers":
        return {"start_positions": classes, "end_positions": classes}
    if task in {"choices", "images", "videos"}:
        return {"labels": classes}
    if task == "pixels":
        return {"labels": whole(batch, *shape[1:])}
    if task == "depth":
        return {"labels": numbers(batch, *shape[1:])}
    if task == "pairs":
        return {"return_loss": True}
    if task == "boxes":
        each = {"class_labels": whole(_OBJECTS), "boxes": numbers(_OBJECTS, 4)}
        return {"labels": [dict(each) for _ in range(batch)]}
    if task == "masks":
        return {
            "mask_labels": [numbers(_OBJECTS, *shape[1:]) for _ in range(batch)],
            "class_labels": [whole(_OBJECTS) for _ in range(batch)],
        }
    if task == "series":
        return {"target_values": _targets(name, model.config, batch)}
    if task == "audio":
        ends = name.endswith("SequenceClassification") or name.endswith("AudioClassification")
        spoken = whole(batch, _SPOKEN_TOKENS)
        starts = name.endswith(("ForRNNT", "ForTDT"))  # with a blank
        begun = {"decoder_input_ids": whole(batch, _SPOKEN_TOKENS + starts)}
        return {"labels": classes} if ends else {"labels": spoken, **begun}
    if "visual_embeds" in inspect.signature(model.forward).parameters:
        return {"labels": whole(batch, int(given["input_ids"].shape[1]) + _REGIONS)}
    return {"labels": given["input_ids"]}


def _targets(name: str, config: Any, batch: int) -> Tensor:
    if name.endswith("Classification"):
        return whole(batch)
    return numbers(batch, getattr(config, "num_targets", 1))


def without_labels(batch: dict[str, Any]) -> dict[str, Any]:
    """A batch for a forward pass alone: without labels a model computes no loss."""
    return {name: value for name, value in batch.items() if name not in _LABELS}


def _sequence_labels(config: Any, batch: int) -> Tensor:
    """Class numbers; a number per sample for regression, as transformers decides by num_labels."""
    if getattr(config, "problem_type", None) == "multi_label_classification":
        return numbers(batch, config.num_labels)
    return numbers(batch) if getattr(config, "num_labels", 2) == 1 else whole(batch)
