"""Generated images and tokens, and what reads them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from driple.errors import ConfigError
from driple.jobs.pytorch.samples import (
    ImageFolder,
    RandomSamples,
    TokenFile,
    make_images,
    make_tokens,
)


def test_images_are_spread_over_classes_and_the_same_every_time(tmp_path: Path) -> None:
    make_images(tmp_path / "a", 7, 40, num_classes=3)
    make_images(tmp_path / "b", 7, 40, num_classes=3)
    files = sorted((tmp_path / "a").rglob("*.jpg"))
    assert len(files) == 7
    for file in files:
        assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()
    folder = ImageFolder(tmp_path / "a", 32)
    assert (len(folder), folder.num_classes) == (7, 3)
    image, label = folder[6]
    assert image.shape == (3, 32, 32)
    assert image.dtype == torch.float32
    assert int(label) == 2


def test_images_are_hard_to_compress_and_cut_at_random(tmp_path: Path) -> None:
    """A file of 224 pixels has some ten thousand bytes, as a photograph; no two cuts are equal."""
    make_images(tmp_path, 1, 224)
    (file,) = tmp_path.rglob("*.jpg")
    assert 10_000 < file.stat().st_size < 150_000
    folder = ImageFolder(tmp_path, 64)
    assert not torch.equal(folder[0][0], folder[0][0])


def test_tokens(tmp_path: Path) -> None:
    make_tokens(tmp_path / "t.npy", 5, 12)
    rows = TokenFile(tmp_path / "t.npy")
    tokens, places = rows[4]
    assert (len(rows), tokens.shape, places.shape) == (5, (12,), (2,))
    assert tokens.dtype == torch.int64
    assert int(places.max()) < 12


def test_samples_in_memory() -> None:
    images = RandomSamples(9, (3, 8, 8), 10)
    assert len(images) == 9
    assert images[8][0].shape == (3, 8, 8)
    tokens, places = RandomSamples(9, (12,), 100, tokens=True)[0]
    assert tokens.dtype == torch.int64
    assert int(places.max()) < 12


def test_what_is_no_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="driple jobs build --samples 2048 -o"):
        ImageFolder(tmp_path / "none", 8)
    with pytest.raises(ConfigError, match="no images"):
        ImageFolder(tmp_path, 8)
    with pytest.raises(ConfigError, match="no array of tokens"):
        TokenFile(tmp_path / "none.npy")
    np.save(tmp_path / "floats.npy", np.zeros(3))
    with pytest.raises(ConfigError, match="a row for each sample"):
        TokenFile(tmp_path / "floats.npy")
    with pytest.raises(ConfigError, match="--samples"):
        make_images(tmp_path, 0, 8)
