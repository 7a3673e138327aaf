"""What a data set is, from its header alone: no table is read.

FOLDER/dataset.json  ->  DatasetSummary
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from driple.errors import DatasetError
from driple.storedfiles import read_json

__all__ = ["DATASET_FILE", "DatasetSummary", "list_datasets", "read_summary"]

DATASET_FILE = "dataset.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetSummary:
    """A row of `driple data list`.

    Attributes:
        folder: of the data set.
        label_source: measured, simulated or published; None where the header lacks it.
    """

    folder: str
    name: str
    setting: str
    num_examples: int
    label_source: str | None


def list_datasets(folder: Path) -> list[DatasetSummary]:
    """The data sets in a folder and its subfolders, at most three levels down, by name.

    Raises:
        DatasetError: there is none, or a header cannot be read.
    """
    files = {
        file for depth in ("*", "*/*", "*/*/*") for file in folder.glob(f"{depth}/{DATASET_FILE}")
    }
    if not files:
        raise DatasetError(
            f"{folder} holds no data set (no {DATASET_FILE} in it or below); give another "
            "folder, or make one with driple measure WORKLOAD --dataset FOLDER"
        )
    return [read_summary(file.parent) for file in sorted(files)]


def read_summary(folder: Path) -> DatasetSummary:
    """The header of one data set.

    Raises:
        DatasetError: it cannot be read, or lacks a field.
    """
    file = folder / DATASET_FILE
    try:
        header = read_json(file)
    except (OSError, ValueError) as error:
        raise DatasetError(f"{file} cannot be read ({error}); restore it") from error
    values = header if isinstance(header, dict) else {}
    name, setting = values.get("name"), values.get("setting")
    number, source = values.get("num_examples"), values.get("label_source")
    if not isinstance(name, str) or not isinstance(setting, str) or not isinstance(number, int):
        raise DatasetError(f"{file} lacks name, setting or num_examples; restore it")
    return DatasetSummary(
        folder=str(folder),
        name=name,
        setting=setting,
        num_examples=number,
        label_source=source if isinstance(source, str) else None,
    )
