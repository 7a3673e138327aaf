"""Files that are no graph: what each is, by its content, and which way leads to an answer.

begin of the file, names in its archive -> one line; nothing is unpacked, unpickled or executed
"""

from __future__ import annotations

import ast
import json
import zipfile
from itertools import islice
from pathlib import Path

from driple.errors import ConfigError, GraphError
from driple.storedfiles import read_bytes

__all__ = ["refuse_foreign"]

_SNIFFED_BYTES = 4096
_MOST_SOURCE_BYTES = 2**20
_MOST_NAMES = 2000  # of an archive or a folder
_SHOWN = 5
_BUILDER = (
    "write a function that builds the model, and give FILE.py:FUNCTION; for a model of Hugging "
    "Face give hf:FOLDER with its config.json"
)
_KERAS = (
    "write its training step with driple.tensorflow.training_graph(model, batch), and give that "
    "file"
)
_JOB = "a job is a graph file, a model or a name"
_WEIGHT_FILES = (".safetensors", ".bin", ".pt", ".pth", ".gguf")


def refuse_foreign(path: Path) -> None:
    """Refuse a file or folder whose content shows that it is no TensorFlow graph.

    Args:
        path: exists.

    Raises:
        GraphError: what it is, and which way leads to an answer.
    """
    try:
        words = _folder_words(path) if path.is_dir() else _file_words(path)
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror or error}; give a graph file") from error
    if words:
        raise GraphError(f"{path} is {words}")


def _folder_words(folder: Path) -> str:
    names = {item.name for item in islice(folder.iterdir(), _MOST_NAMES)}
    weights = sorted(name for name in names if name.endswith(_WEIGHT_FILES))
    checkpoint = "checkpoint" in names and any(name.endswith(".index") for name in names)
    kinds = (
        (bool(names & {"saved_model.pb", "saved_model.pbtxt"}), ""),
        (
            "model_index.json" in names,
            f"a folder of a diffusers pipeline, whose models Driple does not read; {_BUILDER}",
        ),
        (
            "adapter_config.json" in names,
            "an adapter without its base model; write a function that builds the base model with "
            "the adapter, and give FILE.py:FUNCTION",
        ),
        (
            "config.json" in names and _is_model_config(folder / "config.json"),
            f"a folder of a Hugging Face model; give hf:{folder}",
        ),
        (
            bool(weights),
            f"a folder with weights ({', '.join(weights[:1])}) and no model; {_BUILDER}",
        ),
        (
            checkpoint,
            "a folder of TensorFlow checkpoints, which hold weights; give its .meta file, or the "
            "graph of the train step",
        ),
    )
    return next((words for fits, words in kinds if fits), "")


def _file_words(file: Path) -> str:
    if not file.is_file():
        return ""  # pipes are read as graphs
    with file.open("rb") as stream:
        begin = stream.read(_SNIFFED_BYTES)
    if begin.startswith(b"PK\x03\x04"):
        return _archive_words(file)
    words = next((words for magic, words in _MAGIC if begin.startswith(magic)), "")
    suffix = file.suffix.lower()
    if not words and suffix in _TEXTS and not _is_model_config(file):
        words = _TEXTS[suffix]
    elif not words and _is_safetensors(begin):
        words = f"weights (safetensors) and no model; {_BUILDER}"
    elif not words and begin[4:8] == b"TFL3":
        words = (
            "a TensorFlow Lite model, which only infers; give the graph of the train step that it "
            "was converted from"
        )
    elif not words and suffix == ".py":
        words = _python_words(file)
    elif not words and suffix == ".json" and _is_model_config(file):
        words = f"the config of a Hugging Face model; give hf:{file}"
    elif not words and suffix == ".index" and b"\x00" in begin:
        words = "the index of a TensorFlow checkpoint, with weights; give the .meta file beside it"
    return words


_SETTINGS = (
    "a file of settings and no model; name the model, and give the settings of its training with "
    "--training-config"
)
_TEXTS = {
    ".ipynb": (
        "a notebook; save the function that builds its model in FILE.py, and give FILE.py:FUNCTION"
    ),
    ".json": f"JSON and no model's config, as it has no model_type; {_JOB}",
    **dict.fromkeys((".yaml", ".yml", ".toml", ".cfg", ".ini"), _SETTINGS),
    **dict.fromkeys((".md", ".csv", ".tsv", ".log", ".html"), f"a text and no model; {_JOB}"),
    ".prototxt": f"a network of Caffe, which Driple does not read; {_BUILDER}",
}
_PICKLE = f"a Python pickle, such as a checkpoint of PyTorch; no pickle is read: {_BUILDER}"
_MAGIC = (
    (b"\x89HDF\r\n\x1a\n", f"an HDF5 file, such as a Keras model or its weights; {_KERAS}"),
    (b"GGUF", f"weights of llama.cpp (GGUF), which only infers; {_BUILDER}"),
    *((b"\x80" + bytes([protocol]), _PICKLE) for protocol in range(2, 6)),
    (b"PAR1", f"a Parquet table; {_JOB}"),
    (b"\x93NUMPY", f"a NumPy array; {_JOB}"),
    (b"%PDF", f"a PDF document; {_JOB}"),
)


def _is_safetensors(begin: bytes) -> bool:
    """Whether it begins with eight bytes of length, then a JSON object, as safetensors do."""
    length = int.from_bytes(begin[:8], "little")
    return 2 <= length < 2**30 and begin[8:9] == b"{" and begin[9:10] in (b'"', b"}", b" ")


def _archive_words(file: Path) -> str:
    try:
        with zipfile.ZipFile(file) as parts:
            names = {one.filename for one in parts.infolist()[:_MOST_NAMES]}
    except (zipfile.BadZipFile, ValueError, RuntimeError, NotImplementedError):
        return "a damaged zip archive; copy it again"
    inner = {name.partition("/")[2] for name in names} | names
    ends = ("archive_format", "serialized_exported_program.json")
    kinds = (
        (
            {"config.json", "metadata.json"} <= names,
            f"a Keras model, which holds no training step; {_KERAS}",
        ),
        (
            "constants.pkl" in inner,
            f"a TorchScript archive, which only infers and is never executed; {_BUILDER}",
        ),
        (
            any(name.endswith(ends) for name in names),
            f"a program of torch.export, which only infers; {_BUILDER}",
        ),
        (
            "data.pkl" in inner,
            f"a checkpoint of PyTorch, which holds weights and no model; {_BUILDER}",
        ),
        (
            all(name.endswith(".npy") for name in names),
            f"an archive of NumPy arrays; driple sweep reads a job trace, and else {_JOB}",
        ),
        (True, f"a zip archive without a model that Driple knows; {_JOB}"),
    )
    return next(words for fits, words in kinds if fits)


def _python_words(file: Path) -> str:
    """Which function or class of a Python file builds its model; it is parsed, not executed."""
    source = read_bytes(file, _MOST_SOURCE_BYTES)
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        body = []  # still a Python file
    functions = [
        one.name
        for one in body
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_") and not _needs(one)
    ]
    networks = [one.name for one in body if isinstance(one, ast.ClassDef) and _is_network(one)]
    # A network that others are made of stands before them.
    known = [
        *(name for name in functions if "model" in name.lower()),
        *reversed(networks),
        *(name for name in functions if "model" not in name.lower() and name not in _PROGRAMS),
    ]
    has = f"; without arguments it has {', '.join(known[:_SHOWN])}" if known else ""
    return (
        "Python: name the function or class that builds your model, such as "
        f"{file}:{known[0] if known else 'FUNCTION'}{has}. The file is then executed"
    )


def _needs(function: ast.FunctionDef, given: int = 0) -> bool:
    """Whether a function has an argument without a default, besides some that are given."""
    known = function.args
    positional = len(known.posonlyargs) + len(known.args) - given
    return positional > len(known.defaults) or None in known.kw_defaults


def _is_network(definition: ast.ClassDef) -> bool:
    """Whether a class is a module of PyTorch that is built without arguments."""
    bases = {ast.unparse(base).rpartition(".")[2] for base in definition.bases}
    makers = [
        one
        for one in definition.body
        if isinstance(one, ast.FunctionDef) and one.name == "__init__"
    ]
    return bool(bases & _NETWORKS) and not any(_needs(one, given=1) for one in makers)


_PROGRAMS = frozenset({"main", "train", "run", "test", "evaluate", "parse_args", "get_args"})
_NETWORKS = frozenset({"Module", "Sequential", "LightningModule", "PreTrainedModel"})


def _is_model_config(file: Path) -> bool:
    """Whether a JSON file is a model's config.json."""
    try:
        content = json.loads(read_bytes(file, _MOST_SOURCE_BYTES))
    except (OSError, ValueError, RecursionError, ConfigError):
        return False
    return isinstance(content, dict) and ("model_type" in content or "architectures" in content)
