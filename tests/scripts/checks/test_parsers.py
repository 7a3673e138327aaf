"""Each reader of the command line has its parser among those of `parsers`, or a reason."""

from __future__ import annotations

from scripts.checks.file_readers import READERS
from scripts.checks.parsers import PARSERS

BY_COMMAND_ALONE = {
    "tensorflow-meta": "the parser of tensorflow-binary",
    "onnx": "protobuf and the extra onnx read it: seconds of imports",
    "dataset": "Parquet, read by the extra train",
    "run-metadata": "TensorFlow reads it",
    "timeline": "TensorFlow reads it",
    "profile": "a folder, read by json",
}


def test_each_reader_has_its_parser() -> None:
    assert set(READERS) - set(PARSERS) == set(BY_COMMAND_ALONE)
