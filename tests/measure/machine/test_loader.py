"""Samples a second of a user's data, by number of workers."""

import time
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from driple.errors import ConfigError
from driple.measure.machine.loader import loader_rates, made_data


class _Slow(Dataset[torch.Tensor]):
    """A sample in 2 ms."""

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, _index: int) -> torch.Tensor:
        time.sleep(2e-3)
        return torch.zeros(3)


def test_a_sample_of_two_milliseconds_comes_500_times_a_second() -> None:
    (rate,) = loader_rates(_Slow(), [0], seconds=0.3)
    assert rate.samples_per_s == pytest.approx(500, rel=0.25)


def test_two_workers_load_twice_as_much() -> None:
    single, two = loader_rates(_Slow(), [1, 2], seconds=0.4)
    assert two.samples_per_s > 1.3 * single.samples_per_s


def test_a_loader_keeps_its_batch() -> None:
    loader = DataLoader(TensorDataset(torch.zeros(40, 2), torch.zeros(40)), batch_size=4)
    (rate,) = loader_rates(loader, [0], seconds=0.05)
    assert rate.samples_per_s > 100


def test_an_empty_data_set_is_refused() -> None:
    with pytest.raises(ConfigError, match="--data"):
        loader_rates(TensorDataset(torch.zeros(0, 2)), [0], seconds=0.05)


class _Broken(_Slow):
    """A sample that cannot be read."""

    def __getitem__(self, _index: int) -> torch.Tensor:
        raise OSError("no such picture")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_set_that_fails_is_one_line(workers: int) -> None:
    with pytest.raises(
        ConfigError, match=r"--data failed with .*OSError: no such picture"
    ) as refused:
        loader_rates(_Broken(), [workers], seconds=0.05)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nofile.py:f", "FILE.py:FUNCTION"),
        ("data.py:missing", "missing"),
        ("data.py:fails", "no disk"),
        ("data.py:number", "returned int"),
    ],
)
def test_what_is_no_data_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    (tmp_path / "data.py").write_text(
        "def fails():\n    raise OSError('no disk')\n\n\ndef number():\n    return 3\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="--data") as refused:
        made_data(text)
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_a_function_of_a_file_gives_its_data(tmp_path: Path) -> None:
    file = tmp_path / "data.py"
    file.write_text("def build():\n    return [1, 2, 3]\n")
    assert made_data(f"{file}:build") == [1, 2, 3]
