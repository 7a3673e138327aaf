"""Training steps of Hugging Face models, built by transformers from a config on the meta device.

    config.json -> class of its architecture or of its type -> a batch of its task -> OpGraph

No weights are read or allocated, nothing is downloaded, and code that a config names stays unused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch

from driple.errors import ConfigError, DripleError, GraphError
from driple.graph.torch.data_dependence import NeedsValuesError
from driple.graph.torch.library_values import assumed_values
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.hf_config import HfConfig
from driple.jobs.import_path import exception_words
from driple.jobs.pytorch.batches import batch_words
from driple.jobs.pytorch.hf_batches import (
    BatchSizes,
    batch_of_task,
    learns_pairs,
    takes_labels,
    task_of,
    without_labels,
)
from driple.jobs.pytorch.own_model import REAL_INPUTS, OwnStep, module_on_meta
from driple.jobs.pytorch.quiet import quiet_transformers
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.jobs.pytorch.whole_sequences import (
    assumptions_of_transformers,
    by_values,
    whole_sequences,
)
from driple.remarks import Remark, remark

__all__ = ["hugging_face_step"]

# Tables of transformers by task; the first that knows a type decides, where no class is named.
_TABLES = (
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_CTC_MAPPING_NAMES",
    "MODEL_FOR_RNNT_MAPPING_NAMES",
    "MODEL_FOR_TDT_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES",
    "MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING_NAMES",
    "MODEL_FOR_UNIVERSAL_SEGMENTATION_MAPPING_NAMES",
    "MODEL_FOR_INSTANCE_SEGMENTATION_MAPPING_NAMES",
    "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES",
    "MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_AUDIO_FRAME_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES",
    "MODEL_FOR_VISUAL_QUESTION_ANSWERING_MAPPING_NAMES",
    "MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_TIME_SERIES_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_TIME_SERIES_PREDICTION_MAPPING_NAMES",
    "MODEL_FOR_DEPTH_ESTIMATION_MAPPING_NAMES",
    "MODEL_FOR_MASKED_IMAGE_MODELING_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_MATTING_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TO_IMAGE_MAPPING_NAMES",
    "MODEL_FOR_PRETRAINING_MAPPING_NAMES",
    "MODEL_FOR_TEXT_TO_SPECTROGRAM_MAPPING_NAMES",
    "MODEL_FOR_TEXT_TO_WAVEFORM_MAPPING_NAMES",
)


def hugging_face_step(
    config: HfConfig,
    *,
    batch_size: int | None,
    seq_len: int | None,
    input_shape: tuple[int, ...] | None,
    step: StepOptions,
) -> OwnStep:
    """The training step of a model with this config, with its own loss.

    Args:
        config: as read.
        batch_size: samples per device; a usual number of its task if None.
        seq_len: tokens of a sample; 512 or what the model takes, if None.
        input_shape: one image; as the config says if None.
        step: how it is trained.

    Raises:
        ConfigError: transformers does not have this model, the config is wrong, or an option does
            not fit.
        GraphError: the step cannot be followed by shapes alone.
    """
    declare_torchvision_ops()
    import transformers  # noqa: F401  # its import sets the level of its log, so it comes first

    with quiet_transformers(), _offline():
        model = _built(config)
        task = task_of(type(model), model.config, config.source)
        sizes = BatchSizes.of(
            task, model.config, batch_size, seq_len, input_shape, source=config.source
        )
        batch = batch_of_task(task, model, sizes)
        if not step.trains:
            batch = without_labels(batch)
        try:
            with whole_sequences(batch) as packed, assumed_values() as places:
                graph = traced_step(model, batch, None, step)
        except DripleError as error:
            needs = isinstance(error, NeedsValuesError)
            other = f"; build it in FILE.py:FUNCTION, and {REAL_INPUTS}" if needs else ""
            raise type(error)(f"{config.source}: {error}{other}") from error
        except Exception as error:  # the model's code may raise anything
            raise GraphError(
                f"the training step of {config.source} ({type(model).__name__}) fails on a batch "
                f"of {batch_words(batch)}: {exception_words(error)}; build it in FILE.py:FUNCTION "
                "with a batch that it takes"
            ) from error
    return OwnStep(
        graph=graph,
        batch_size=sizes.batch_size,
        seq_len=sizes.seq_len,
        input_shape=sizes.input_shape,
        assumptions=(
            *_assumptions(config, model, tokens=sizes.seq_len is not None),
            *packed,
            *by_values(places),
        ),
    )


def _assumptions(config: HfConfig, model: Any, *, tokens: bool) -> tuple[Remark, ...]:
    name = type(model).__name__
    remarks = list(config.assumptions)
    if name != config.architecture:
        remarks.append(remark("trained_as", model=name, architecture=config.architecture))
    return (*remarks, *assumptions_of_transformers(model, tokens=tokens))


def _built(config: HfConfig) -> Any:
    """The model on the meta device, ready to train.

    Raises:
        ConfigError: transformers does not have it, or refuses the config.
    """
    from transformers import CONFIG_MAPPING

    kind = _class_of(config)
    values = {key: value for key, value in config.values.items() if key != "quantization_config"}
    config_class = getattr(kind, "config_class", None) or CONFIG_MAPPING[config.model_type]
    try:
        known = config_class.from_dict(values)
        known.use_cache = False
        is_open = getattr(known, "problem_type", None) is None
        if kind.__name__.endswith("ForSequenceClassification") and is_open:
            # What transformers takes for such labels; DeBERTa would look at their values first.
            known.problem_type = (
                "regression" if known.num_labels == 1 else "single_label_classification"
            )
        with torch.device("meta"):
            model = kind(known)
    except Exception as error:  # of transformers, on values that no model has
        raise ConfigError(
            f"{config.file}: {kind.__name__} cannot be built from it: {exception_words(error)}; "
            "correct the config"
        ) from error
    return module_on_meta(model).train()


def _class_of(config: HfConfig) -> Any:
    """The class of transformers that trains this config.

    Raises:
        ConfigError: transformers has none.
    """
    import transformers

    base = transformers.PreTrainedModel
    model_class = _public_class(transformers, config.architecture, base)
    if model_class is not None and (_trains(model_class.__name__) or learns_pairs(model_class)):
        return model_class
    known = [one for one in _classes_of(config.model_type, base) if takes_labels(one)]
    # A part of a model may stand in a table under the type of the whole.
    model_class = next((one for one in known if _has_config(one, config)), next(iter(known), None))
    if model_class is not None:
        return model_class
    named = config.architecture or config.model_type or "without a name"
    raise ConfigError(
        f"{config.file}: architecture {named[:80]!r} (model_type {config.model_type[:80]!r}) is "
        f"not one that transformers {transformers.__version__} trains; its own code is not "
        "executed: build it in FILE.py:FUNCTION"
    )


def _public_class(transformers: Any, name: str, base: type) -> Any:
    """A model class that transformers exports under this name; None if it does not."""
    if not name.isidentifier() or name.startswith("_"):
        return None
    member = getattr(transformers, name, None)
    return member if isinstance(member, type) and issubclass(member, base) else None


def _classes_of(model_type: str, base: type) -> Iterator[Any]:
    """Classes of transformers for a type of model, by task."""
    import transformers
    from transformers.models.auto import modeling_auto

    for table in _TABLES:
        names: Mapping[str, Any] = getattr(modeling_auto, table, {})
        name = names.get(model_type)
        name = name[0] if isinstance(name, tuple | list) else name
        model_class = _public_class(transformers, name or "", base)
        if model_class is not None:
            yield model_class


def _has_config(kind: Any, config: HfConfig) -> bool:
    """Whether a class takes a config of this type, and not only one that is a part of it."""
    own = getattr(getattr(kind, "config_class", None), "model_type", "")
    return own in ("", config.model_type)


def _trains(name: str) -> bool:
    """Whether a class computes a loss that a batch of its usual task gives."""
    return ("For" in name or name.endswith("LMHeadModel")) and "ForPreTraining" not in name


@contextmanager
def _offline() -> Iterator[None]:
    """No download within the block, whatever a config names."""
    from huggingface_hub import constants

    with patch.object(constants, "HF_HUB_OFFLINE", True):
        yield
