"""Arrow tables as Parquet files, packed hard; pyarrow is an extra and loaded when needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driple.errors import DatasetError, MissingExtraError, install_hint
from driple.storedfiles import check_regular, is_lfs_pointer, lfs_advice

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_columns", "read_table", "require_pyarrow", "write_table"]

ZSTD_LEVEL = 12


def read_table(file: Path, columns: list[str] | None = None) -> pa.Table:
    """The table in a Parquet file, or some of its columns.

    Raises:
        DatasetError: no such file, or a damaged one.
        MissingExtraError: pyarrow is not installed.
    """
    pa = require_pyarrow()
    from pyarrow import parquet  # an extra, loaded when needed

    try:
        check_regular(file)
        with file.open("rb") as opened:
            if is_lfs_pointer(opened.read(64)):
                raise DatasetError(f"{file} is {lfs_advice('data set')}")
        table = parquet.read_table(file, columns=columns, use_threads=False, partitioning=None)
        table.validate(full=True)  # offsets and texts, which reading takes as they are
        _ = table.column_names  # texts too, which pyarrow decodes when they are asked for
        return table
    except FileNotFoundError:
        raise DatasetError(f"{file} is missing; restore it, or write the data set again") from None
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise DatasetError(f"cannot read {file}: {reason}; restore the file") from error


def check_columns(table: pa.Table, kinds: Mapping[str, str], file: Path) -> None:
    """Refuse a table that lacks a column, or whose values are of another type or empty.

    Args:
        table: see `read_table`.
        kinds: type of each column as Arrow names it, such as `string` or `list<int32>`.
        file: it is from, as errors call it.

    Raises:
        DatasetError: which column.
    """
    pa = require_pyarrow()
    for name, kind in kinds.items():
        if name not in table.column_names:
            raise DatasetError(f"{file}: column {name!r} is missing; write the data set again")
        inner = kind.removeprefix("list<").removesuffix(">")
        wanted = pa.type_for_alias(inner)
        column = table[name]
        if not column.type.equals(wanted if inner == kind else pa.list_(wanted)):
            raise DatasetError(
                f"{file}: column {name!r} is of type {column.type}, must be {kind}; restore the "
                "file"
            )
        if column.null_count or (inner != kind and column.combine_chunks().flatten().null_count):
            raise DatasetError(f"{file}: column {name!r} has empty values; restore the file")


def write_table(table: pa.Table, file: Path, encodings: dict[str, str]) -> None:
    """Write a table in place; the caller chooses a temporary name.

    Args:
        table: what to write.
        file: where.
        encodings: Parquet encodings by column; the others get dictionaries.
    """
    from pyarrow import parquet  # an extra, loaded when needed

    parquet.write_table(
        table,
        file,
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        use_dictionary=_dictionary_columns(table, encodings),
        column_encoding=encodings or None,
        write_statistics=False,
        store_schema=False,
        data_page_size=16 * 2**20,
    )


def _dictionary_columns(table: pa.Table, encodings: dict[str, str]) -> list[str]:
    """Leaf columns without an encoding of their own; parquet names a list's leaf so."""
    pa = require_pyarrow()
    leaves = [
        f"{column.name}.list.element" if pa.types.is_list(column.type) else column.name
        for column in table.schema
    ]
    return [leaf for leaf in leaves if leaf not in encodings]


def require_pyarrow(what: str = "data sets") -> Any:
    """The module, or MissingExtraError in one line that says what needs it."""
    try:
        import pyarrow  # an extra, loaded when needed
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{what} need pyarrow, which is not installed; {install_hint('train')}"
        ) from error
    return pyarrow
