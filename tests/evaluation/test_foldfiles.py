"""Files of finished folds: what is written is read, nothing else is taken."""

import gzip
from pathlib import Path

import pytest

from driple.errors import ConfigError
from driple.evaluation import foldfiles
from driple.evaluation.foldfiles import FoldRecord, fold_file, read_fold, write_fold
from driple.trace.targets import TARGET_NAMES
from driple.training.metrics import ScoresRecord

ERRORS = ScoresRecord(
    nrmse=0.1,
    smape_pct=10.0,
    iteration_time_mape_pct=1 / 3,
    num_workloads=1,
    nrmse_by_target=dict.fromkeys(TARGET_NAMES, 0.1),
    smape_pct_by_target=dict.fromkeys(TARGET_NAMES, 10.0),
)
FOLD = FoldRecord(
    method="mean",
    fold="seed 0",
    test=ERRORS,
    validation=None,
    train_seconds=0.0,
    epochs=0,
    best_epoch=0,
    stopped_by="fit",
    predictions={"a/b1/sgd/sync": [0.1 + 0.2, 1e-9, 123456.0]},
    versions={"numpy": "2"},
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "folds").mkdir()
    return fold_file(tmp_path, "mean-0123")


def test_a_fold_comes_back(file: Path) -> None:
    """To the last bit of its numbers; nothing is there before."""
    assert read_fold(file) is None
    write_fold(file, FOLD)
    assert file.name == "mean-0123.json.gz"
    assert read_fold(file) == FOLD


def test_the_same_fold_gives_the_same_bytes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it is written: git sees no change where there is none."""
    written = []
    for now_s in (0.0, 1e9):
        monkeypatch.setattr("time.time", lambda now_s=now_s: now_s)
        write_fold(file, FOLD)
        written.append(file.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (b'{"method": "mean"}', "Not a gzipped file"),
        (gzip.compress(b"{}", mtime=0)[:-9], "end-of-stream"),
        (gzip.compress(b'{"method": ', mtime=0)[:-8] + bytes(8), "CRC check failed"),
        (gzip.compress(b'{"method": ', mtime=0), "Expecting value"),
        (gzip.compress(b"[1, 2]", mtime=0), "no JSON object"),
        (gzip.compress(b'{"method": "\xff"}', mtime=0), "utf-8"),
        (gzip.compress(b"[" * 100_000, mtime=0), "recursion"),
    ],
)
def test_what_is_no_fold_is_refused(file: Path, content: bytes, reason: str) -> None:
    """It is not taken for a fold that has to be made, and stays as it was."""
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"is damaged .*{reason}.*; delete it"):
        read_fold(file)
    assert file.read_bytes() == content


def test_what_swells_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes that unpack to many are not unpacked."""
    monkeypatch.setattr(foldfiles, "MOST_BYTES", 1000)
    file.write_bytes(gzip.compress(b'"' + b" " * 998 + b'"'))
    with pytest.raises(ConfigError, match="no JSON object"):
        read_fold(file)
    file.write_bytes(gzip.compress(b'"' + b" " * 999 + b'"'))
    with pytest.raises(ConfigError, match="unpacks to more than 1000 bytes"):
        read_fold(file)
