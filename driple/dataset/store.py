"""A data set on disk: one folder of three files, readable with any Parquet reader.

    Dataset  ->  dataset.json        format, name, setting, provenance
                 examples.parquet    one row per workload: labels, details, hash of its graph
                 graphs.parquet      one row per graph, stored once, under its content hash
             ->  Dataset

Entry points: `read_dataset`, `read_datasets`, `write_dataset`. All three files are written in full
and flushed under temporary names before the first takes its place, so a full disk or a kill leaves
the old data set. `graphs.parquet` takes its place first: a program that only adds workloads can be
killed even between the renames, and the folder still reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driple.codec import from_json, to_dict
from driple.data_folders import moved_to
from driple.dataset.example import Dataset, Example, graph_hash
from driple.dataset.graphtable import HASH_COLUMN, graphs_from_table, graphs_to_table
from driple.dataset.grouptable import groups_from_table, groups_to_table, holds_groups
from driple.dataset.tables import read_table, require_pyarrow, write_table
from driple.errors import DatasetError
from driple.features.pregrouped import AnyGraph, GroupedGraph
from driple.files import atomic_replace, wrap_os_error
from driple.graph.version import FIRST_READER_VERSION
from driple.storedfiles import parse_json, read_json
from driple.trace.provenance import Provenance
from driple.trace.targets import FIGURES, RESOURCES, TARGET_NAMES, Targets
from driple.units import counted

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMAT", "read_dataset", "read_datasets", "write_dataset"]

FORMAT = 2  # of the folder; raise it when an older Driple could not read what is written

ABOUT_FILE = "dataset.json"
EXAMPLES_FILE = "examples.parquet"
GRAPHS_FILE = "graphs.parquet"
# Keys of dataset.json that belong to the folder; the rest is `Dataset.about`.
OWN_KEYS = ("format", "name", "setting", "num_examples", "num_graphs", "reader_version")
_ERROR_KEY = "iteration_time_error"
# Where graphs lie that several data sets share: a folder beside this one.
SHARED_KEY = "graphs_in"

EXAMPLE_COLUMNS = {
    "workload": "string",
    "family": "string",
    "setting": "string",
    "graph": "string",  # content hash
    "iteration_time_s": "float64",
    **dict.fromkeys(TARGET_NAMES, "float64"),
    "label_source": "string",
    "details": "string",  # JSON object
}


def write_dataset(dataset: Dataset, path: str | Path, *, graphs_in: str = "") -> None:
    """Write a data set into a folder, which is made if need be; other files in it stay.

    A data set that is there is replaced if nothing of it is lost but simulated labels, which can be
    made again: the new one is of the same setting and kind of labels, and has all of its workloads.

    Args:
        dataset: what to write.
        path: the folder.
        graphs_in: name of a folder beside it, in which the graphs are stored for several data sets;
            those that it lacks are added. By default the folder holds its own.

    Raises:
        DatasetError: provenance that is not JSON, a folder that cannot be written, or one whose
            workloads would be lost.
        MissingExtraError: pyarrow is not installed.
    """
    folder = Path(path)
    _refuse_loss(dataset, folder)
    hashes = [graph_hash(example.graph) for example in dataset.examples]
    graphs = {key: example.graph for key, example in zip(hashes, dataset.examples, strict=True)}
    about = _about_bytes(dataset, len(graphs), graphs_in)
    examples_table = _examples_to_table(dataset.examples, hashes)
    if graphs_in:
        _add_shared(_shared_file(folder, graphs_in), graphs)
        with wrap_os_error(DatasetError, f"write data set {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            files = [folder / name for name in (EXAMPLES_FILE, ABOUT_FILE)]
            with atomic_replace(*files) as (examples_part, about_part):
                write_table(examples_table, examples_part, {})
                about_part.write_bytes(about)
        return
    graphs_table, encodings = _graphs_to_table(graphs)
    files = [folder / name for name in (GRAPHS_FILE, EXAMPLES_FILE, ABOUT_FILE)]
    with wrap_os_error(DatasetError, f"write data set {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_replace(*files) as (graphs_part, examples_part, about_part):
            write_table(graphs_table, graphs_part, encodings)
            write_table(examples_table, examples_part, {})
            about_part.write_bytes(about)


def _refuse_loss(dataset: Dataset, folder: Path) -> None:
    """Refuse to replace a data set that holds what the new one does not."""
    if not (folder / EXAMPLES_FILE).exists():
        return
    columns = ["workload", "setting", "label_source"]
    rows = read_table(folder / EXAMPLES_FILE, columns=columns).to_pylist()
    kept = {(one.workload, dataset.setting, one.label_source) for one in dataset.examples}
    lost = [
        row
        for row in rows
        if row["label_source"] != "simulated" and tuple(row[name] for name in columns) not in kept
    ]
    if lost:
        first = lost[0]
        raise DatasetError(
            f"{folder} holds {counted(len(rows), 'workload')}, and {len(lost)} would be lost, the "
            f"first is {first['workload']} on {first['setting']} ({first['label_source']}); write "
            "to another folder, or remove this one first"
        )


def read_dataset(path: str | Path) -> Dataset:
    """Read the folder that `write_dataset` wrote.

    Every label is checked, and every graph against the hash under which it is stored.

    Raises:
        DatasetError: a file or column is missing or damaged, the format is newer than this
            Driple, a label is NaN, infinite or negative, a graph is missing or altered.
        MissingExtraError: pyarrow is not installed.
    """
    return read_datasets([path])[0]


def read_datasets(paths: Iterable[str | Path]) -> list[Dataset]:
    """Read several folders; those that share a file of graphs share the graphs themselves.

    Raises:
        DatasetError, MissingExtraError: as for `read_dataset`.
    """
    files: dict[Path, dict[str, AnyGraph]] = {}
    return [_read(Path(path), files) for path in paths]


def _read(folder: Path, files: dict[Path, dict[str, AnyGraph]]) -> Dataset:
    """One data set; the graphs of every file that is read are put into `files`."""
    about = _read_about(folder)
    examples_table = read_table(folder / EXAMPLES_FILE)
    graphs_file = folder / GRAPHS_FILE
    if SHARED_KEY in about:
        graphs_file = _shared_file(folder, about[SHARED_KEY])
    if graphs_file not in files:
        files[graphs_file] = _read_graphs(graphs_file)
    graphs = files[graphs_file]
    try:
        return Dataset(
            name=about["name"],
            setting=about["setting"],
            examples=_examples_from_table(examples_table, graphs),
            about=_provenance(folder / ABOUT_FILE, about),
            reader_version=about.get("reader_version", FIRST_READER_VERSION),
        )
    except DatasetError as error:
        raise DatasetError(f"{folder / EXAMPLES_FILE}: {error}") from error


def _graphs_to_table(graphs: dict[str, AnyGraph]) -> tuple[pa.Table, dict[str, str]]:
    """The table and its encodings; a data set holds graphs of one kind."""
    groups = {key: graph for key, graph in graphs.items() if isinstance(graph, GroupedGraph)}
    if groups:
        return groups_to_table(groups), {}
    whole = {key: graph for key, graph in graphs.items() if not isinstance(graph, GroupedGraph)}
    return graphs_to_table(whole)


def _graphs_from_table(table: pa.Table, file: Path) -> dict[str, AnyGraph]:
    if holds_groups(table):
        return dict(groups_from_table(table, file))
    return dict(graphs_from_table(table, file))


def _read_graphs(file: Path) -> dict[str, AnyGraph]:
    """The graphs in a file, each checked against its content hash."""
    graphs = _graphs_from_table(read_table(file), file)
    for key, graph in graphs.items():
        if graph_hash(graph) != key:
            raise DatasetError(
                f"{file}: graph {key[:12]} does not match its content hash; "
                "the file was altered, restore it"
            )
    return graphs


def _shared_file(folder: Path, name: object) -> Path:
    """The file of shared graphs: in a folder beside the data set, and nowhere else."""
    if not isinstance(name, str) or not name or name != Path(name).name or name == "..":
        raise DatasetError(f"{folder}: its graphs are in {name!r}, needed is a folder beside it")
    return folder.resolve().parent / name / GRAPHS_FILE


def _add_shared(file: Path, graphs: dict[str, AnyGraph]) -> None:
    """Have these graphs in the file, beside those that other data sets put there."""
    stored = read_table(file, [HASH_COLUMN])[HASH_COLUMN].to_pylist() if file.exists() else []
    if set(graphs) <= set(stored):
        return
    there = _read_graphs(file) if stored else {}
    table, encodings = _graphs_to_table({**there, **graphs})
    with wrap_os_error(DatasetError, f"write {file}"):
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_replace(file) as (part,):
            write_table(table, part, encodings)


def _about_bytes(dataset: Dataset, num_graphs: int, graphs_in: str) -> bytes:
    numbers = (len(dataset.examples), num_graphs, dataset.reader_version)
    own = (FORMAT, dataset.name, dataset.setting, *numbers)
    about = dict(zip(OWN_KEYS, own, strict=True))
    about |= {SHARED_KEY: graphs_in} if graphs_in else {}
    stored = to_dict(dataset.about, where=f"data set {dataset.name!r}: about", error=DatasetError)
    clash = sorted({*OWN_KEYS, SHARED_KEY} & set(stored))
    if clash:
        raise DatasetError(f"data set {dataset.name!r}: `about` must not hold {', '.join(clash)}")
    return json.dumps({**about, **stored}, indent=2).encode() + b"\n"


def _provenance(file: Path, about: Mapping[str, object]) -> Provenance:
    stored = {key: value for key, value in about.items() if key not in (*OWN_KEYS, SHARED_KEY)}
    if stored.get(_ERROR_KEY) == {}:  # of earlier versions, where no error is known
        del stored[_ERROR_KEY]
    return from_json(
        Provenance, stored, where=str(file), error=DatasetError, advice="restore the file"
    )


def _read_about(folder: Path) -> dict[str, Any]:
    file = folder / ABOUT_FILE
    try:
        about = read_json(file)
    except FileNotFoundError:
        moved = moved_to(folder)
        raise DatasetError(
            f"{folder} is no data set: it has no {ABOUT_FILE}; give "
            f"{moved or 'the folder of a data set'}"
        ) from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot read {file}: {error}; restore the file") from error
    number = about.get("format") if isinstance(about, dict) else None
    if not isinstance(number, int):
        raise DatasetError(f"{file} has no format number; give the folder of a data set")
    if number > FORMAT:
        raise DatasetError(
            f"{file} has format {number}, this Driple reads up to {FORMAT}; update Driple"
        )
    for key in ("name", "setting"):
        if not isinstance(about.get(key), str):
            raise DatasetError(f"{file} has no {key!r}; restore the file")
    version = about.get("reader_version", FIRST_READER_VERSION)
    if type(version) is not int or version < FIRST_READER_VERSION:
        raise DatasetError(
            f"{file} has the reader version {version!r}, must be a whole number of 1 or more; "
            "restore the file"
        )
    return dict(about)


def _examples_to_table(examples: tuple[Example, ...], hashes: list[str]) -> pa.Table:
    pa = require_pyarrow()
    targets = np.array([example.targets.flat for example in examples]).reshape(-1, 12)
    columns: dict[str, list[Any]] = {
        "workload": [example.workload for example in examples],
        "family": [example.family for example in examples],
        "setting": [example.setting for example in examples],
        "graph": hashes,
        "iteration_time_s": [float(example.iteration_time_s) for example in examples],
        **{name: targets[:, j].tolist() for j, name in enumerate(TARGET_NAMES)},
        "label_source": [example.label_source for example in examples],
        "details": [json.dumps(example.details) for example in examples],
    }
    schema = pa.schema([(name, _arrow_type(kind)) for name, kind in EXAMPLE_COLUMNS.items()])
    return pa.table(columns, schema=schema)


def _examples_from_table(table: pa.Table, graphs: dict[str, AnyGraph]) -> tuple[Example, ...]:
    for name, kind in EXAMPLE_COLUMNS.items():
        if name not in table.column_names:
            raise DatasetError(f"column {name!r} is missing; write the data set again")
        if table.schema.field(name).type != _arrow_type(kind):
            raise DatasetError(
                f"column {name!r} is of type {table.schema.field(name).type}, must be {kind}"
            )
    return tuple(_example_from_row(row, graphs) for row in table.to_pylist())


def _example_from_row(row: dict[str, Any], graphs: dict[str, AnyGraph]) -> Example:
    for name, value in row.items():
        if value is None and name in EXAMPLE_COLUMNS:
            raise DatasetError(
                f"workload {row['workload']!r}: {name} is empty; measure it again or drop it"
            )
    if row["graph"] not in graphs:
        raise DatasetError(
            f"workload {row['workload']!r}: its graph {row['graph'][:12]} is not in {GRAPHS_FILE}; "
            "restore both files from the same version"
        )
    try:
        details = parse_json(row["details"].encode())
    except ValueError as error:
        raise DatasetError(
            f"workload {row['workload']!r}: details are not JSON ({error}); restore the file"
        ) from error
    values = np.array([row[name] for name in TARGET_NAMES], dtype=np.float64)
    return Example(
        workload=row["workload"],
        family=row["family"],
        setting=row["setting"],
        graph=graphs[row["graph"]],
        targets=Targets(values.reshape(len(RESOURCES), len(FIGURES))),
        iteration_time_s=row["iteration_time_s"],
        label_source=row["label_source"],
        details=details,
    )


def _arrow_type(kind: str) -> Any:
    return require_pyarrow().type_for_alias(kind)
