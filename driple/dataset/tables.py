"""Arrow tables as Parquet files, packed hard; pyarrow is an extra and loaded when needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driple.errors import DatasetError, MissingExtraError, install_hint
from driple.storedfiles import check_regular, is_lfs_pointer, lfs_advice

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

__all__ = ["check_columns", "read_table", "require_pyarrow", "write_table"]

ZSTD_LEVEL = 12
MOST_BYTES = 8 * 2**30  # of a table in memory; the largest shipped one has a twentieth
# A few bytes may stand for very many equal values, so a table is read some rows at a time.
_ROWS_AT_A_TIME = 1024


def read_table(file: Path, columns: list[str] | None = None) -> pa.Table:
    """The table in a Parquet file, or some of its columns.

    Raises:
        DatasetError: no such file, a damaged one, or one that swells beyond all data sets.
        MissingExtraError: pyarrow is not installed.
    """
    pa = require_pyarrow()
    from pyarrow import parquet  # an extra, loaded when needed

    try:
        check_regular(file)
        with file.open("rb") as opened:
            if is_lfs_pointer(opened.read(64)):
                raise DatasetError(f"{file} is {lfs_advice('data set')}")
        with parquet.ParquetFile(file) as opened:
            table = _read_rows(opened, columns, file)
        table.validate(full=True)  # offsets and texts, which reading takes as they are
        _ = table.column_names  # texts too, which pyarrow decodes when they are asked for
        return table
    except FileNotFoundError:
        raise DatasetError(f"{file} is missing; restore it, or write the data set again") from None
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise DatasetError(f"cannot read {file}: {reason}; restore the file") from error


def _read_rows(opened: parquet.ParquetFile, columns: list[str] | None, file: Path) -> pa.Table:
    """All rows of a file, in one piece; refused as soon as they are too large."""
    pa = require_pyarrow()
    batches, nbytes = [], 0
    for batch in opened.iter_batches(_ROWS_AT_A_TIME, columns=columns, use_threads=False):
        nbytes += batch.nbytes
        if nbytes > MOST_BYTES:
            raise DatasetError(
                f"{file} has over {MOST_BYTES >> 30} GiB unpacked, and no data set has as much; "
                "restore the file, or write it in parts"
            )
        batches.append(batch)
    schema = opened.schema_arrow
    if columns is not None:
        schema = pa.schema([field for field in schema if field.name in columns])
    return pa.Table.from_batches(batches, schema).combine_chunks()


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
