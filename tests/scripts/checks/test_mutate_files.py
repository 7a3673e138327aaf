"""A sample of the damaged files; the whole is `python -m scripts.checks.mutate_files`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from scripts.checks import mutate_files
from scripts.checks.file_readers import READERS
from scripts.checks.mutate_files import Ended, check_reader, fault_of, run_command
from scripts.checks.mutations import FORMATS, mutated

# Files of each reader, and seconds: all take half a minute, those of the slow part two minutes.
SAMPLES = [(8, 3.0), pytest.param(40, 8.0, marks=pytest.mark.slow)]
EXTRAS = {
    "onnx": "onnx", "dataset": "pyarrow", "run-metadata": "tensorflow", "timeline": "tensorflow",
    "hugging-face": "transformers", "training-config": "transformers",
}  # fmt: skip


@pytest.mark.parametrize(("most", "most_s"), SAMPLES)
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_end_in_an_answer_or_in_one_line(
    name: str, most: int, most_s: float, tmp_path: Path
) -> None:
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    counts = check_reader(name, READERS[name], most, tmp_path, most_s=most_s)
    assert counts.faults == []
    assert counts.files == counts.answered + counts.refused > 0


@pytest.mark.parametrize("name", READERS)
def test_undamaged_files_are_answered(name: str, tmp_path: Path) -> None:
    """Else damaged ones would be refused for what the undamaged lacks."""
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    reader = READERS[name]
    for seed in reader.seeds(_folder(tmp_path / "seeds")):
        file = _folder(tmp_path / "work") / seed.name
        file.write_bytes(seed.data)
        assert run_command(reader.command(file)).status == 0, seed.name


def _folder(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path


def ended(**values: object) -> Ended:
    usual = {"status": 2, "out": "", "err": "driple: no\n", "seconds": 1.0, "peak_bytes": 10**8}
    return Ended(**{**usual, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, ""),
        ({"status": 0, "err": ""}, ""),
        ({"status": 1, "err": "Traceback\nKeyError: 3\n"}, "status 1: Traceback | KeyError: 3"),
        ({"err": "Traceback (most recent call last)"}, "status 2"),
        ({"status": -14}, "status -14"),
        ({"seconds": 31.0}, "took 31 s"),
        ({"peak_bytes": 3 * 10**9}, "took 3.0 GB"),
        ({"status": 0, "out": "\x1b[2J"}, "a control character"),
        ({"err": "driple: a\nb\n"}, "message of several lines"),
        ({"err": ""}, "or none"),
    ],
)
def test_what_a_fault_is(values: dict[str, object], words: str) -> None:
    fault = fault_of(ended(**values))
    assert words in fault
    assert bool(fault) == bool(words)


@pytest.mark.parametrize("form", FORMATS)
def test_damage_is_repeatable_and_changes_something(form: str) -> None:
    """Also of what is no file of the format any more."""
    for data in (b'{"a": [1, {"b": "c"}]}', b"PAR1xx", b"", b"a: 1\n"):
        damaged = [mutated(data, form, random.Random(seed)) for seed in range(40)]
        assert damaged == [mutated(data, form, random.Random(seed)) for seed in range(40)]
        assert any(each != data for each in damaged)


def test_progress_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on where the last one stopped, and one that is done reads nothing."""
    reader = READERS["cluster"]
    assert check_reader("cluster", reader, 3, tmp_path).files == 3
    assert check_reader("cluster", reader, 5, tmp_path).files == 5
    monkeypatch.setattr(mutate_files, "run_command", lambda command: pytest.fail("read again"))
    assert check_reader("cluster", reader, 5, tmp_path).files == 5
