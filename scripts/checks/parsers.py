"""The parsers of the package, each called in this process on bytes, with small valid inputs.

PARSERS: name -> Parser; `seeds` makes the valid inputs, `parse` reads one

`file_readers` has the readers of files as the command line reaches them; here are the parsers below
them, and those that no command reads a single file with.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.checks.file_readers import EXAMPLE, READERS, ROOT

__all__ = ["PARSERS", "Parser"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parser:
    """What reads one kind of input.

    Attributes:
        form: of the damage, see `mutations.FORMATS`.
        seeds: the valid inputs, in a fixed order; the folder is its own.
        parse: reads an input; the folder is its own. It raises a `DripleError`, or `refuses`.
        refuses: errors that its callers turn into a `DripleError`.
    """

    form: str
    seeds: Callable[[Path], Sequence[bytes]]
    parse: Callable[[bytes, Path], object]
    refuses: tuple[type[Exception], ...] = ()


def _of_reader(name: str) -> Callable[[Path], list[bytes]]:
    """The valid files of a reader of the command line."""
    return lambda folder: [seed.data for seed in READERS[name].seeds(folder)]


def _in_file(suffix: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """A parser that takes a path."""

    def parse(data: bytes, folder: Path) -> object:
        file = folder / f"a{suffix}"
        file.write_bytes(data)
        return read(file)

    return parse


def _parse_json(data: bytes, _: Path) -> object:
    from driple.storedfiles import parse_json

    return parse_json(data)


def _arrays(data: bytes, _: Path) -> object:
    from driple.storedfiles import arrays_of

    return arrays_of(data, ("a", "b", "names"), 1 << 20)


def _npz(_: Path) -> list[bytes]:
    import numpy as np

    files = []
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, a=np.arange(5), b=np.ones((2, 3)), names=np.array(["x", "yy"]))
        files.append(file.getvalue())
    return files


def _yaml(data: bytes, _: Path) -> object:
    from driple.plainyaml import read_plain_yaml

    return read_plain_yaml(data.decode(errors="replace"), "a.yaml")


def _cluster(file: Path) -> object:
    from driple.catalog import shipped_hardware
    from driple.cluster.cluster_file import read_cluster_file

    return read_cluster_file(file, shipped_hardware())


def _catalogue(file: Path) -> object:
    from driple.catalog.rows import read_file

    return read_file(file)


def _machine(file: Path) -> object:
    from driple.catalog.machine_file import read_machine

    return read_machine(file)


def _runs(file: Path) -> object:
    from driple.runs.users_table import read_runs

    return read_runs(file)


def _nccl_table(file: Path) -> object:
    from driple.cluster.nccl_table import read_nccl_table

    return read_nccl_table(file)


def _nccl_seeds(_: Path) -> list[bytes]:
    folder = ROOT / "tests" / "data" / "nccl"
    return [file.read_bytes() for file in sorted(folder.glob("*.txt"))]


def _job_trace(file: Path) -> object:
    from driple.async_sgd.jobtrace import read_job_trace

    return read_job_trace(file)


def _stored_graph(data: bytes, _: Path) -> object:
    from driple.graph.stored_graph import graph_from_stored

    return graph_from_stored(data, "a graph")


def _stored_graphs(_: Path) -> list[bytes]:
    from driple.graph import read_graph
    from driple.graph.stored_graph import graph_to_bytes

    return [graph_to_bytes(read_graph(EXAMPLE))]


def _graph(file: Path) -> object:
    from driple.graph import read_graph

    return read_graph(file)


def _checkpoint(file: Path) -> object:
    from driple.inspector.checkpoint import load_checkpoint

    return load_checkpoint(file)


def _hf_config(data: bytes, folder: Path) -> object:
    from driple.jobs.hf_config import hf_config_of

    return hf_config_of(data, folder / "config.json", "hf:a")


def _training_config(file: Path) -> object:
    from driple.jobs.training_config.read import read_training_config

    return read_training_config(file)


def _links(file: Path) -> object:
    from driple.profiler.linkfit import read_channels

    return read_channels(file)


def _link_seeds(folder: Path) -> list[bytes]:
    link = {"name": "a", "latency_s": 1e-4, "bytes_per_s": 1e9, "latency_per": "gradient",
            "overlap": True}  # fmt: skip
    return [json.dumps({"format": 1, "links": [link]}).encode()]


def _marks(file: Path) -> object:
    from driple.measure.record.marked import read_marks

    return list(read_marks(file.parent))


def _mark_seeds(_: Path) -> list[bytes]:
    times = [10**9 + 10**7 * step for step in range(20)]
    return [b"DRPSTEPS" + struct.pack("<22q", 4242, 0, *times)]


def _record_file(name: str) -> Callable[[bytes, Path], object]:
    """A record of which one file is damaged."""

    def parse(data: bytes, folder: Path) -> object:
        from driple.measure.record.store import read_record

        for file in (folder.parent / "seeds" / "record").iterdir():
            if file.is_file():
                (folder / file.name).write_bytes(file.read_bytes())
        (folder / name).write_bytes(data)
        return read_record(folder)

    return parse


def _record_seeds(name: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        from tests.measure.record.test_store import _record

        return [(_record(folder / "record") / name).read_bytes()]

    return seeds


def _fold(file: Path) -> object:
    from driple.evaluation.foldfiles import read_fold

    return read_fold(file)


def _web_json(data: bytes, _: Path) -> object:
    from driple.web.bodies import json_of
    from driple.web.sources import source_of

    return source_of(json_of(data).get("job"))


def _web_form(data: bytes, _: Path) -> object:
    from driple.web.bodies import form_of

    return form_of(data, "multipart/form-data; boundary=xx")


_FORM = (
    b'--xx\r\ncontent-disposition: form-data; name="job"\r\n\r\nresnet50\r\n'
    b'--xx\r\ncontent-disposition: form-data; name="file"; filename="a.pb"\r\n\r\n\x00\x01\r\n'
    b"--xx--\r\n"
)
_REQUESTS = (
    b'{"job": "resnet50", "clusters": ["1xA100"], "options": {"batch_size": 8}}',
    b'{"job": {"config": {"model_type": "gpt2", "n_layer": 1}}, "clusters": ["8xH100"]}',
    b'{"job": {"graph": "AAEC"}, "clusters": ["8xH100"]}',
)
_MACHINE = ROOT / "docs" / "machine.toml"

PARSERS: dict[str, Parser] = {
    "json": Parser(
        form="json", seeds=lambda _: list(_REQUESTS), parse=_parse_json, refuses=(ValueError,)
    ),
    "npz": Parser(form="binary", seeds=_npz, parse=_arrays, refuses=(ValueError,)),
    "yaml": Parser(form="text", seeds=_of_reader("cluster"), parse=_yaml),
    "cluster": Parser(form="text", seeds=_of_reader("cluster"), parse=_in_file(".yaml", _cluster)),
    "catalogue": Parser(
        form="text", seeds=_of_reader("catalogue"), parse=_in_file(".toml", _catalogue)
    ),
    "machine": Parser(
        form="text", seeds=lambda _: [_MACHINE.read_bytes()], parse=_in_file(".toml", _machine)
    ),
    "runs": Parser(form="text", seeds=_of_reader("runs"), parse=_in_file(".csv", _runs)),
    "nccl-table": Parser(form="text", seeds=_nccl_seeds, parse=_in_file(".txt", _nccl_table)),
    "training-config": Parser(
        form="json",
        seeds=lambda folder: _of_reader("training-config")(folder)[:2],  # the third is TOML
        parse=_in_file(".yaml", _training_config),
    ),
    "hugging-face": Parser(form="json", seeds=_of_reader("hugging-face"), parse=_hf_config),
    "tensorflow-binary": Parser(
        form="binary", seeds=_of_reader("tensorflow-binary"), parse=_in_file(".pb", _graph)
    ),
    "tensorflow-text": Parser(
        form="text", seeds=_of_reader("tensorflow-text"), parse=_in_file(".pbtxt", _graph)
    ),
    "stored-graph": Parser(form="binary", seeds=_stored_graphs, parse=_stored_graph),
    "checkpoint": Parser(
        form="safetensors",
        seeds=_of_reader("checkpoint"),
        parse=_in_file(".safetensors", _checkpoint),
    ),
    "job-trace": Parser(
        form="binary", seeds=_of_reader("job-trace"), parse=_in_file(".npz", _job_trace)
    ),
    "links": Parser(form="json", seeds=_link_seeds, parse=_in_file(".json", _links)),
    "marks": Parser(form="binary", seeds=_mark_seeds, parse=_in_file(".steps", _marks)),
    "record-head": Parser(
        form="json", seeds=_record_seeds("record.json"), parse=_record_file("record.json")
    ),
    "record-samples": Parser(
        form="binary", seeds=_record_seeds("samples.bin"), parse=_record_file("samples.bin")
    ),
    "web-json": Parser(form="json", seeds=lambda _: list(_REQUESTS), parse=_web_json),
    "web-form": Parser(form="binary", seeds=lambda _: [_FORM], parse=_web_form),
}
