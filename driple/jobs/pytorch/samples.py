"""What the built-in workloads train on: samples in memory, an image folder, or a file of tokens.

make_images(FOLDER)   FOLDER/class0003/000017.jpg ...    -> ImageFolder
make_tokens(FILE)     int32 [samples, length] (.npy)     -> TokenFile
nothing on the disk                                      -> RandomSamples
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from driple.checks import check_whole
from driple.errors import ConfigError, MissingExtraError, install_hint
from driple.files import atomic_write

__all__ = ["ImageFolder", "RandomSamples", "TokenFile", "make_images", "make_tokens"]

_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp"})
_QUALITY = 90
# Mean and deviation of ImageNet's channels, which training scripts put images on.
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_LEAST_AREA = 0.3
_GRAIN = 8  # pixels that have one colour: as hard to compress as a photograph, roughly
_VOCABULARY = 30_522


class RandomSamples(Dataset[tuple[Tensor, Tensor]]):
    """Samples in memory; their values are random, which no time depends on.

    Args:
        count: samples.
        shape: of one.
        num_classes: classes, or tokens where samples are tokens.
        tokens: samples are token numbers, labels the first and last token of an answer.
    """

    def __init__(
        self, count: int, shape: Sequence[int], num_classes: int, *, tokens: bool = False
    ) -> None:
        random = torch.Generator().manual_seed(0)
        self._count, self._tokens = count, tokens
        self._sample = (
            torch.randint(num_classes, tuple(shape), generator=random)
            if tokens
            else torch.rand(tuple(shape), generator=random)
        )
        high = shape[0] if tokens else num_classes
        self._labels = torch.randint(high, (count, 2) if tokens else (count,), generator=random)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """Sample and label; all samples are equal, so that memory does not limit how many."""
        return self._sample, self._labels[index]


class ImageFolder(Dataset[tuple[Tensor, Tensor]]):
    """Images in a folder per class, read, cut and mirrored at random, as usual in training.

    Args:
        folder: has a folder for each class.
        size: height and width that the model takes.

    Raises:
        ConfigError: there are no images.
        MissingExtraError: Pillow is not installed.
    """

    def __init__(self, folder: Path, size: int) -> None:
        _pillow()
        if not folder.is_dir():
            raise ConfigError(
                f"{folder} is no folder of images; make one with: driple jobs build "
                f"--samples 2048 -o {folder}"
            )
        classes = sorted(place for place in folder.iterdir() if place.is_dir())
        self.num_classes = len(classes)
        self._files = [
            (file, label)
            for label, place in enumerate(classes)
            for file in sorted(place.iterdir())
            if file.suffix.lower() in _ENDINGS
        ]
        self._size = size
        if not self._files:
            raise ConfigError(
                f"{folder} holds no images in class folders; make some with: driple jobs "
                f"build --samples 2048 -o "
                f"{folder}"
            )

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """The image, [3, size, size], and the number of its class."""
        from PIL import Image

        file, label = self._files[index]
        with Image.open(io.BytesIO(file.read_bytes())) as image:
            box = _random_box(*image.size)
            cut = image.convert("RGB").resize(
                (self._size, self._size), Image.Resampling.BILINEAR, box=box
            )
        pixels = torch.from_numpy(np.asarray(cut, dtype=np.float32) / 255).permute(2, 0, 1)
        if torch.rand(()) < 0.5:
            pixels = pixels.flip(2)
        scaled = (pixels - torch.tensor(_MEAN)[:, None, None]) / torch.tensor(_DEVIATION)[
            :, None, None
        ]
        return scaled, torch.tensor(label)


class TokenFile(Dataset[tuple[Tensor, Tensor]]):
    """Rows of a file of tokens, read from the disk one by one.

    Args:
        file: an array of whole numbers, [samples, length], as `numpy.save` writes it.

    Raises:
        ConfigError: it cannot be read, or is none.
    """

    def __init__(self, file: Path) -> None:
        try:
            self._rows: Any = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{file} is no array of tokens ({error}); make one with: driple jobs "
                f"build --samples 2048 -o {file}"
            ) from error
        if self._rows.ndim != 2 or not np.issubdtype(self._rows.dtype, np.integer):
            raise ConfigError(
                f"{file} holds {self._rows.dtype} of shape {self._rows.shape}; tokens are whole "
                "numbers, a row for each sample"
            )

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """Tokens, [length], and where the answer begins and ends."""
        tokens = torch.from_numpy(np.array(self._rows[index], dtype=np.int64))
        return tokens, torch.randint(len(tokens), (2,))


def make_images(folder: Path, count: int, size: int, num_classes: int = 10) -> None:
    """Generate JPEG images, the same ones every time.

    Args:
        folder: for them; made if it is not there.
        count: images.
        size: height and width, pixels.
        num_classes: folders that they are spread over.

    Raises:
        ConfigError: a number is below 1, or the folder cannot be written.
        MissingExtraError: Pillow is not installed.
    """
    Image = _pillow()
    for name, value in (
        ("--samples", count),
        ("--set image_size", size),
        ("--set classes", num_classes),
    ):
        check_whole(name, value, 1)
    random = np.random.default_rng(0)
    cells = -(-size // _GRAIN)
    for i in range(count):
        place = folder / f"class{i % num_classes:04d}"
        place.mkdir(parents=True, exist_ok=True)
        colours = random.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        noise = random.integers(0, 24, (size, size, 3), dtype=np.uint8)
        grown = colours.repeat(_GRAIN, axis=0).repeat(_GRAIN, axis=1)[:size, :size]
        buffer = io.BytesIO()
        Image.fromarray(grown // 2 + noise).save(buffer, "JPEG", quality=_QUALITY)
        atomic_write(place / f"{i:06d}.jpg", buffer.getvalue(), error=ConfigError)


def make_tokens(file: Path, count: int, length: int) -> None:
    """Generate rows of random tokens, the same ones every time.

    Raises:
        ConfigError: a number is below 1, or the file cannot be written.
    """
    check_whole("--samples", count, 1)
    check_whole("--set length", length, 1)
    rows = np.random.default_rng(0).integers(0, _VOCABULARY, (count, length), dtype=np.int32)
    buffer = io.BytesIO()
    np.save(buffer, rows)
    atomic_write(file, buffer.getvalue(), error=ConfigError)


def _random_box(width: int, height: int) -> tuple[float, float, float, float]:
    """A square part of an image, of at least a good part of its shorter side."""
    share, right, down = torch.rand(3).tolist()
    side = min(width, height) * (_LEAST_AREA + (1 - _LEAST_AREA) * share) ** 0.5
    left, top = right * (width - side), down * (height - side)
    return left, top, left + side, top + side


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError(
            f"images need Pillow, which is not installed; {install_hint('profiler')}"
        ) from error
    return Image
