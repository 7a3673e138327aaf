"""Images and sound as models of transformers take them.

    names of forward's parameters, config -> {"pixel_values": ..., "image_grid_thw": ...}

Most take [b, 3, h, w]; others rows of patches with the grid that they come from, or tiles. Tensors
have shapes alone, except for sizes, which a model reads as numbers and are kept on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["audio_inputs", "image_inputs", "numbers", "vision_of", "whole"]

_HIGH = 1024  # side of an image for the second encoder of those that have two
_FRAMES = 16  # of a video, where the config states none
_AUDIO_SAMPLES = 16_000 * 10  # ten seconds
_AUDIO_FRAMES = 1000  # ten seconds in windows of 10 ms
_MEL_BINS = 80
_SEVERAL = ("perceiver_config", "scale_factor", "pixel_shuffle_factor")  # images of a sample
_SOUND = ("audio", "speech", "sound", "encoder")  # in names of modules
_SIGHT = ("vision", "visual", "image", "patch")
_FLAT = ("hunyuan_vl", "hy_v4_vl")  # whose patches are rows of numbers before their convolution
_GRIDS = {"image_grid_hw", "image_grid_thw", "grid_thw", "image_grid_hws", "grid_thws"}


def whole(*sizes: int) -> Tensor:
    """Whole numbers of which only the shape is known."""
    return torch.zeros(sizes, dtype=torch.int64, device="meta")


def numbers(*sizes: int) -> Tensor:
    """Fractions of which only the shape is known."""
    return torch.zeros(sizes, device="meta")


def image_inputs(
    model: Any, known: set[str], batch: int, length: int, shape: tuple[int, ...]
) -> dict[str, Any]:
    """One image, or video, for each sample.

    Args:
        model: of transformers.
        known: what forward takes.
        batch: samples.
        length: tokens of a sample.
        shape: of an image, channels first.
    """
    config = model.config
    if getattr(config, "vision_config", config) is None:
        return {}
    vision = vision_of(config)
    channels, height, width = shape if len(shape) == 3 else (3, 224, 224)
    if _GRIDS & known:
        places = _places(model, batch, length)
        return places | _patches(model, vision, known, batch, shape)
    if "spatial_shapes" in known:
        patch = int(vision.patch_size)
        rows, columns = height // patch, width // patch
        return {
            "pixel_values": numbers(batch, rows * columns, channels * patch * patch),
            "pixel_attention_mask": whole(batch, rows * columns),
            "spatial_shapes": torch.tensor([[rows, columns]] * batch),
        }
    return _images(model, known, batch, length, (channels, height, width))


def vision_of(config: Any) -> Any:
    """The part of a config for images; the whole without such a part."""
    inner = getattr(config, "encoder", None)
    for owner in (config, inner):
        vision = getattr(owner, "vision_config", None)
        if vision is not None:
            return vision
    return config


def _images(
    model: Any, known: set[str], batch: int, length: int, shape: tuple[int, int, int]
) -> dict[str, Any]:
    """Images as they are, or several of a sample: frames of a video, tiles of an image."""
    config, (channels, height, width) = model.config, shape
    vision = vision_of(config)
    first, patch = _first_layer(model, _SIGHT), getattr(vision, "patch_size", None)
    area = patch**2 if isinstance(patch, int) else 0
    is_linear = isinstance(first, nn.Linear) and first.in_features == channels * area
    if is_linear or hasattr(config, "patch_dim"):  # rows of patches
        rows = height * width // area
        kinds = whole(batch, length)
        return {"pixel_values": numbers(batch, rows, channels * area), "mm_token_type_ids": kinds}
    images = numbers(batch, channels, height, width)
    is_video = "Video" in type(model).__name__ and "pixel_values_videos" not in known
    if "pixel_values" not in known or is_video:
        frames = getattr(config, "num_frames", None) or _FRAMES
        videos = numbers(batch, frames, channels, height, width)
        return {"pixel_values_videos": videos, "pixel_values": videos}
    if "pixel_attention_mask" in known and any(hasattr(config, name) for name in _SEVERAL):
        mask = whole(batch, 1, height, width)
        return {"pixel_values": images[:, None], "pixel_attention_mask": mask}
    if "image_attention_mask" in known:  # several images of a sample, each for some tokens
        mask = whole(batch, length, 1)
        return {"pixel_values": images[:, None], "image_attention_mask": mask}
    if "aspect_ratio_ids" in known:
        tiles = int(getattr(vision, "max_num_tiles", None) or 1)
        return {
            "pixel_values": numbers(batch, 1, tiles, channels, height, width),
            "aspect_ratio_ids": whole(batch, 1),
            "aspect_ratio_mask": whole(batch, 1, tiles),
            "cross_attention_mask": whole(batch, length, 1, tiles),
        }
    arrays: dict[str, Any] = {
        "pixel_values": images,
        "high_res_pixel_values": numbers(batch, channels, _HIGH, _HIGH),
        "mm_token_type_ids": whole(batch, length),
    }
    if "image_sizes" in known:
        tiles = _tiles(config, (height, width), getattr(vision, "image_size", None) or height)
        if tiles:
            arrays["pixel_values"] = numbers(batch, tiles, channels, height, width)
        if tiles or getattr(vision, "model_type", "") == "pixtral":
            arrays["image_sizes"] = torch.tensor([[height, width]] * batch)
    return arrays


def _tiles(config: Any, size: tuple[int, int], side: Any) -> int:
    """Tiles of an image, with the whole of it, by the grids that a model has; 0 without grids."""
    grids = getattr(config, "image_grid_pinpoints", None)
    if not grids:
        return 0
    from transformers.models.llava_next.modeling_llava_next import image_size_to_num_patches

    return int(image_size_to_num_patches(list(size), grids, int(side)))


def _places(model: Any, batch: int, length: int) -> dict[str, Any]:
    """Positions and kinds of tokens, which models compute from the values of the tokens."""
    arrays = {"mm_token_type_ids": whole(batch, length)}
    parts = (model, getattr(model, "model", None))
    if any(hasattr(part, "get_rope_index") for part in parts):  # of time, height and width
        arrays["position_ids"] = whole(3, batch, length)
    return arrays


def _patches(
    model: Any, vision: Any, known: set[str], batch: int, shape: tuple[int, ...]
) -> dict[str, Any]:
    """All images' patches, one after the other, and the grid of each."""
    patch = int(getattr(vision, "patch_size", 14))
    merged = int(getattr(vision, "spatial_merge_size", None) or 2)
    height, width = shape[1:] if len(shape) == 3 else (448, 448)
    unit = patch * merged
    rows, columns = (max(side // unit, 1) * merged for side in (height, width))
    first = _first_layer(model, _SIGHT)
    cells: tuple[int, ...] = (3 * patch * patch,)
    if isinstance(first, nn.Conv2d):
        cells = (first.in_channels, *(int(side) for side in first.kernel_size))
        if model.config.model_type in _FLAT:
            cells = (prod(cells),)
    elif isinstance(first, nn.Conv3d):
        cells = (first.in_channels * prod(int(side) for side in first.kernel_size),)
    elif isinstance(first, nn.Linear):
        cells = (first.in_features,)
    arrays: dict[str, Any] = {"pixel_values": numbers(batch * rows * columns, *cells)}
    arrays["image_merge_sizes"] = torch.full((batch,), merged)
    for name in sorted(_GRIDS & known):
        each = [1, rows, columns] if "thw" in name else [rows, columns]
        arrays[name] = torch.tensor([each] * batch)
    return arrays


def _first_layer(model: nn.Module, words: Sequence[str]) -> nn.Module | None:
    """The first layer with weights of the part of a model that a word names."""
    parts = (
        part
        for name, part in model.named_modules()
        if any(word in name.rpartition(".")[2] for word in words)
    )
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear, nn.LayerNorm)
    return next((one for one in next(parts, model).modules() if isinstance(one, kinds)), None)


def audio_inputs(
    model: Any, known: set[str], batch: int, shape: tuple[int, ...] | None
) -> dict[str, Any]:
    """Ten seconds of sound for each sample, as a wave or as a spectrogram.

    Args:
        model: of transformers.
        known: what forward takes.
        batch: samples.
        shape: of a sample, if it was given.
    """
    config = model.config
    if getattr(config, "audio_config", config) is None:
        return {}
    audio = (
        getattr(config, "audio_config", None) or getattr(config, "encoder_config", None) or config
    )
    bins = int(getattr(audio, "num_mel_bins", None) or _MEL_BINS)
    if "input_values" in known:
        usual: tuple[int, ...] = (_AUDIO_SAMPLES,)
        if hasattr(config, "num_mel_bins") and hasattr(config, "max_length"):
            usual = (int(config.max_length), bins)  # a spectrogram as an image
        return {"input_values": numbers(batch, *(shape or usual))}
    usual = _spectrogram(
        model,
        _positions(audio),
        bins,
        has_bins=hasattr(audio, "num_mel_bins"),
        has_text="input_ids" in known,
    )
    if usual[-1] == 1:  # one channel: a wave
        usual = (_AUDIO_SAMPLES,)
    features = numbers(batch, *(shape or usual))
    length = max(features.shape[1:])
    mask = torch.ones(batch, length, dtype=torch.bool, device="meta")
    arrays = {"input_features": features}
    arrays |= {"input_features_mask": mask, "feature_attention_mask": mask}
    return arrays if "input_ids" in known else {**arrays, "attention_mask": mask}


def _positions(audio: Any) -> int:
    """Positions of Whisper's kin, each of two windows of sound; 0 of other models."""
    if hasattr(audio, "input_feat_per_channel"):
        return 0
    return int(getattr(audio, "max_source_positions", None) or 0)


def _spectrogram(
    model: nn.Module, positions: int, bins: int, *, has_bins: bool, has_text: bool
) -> tuple[int, int]:
    """Shape of a spectrogram as the first layer of a model's part for sound takes it."""
    frames = 2 * positions or _AUDIO_FRAMES
    first = _first_layer(model, _SOUND if has_text else ())
    if isinstance(first, nn.Conv1d):  # Whisper's kin take channels first
        is_first = bool(positions) or has_bins
        return (first.in_channels, frames) if is_first else (frames, first.in_channels)
    if isinstance(first, nn.Linear):
        return frames, first.in_features
    if isinstance(first, nn.LayerNorm):
        return frames, int(first.normalized_shape[-1])
    return frames, bins
