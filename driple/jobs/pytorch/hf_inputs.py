"""Images and sound as models of transformers take them.

    names of forward's parameters, config -> {"pixel_values": ..., "image_grid_thw": ...}

Most take [b, 3, h, w]; others rows of patches with the grid that they come from, or tiles. Tensors
have shapes alone, except for sizes, which a model reads as numbers and are kept on the CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["audio_inputs", "image_inputs", "numbers", "whole"]

_FRAMES = 16  # of a video, where the config states none
_AUDIO_SAMPLES = 16_000 * 10  # ten seconds
_AUDIO_FRAMES = 1000  # ten seconds in windows of 10 ms
_MEL_BINS = 80
_SOUND = ("audio", "speech", "sound", "encoder")  # in names of modules
_GRIDS = {"image_grid_thw", "grid_thw", "image_grid_hws", "grid_thws"}


def whole(*sizes: int) -> Tensor:
    """Whole numbers of which only the shape is known."""
    return torch.zeros(sizes, dtype=torch.int64, device="meta")


def numbers(*sizes: int) -> Tensor:
    """Fractions of which only the shape is known."""
    return torch.zeros(sizes, device="meta")


def image_inputs(
    config: Any, known: set[str], batch: int, length: int, shape: tuple[int, ...]
) -> dict[str, Any]:
    """One image, or video, for each sample.

    Args:
        config: of the model.
        known: what forward takes.
        batch: samples.
        length: tokens of a sample.
        shape: of an image, channels first.
    """
    vision = getattr(config, "vision_config", None) or config
    channels, height, width = shape if len(shape) == 3 else (3, 224, 224)
    if _GRIDS & known:
        return _patches(vision, known, batch, length, shape)
    if "spatial_shapes" in known:
        patch = int(vision.patch_size)
        rows, columns = height // patch, width // patch
        return {
            "pixel_values": numbers(batch, rows * columns, channels * patch * patch),
            "pixel_attention_mask": whole(batch, rows * columns),
            "spatial_shapes": torch.tensor([[rows, columns]] * batch),
        }
    images = numbers(batch, channels, height, width)
    if "pixel_values" not in known or "ForVideo" in str(getattr(config, "architectures", "")):
        frames = getattr(config, "num_frames", None) or _FRAMES
        videos = numbers(batch, frames, channels, height, width)
        return {"pixel_values_videos": videos, "pixel_values": videos}
    if "pixel_attention_mask" in known:
        return {
            "pixel_values": images[:, None],
            "pixel_attention_mask": whole(batch, 1, height, width),
        }
    if "image_sizes" in known:
        sizes = torch.tensor([[height, width]] * batch)
        tiled = hasattr(config, "image_grid_pinpoints")
        if not tiled and getattr(vision, "model_type", "") != "pixtral":
            return {"pixel_values": images}
        # An image of the size that the encoder takes: itself, and one tile.
        tiles = numbers(batch, 2, channels, height, width) if tiled else images
        return {"pixel_values": tiles, "image_sizes": sizes}
    return {"pixel_values": images}


def _patches(
    vision: Any, known: set[str], batch: int, length: int, shape: tuple[int, ...]
) -> dict[str, Any]:
    """All images' patches, one after the other, and the grid of each."""
    patch = int(getattr(vision, "patch_size", 14))
    frames = int(getattr(vision, "temporal_patch_size", None) or 1)
    merged = int(getattr(vision, "spatial_merge_size", None) or 2)
    channels = int(getattr(vision, "in_channels", None) or getattr(vision, "num_channels", 3))
    height, width = shape[1:] if len(shape) == 3 else (448, 448)
    unit = patch * merged
    rows, columns = (max(side // unit, 1) * merged for side in (height, width))
    # Positions and the kind of each token, which models compute from the values of the tokens.
    places = {"position_ids": whole(3, batch, length), "mm_token_type_ids": whole(batch, length)}
    cells = channels * frames * patch * patch
    found: dict[str, Any] = {"pixel_values": numbers(batch * rows * columns, cells), **places}
    for name in sorted(_GRIDS & known):
        each = [1, rows, columns] if "thw" in name else [rows, columns]
        found[name] = torch.tensor([each] * batch)
    return found


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
    audio = (
        getattr(config, "audio_config", None) or getattr(config, "encoder_config", None) or config
    )
    bins = int(getattr(audio, "num_mel_bins", None) or _MEL_BINS)
    if "input_values" in known:
        usual: tuple[int, ...] = (_AUDIO_SAMPLES,)
        if hasattr(config, "num_mel_bins") and hasattr(config, "max_length"):
            usual = (int(config.max_length), bins)  # a spectrogram as an image
        return {"input_values": numbers(batch, *(shape or usual))}
    usual = _spectrogram(model, int(getattr(audio, "max_source_positions", None) or 0), bins)
    features = numbers(batch, *(shape or usual))
    length = max(features.shape[1:])
    return {
        "input_features": features,
        "input_features_mask": whole(batch, length),
        "feature_attention_mask": whole(batch, length),
        "attention_mask": whole(batch, length),
    }


def _spectrogram(model: nn.Module, positions: int, bins: int) -> tuple[int, int]:
    """Shape of a spectrogram as the first layer of a model's part for sound takes it."""
    frames = 2 * positions or _AUDIO_FRAMES
    parts = (
        part
        for name, part in model.named_modules()
        if any(word in name.rpartition(".")[2] for word in _SOUND)
    )
    for layer in next(parts, model).modules():
        if isinstance(layer, nn.Conv1d):
            return layer.in_channels, frames
        if isinstance(layer, nn.Conv2d):
            return frames, bins
        if isinstance(layer, nn.Linear):
            return frames, layer.in_features
        if isinstance(layer, nn.LayerNorm):
            return frames, int(layer.normalized_shape[-1])
    return frames, bins
