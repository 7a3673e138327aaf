"""Published rows as rows of the benchmark.

PublishedRow --benchmark_row--> BenchmarkRow, or None of a cluster that no setting can name
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from driple.cluster.schemes import SchemeChoice
from driple.runs.benchmark.rows import BenchmarkRow, place_of
from driple.runs.published_rows import PublishedRow, row_weights
from driple.errors import CatalogError, ConfigError, SettingError

__all__ = ["benchmark_rows", "library_of", "row_on_setting", "setting_name"]

_PLAIN = ("none", SchemeChoice.usual().name)
# The first releases of later generations, of NVIDIA's containers and of PyTorch itself.
_GENERATIONS = (
    ("torch2", (25, 5), (2, 8)), ("torch2.7", (23, 10), (2, 2)), ("torch2.1", (23, 1), (2, 0)),
    ("torch1", (0, 0), (0, 0)),
)  # fmt: skip
_NGC, _TORCH = re.compile(r"ngc(\d+)\.(\d+)"), re.compile(r"torch(\d+)\.(\d+)")
_VISION = frozenset({
    "ssd300", "ssd", "maskrcnn", "retinanet", "unet", "stable-diffusion", "vit", "insightface",
})  # fmt: skip
_SPEECH = frozenset({"tacotron2", "waveglow", "fastpitch", "jasper", "quartznet", "rnnt"})
_RECOMMENDER = frozenset({
    "ncf", "neumf", "dlrm", "dlrmv2", "dcnv2", "wide-and-deep", "vae-cf",
})  # fmt: skip
_VOLUMES = frozenset({"unet3d", "nnunet", "vnet"})  # of medical images


def benchmark_rows(rows: Sequence[PublishedRow]) -> list[BenchmarkRow]:
    """Rows of the benchmark, in the same order; without those that no setting can name.

    Args:
        rows: usable ones.
    """
    weights = row_weights(rows)
    made = [_row(row, weight) for row, weight in zip(rows, weights, strict=True)]
    return [one for one in made if one is not None]


def setting_name(row: PublishedRow) -> str:
    """The setting of a row, as a user types it.

    >>> # 2 machines of 8, ZeRO-2: 2x8xA100/NVLink-A100+100G@zero2
    """
    machines, rest = divmod(row.devices, row.per_machine)
    if rest or machines <= 1:
        machines, each = 1, row.devices
    else:
        each = row.per_machine
    many = f"{machines}x" if machines > 1 else ""
    links = []
    if each > 1 and row.link_within:
        links.append(row.link_within)
    if machines > 1 and row.link_between:
        links.append(row.link_between)
    joined = f"/{'+'.join(links)}" if links else ""
    scheme = "" if row.scheme in _PLAIN else f"@{row.scheme}"
    return f"{many}{each}x{row.device}{joined}{scheme}"


def _row(row: PublishedRow, weight: float) -> BenchmarkRow | None:
    return None if row.step_s is None else row_on_setting(row, weight, row.step_s)


def row_on_setting(row: PublishedRow, weight: float, seconds: float) -> BenchmarkRow | None:
    """A row of the benchmark; None of a cluster that no setting can name.

    Args:
        row: of which all but the measured time is taken.
        weight: of the row.
        seconds: measured; NaN where something else was.
    """
    if row.tp * row.pp * row.cp > 1:
        return None
    try:
        place = place_of(setting_name(row))
    except (SettingError, CatalogError, ConfigError):
        return None
    vision = _domain(row) == "vision" and row.family not in _VOLUMES
    return BenchmarkRow(
        row_id=row.id,
        job=row.job,
        setting=place.name,
        seconds=seconds,
        family=row.family,
        source=row.source,
        mode=row.task,
        framework=row.framework,
        library=library_of(row.library),
        domain=_domain(row),
        precision=row.precision,
        compiled=row.compiled,
        layout="channels_last" if row.channels_last else "nchw" if vision else "",
        batch_size=row.batch,
        seq_len=None if vision else row.size,
        input_shape=(3, row.size, row.size) if vision and row.size else None,
        optimizer=row.job_optimizer,
        grad_accumulation=row.grad_accumulation,
        activation_checkpointing=row.activation_checkpointing,
        weight=weight,
        device=place.device,
        num_devices=place.num_devices,
        num_machines=place.num_machines,
        scheme=place.scheme,
    )


def library_of(name: str) -> str:
    """Generation of a row's library, such as `torch1.12` or `ngc22.09`; empty if it is another's.

    NVIDIA's containers have PyTorch 2 from 23.01 on, 2.2 from 23.10 on, and 2.8 from 25.05 on.
    """
    ngc, torch = _NGC.fullmatch(name), _TORCH.match(name)
    if name == "ngc":
        return "torch1"
    found = ngc or torch
    if found is None:
        return ""
    release = int(found[1]), int(found[2])
    return next(
        generation
        for generation, container, version in _GENERATIONS
        if release >= (version if ngc is None else container)
    )


def _domain(row: PublishedRow) -> str:
    """What a model computes on."""
    kind, _, name = row.job.partition(":")
    if kind in ("timm", "torchvision") or row.family in _VISION | _VOLUMES or name in _VISION:
        return "vision"
    if row.family in _SPEECH:
        return "speech"
    return "recommender" if row.family in _RECOMMENDER else "language"
