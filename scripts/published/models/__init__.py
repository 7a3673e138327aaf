"""Definitions of the models of the published training rows, on the meta device.

    own:NAME, batch size, size -> model, batch, loss -> a training step

`built` makes one, `traced_job` follows its step by shapes, `OPTIONS` says how each was trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.graph.torch.options import StepOptions
from scripts.published.models.bert import BERT
from scripts.published.models.decoders import DECODERS, adapted
from scripts.published.models.definition import Built, Definition
from scripts.published.models.detectors import DETECTORS
from scripts.published.models.fastpitch import FASTPITCH
from scripts.published.models.fused_loss import FUSED_LOSS, with_fused_loss
from scripts.published.models.gnmt import GNMT
from scripts.published.models.iresnet import IRESNET
from scripts.published.models.jasper import JASPER
from scripts.published.models.lora import ADAPTERS
from scripts.published.models.mpt import MPT
from scripts.published.models.ncf import NCF
from scripts.published.models.recommenders import RECOMMENDERS
from scripts.published.models.rnnt import RNNT
from scripts.published.models.sequences import SEQUENCES
from scripts.published.models.ssd300 import SSD300
from scripts.published.models.tacotron2 import TACOTRON2
from scripts.published.models.transformer_xl import TRANSFORMER_XL
from scripts.published.models.unet import UNETS
from scripts.published.models.waveglow import WAVEGLOW

__all__ = [
    "OPTIONS",
    "PREFIX",
    "REGISTRY",
    "Built",
    "Definition",
    "built",
    "definition_of",
    "traced_job",
]

PREFIX = "own:"
REGISTRY: Mapping[str, Definition] = MappingProxyType(
    {
        **BERT, **DECODERS, **DETECTORS, **FASTPITCH, **GNMT, **IRESNET, **JASPER, **MPT, **NCF,
        **RECOMMENDERS, **RNNT, **SEQUENCES, **SSD300, **TACOTRON2, **TRANSFORMER_XL, **UNETS,
        **WAVEGLOW,
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a model was trained where its row says nothing else; see `Definition`."""

    optimizer: str
    half: str
    compiled: bool
    clip_gradients: bool
    size: int
    units: float


OPTIONS: Mapping[str, Options] = MappingProxyType(
    {
        f"{PREFIX}{name}": Options(
            optimizer=one.optimizer,
            half=one.half,
            compiled=one.compiled,
            clip_gradients=one.clip_gradients,
            size=one.size,
            units=one.units,
        )
        for name, one in REGISTRY.items()
    }
)


def definition_of(job: str) -> Definition:
    """The definition of `own:NAME` or `own:NAME+ADAPTERS`, either with `+foak` (a fused loss).

    Raises:
        ConfigError: there is none.
    """
    whole = job.removeprefix(PREFIX)
    name, _, kind = whole.removesuffix(f"+{FUSED_LOSS}").partition("+")
    definition = REGISTRY.get(name)
    if definition is None or (kind and kind not in ADAPTERS):
        raise ConfigError(
            f"no published model is named {job[:80]!r}; see scripts/published/models/README.md"
        )
    definition = adapted(definition, kind) if kind else definition
    return with_fused_loss(definition) if whole.endswith(f"+{FUSED_LOSS}") else definition


def built(job: str, *, batch_size: int, size: int = 0, task: str = "train") -> Built:
    """A model, its batch and its loss, on the meta device.

    Args:
        job: `own:NAME`, or `own:NAME+lora` and the other kinds of `lora.ADAPTERS`.
        batch_size: samples of one device.
        size: tokens, frames or side of an image; the model's usual one if 0.
        task: `train`, or `forward` for a model in evaluation mode.

    Raises:
        ConfigError: no such model.
    """
    from driple.jobs.pytorch.quiet import quiet_transformers
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    definition = definition_of(job)
    with quiet_transformers():
        model_and_batch = definition.build(batch_size, size or definition.size)
    if task == "forward":
        model_and_batch.model.eval()
    return model_and_batch


def traced_job(job: str, *, batch_size: int, size: int = 0, options: StepOptions) -> OpGraph:
    """The training step of a published model.

    Raises:
        ConfigError: no such model.
        GraphError: the step cannot be followed by shapes alone.
    """
    from driple.graph.torch.step import traced_step
    from driple.jobs.pytorch.quiet import quiet_transformers
    from driple.jobs.pytorch.whole_sequences import whole_sequences

    parts = built(job, batch_size=batch_size, size=size)
    with quiet_transformers(), whole_sequences():
        return traced_step(parts.model, parts.batch, parts.loss, options)
