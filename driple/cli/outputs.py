"""Places that a command writes to, checked while the command line is parsed: before any work.

typer.Option(callback=output_file)    ->  the path, or ConfigError naming the flag
typer.Option(callback=output_folder)  ->  the same; folders that are not there will be made
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from driple.errors import ConfigError
from driple.files import is_nameable

__all__ = [
    "JsonOption",
    "PageOption",
    "RunFolderOption",
    "TableOption",
    "check_apart",
    "check_output_file",
    "check_output_folder",
    "output_file",
    "output_folder",
    "output_place",
]


def output_file(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """A file whose folder is there and may be written; an option left out passes."""
    if value is not None:
        check_output_file(_flag_of(param), value)
    return value


def output_folder(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """A folder that is there or can be made; an option left out passes."""
    if value is not None:
        check_output_folder(_flag_of(param), value)
    return value


def page_file(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """An output file that ends as pages do."""
    output_file(param, value)
    if value is not None and value.suffix.lower() not in {".html", ".htm"}:
        raise ConfigError(f"--html {value}: a page ends in .html; give such a name")
    return value


def table_file(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """An output file that ends as tables do; what writes it is installed."""
    output_file(param, value)
    if value is not None:
        from driple.api.tables import check_table

        check_table(value)
    return value


JsonOption = Annotated[bool, typer.Option("--json", help="one JSON object")]
PageOption = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="write one page of the answer, with pictures and where numbers come from",
        callback=page_file,
    ),
]
TableOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="file to write all rows to (.csv or .parquet), units in the names of columns",
        callback=table_file,
    ),
]
RunFolderOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="folder to write; continued if it is there",
        callback=output_folder,
    ),
]


def output_place(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """A file that is there, or a folder; the command checks which of them it needs."""
    if value is not None and not value.is_file():
        check_output_folder(_flag_of(param), value)
    return value


def check_output_file(flag: str, file: Path) -> None:
    """Raise ConfigError unless the file's folder is there and may be written."""
    _check_length(flag, file)
    folder = file.absolute().parent
    if file.is_dir():
        raise ConfigError(f"{flag} {file}: it is a folder; give the name of a file in it")
    if not folder.is_dir():
        raise ConfigError(f"{flag} {file}: {_missing(folder)}; make it, or give another place")
    _check_writable(flag, file, folder)


def check_apart(outputs: Mapping[str, Path | None], inputs: Mapping[str, Iterable[Path]]) -> None:
    """Refuse an output that would overwrite another one, or a file that the command reads.

    Args:
        outputs: by flag; None where an option was left out.
        inputs: by flag or word of the command line.

    Raises:
        ConfigError: two names of one file.
    """
    taken = {path.resolve(): flag for flag, paths in inputs.items() for path in paths}
    for flag, path in outputs.items():
        if path is None:
            continue
        other = taken.setdefault(path.resolve(), flag)
        if other != flag:
            raise ConfigError(
                f"{flag} {path}: that is the file of {other}, which would be lost; give another "
                "name"
            )


def check_output_folder(flag: str, folder: Path) -> None:
    """Raise ConfigError unless the folder is there or can be made, and may be written."""
    _check_length(flag, folder)
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise ConfigError(f"{flag} {folder}: {place} is no folder; give another place")
    _check_writable(flag, folder, place)


def _check_length(flag: str, path: Path) -> None:
    if not is_nameable(str(path)):
        raise ConfigError(f"{flag} {str(path)[:60]}...: the name is too long; give a shorter name")


def _missing(folder: Path) -> str:
    return f"{folder} is no folder" if folder.exists() else f"the folder {folder} does not exist"


def _check_writable(flag: str, value: Path, folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{flag} {value}: the folder {folder} may not be written; give another place"
        )


def _flag_of(param: typer.CallbackParam) -> str:
    """The long name of an option, as a user writes it."""
    return max(param.opts, key=len)
