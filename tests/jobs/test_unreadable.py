"""Files that are no graph: what each is, by its content, and the way that leads to an answer."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from driple.errors import GraphError
from driple.jobs.load import load_job


class Marks:
    """Writes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.file), "w")


def refused(path: Path) -> str:
    with pytest.raises(GraphError) as raised:
        load_job(str(path))
    line = str(raised.value)
    assert line.startswith(f"{path} is ")
    assert "\n" not in line
    return line


def test_checkpoints_of_torch_and_pickles_are_never_unpickled(tmp_path: Path) -> None:
    import torch

    marker = tmp_path / "ran"
    for name, new in (("a.pt", True), ("a.pth", False), ("pytorch_model.bin", True)):
        torch.save({"x": Marks(marker)}, tmp_path / name, _use_new_zipfile_serialization=new)
        line = refused(tmp_path / name)
        assert "checkpoint of PyTorch" in line
        assert "FILE.py:FUNCTION" in line
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(Marks(marker)))
    assert "Python pickle" in refused(tmp_path / "a.pkl")
    assert not marker.exists()


def test_files_of_other_programs_say_what_they_are(tmp_path: Path) -> None:
    import torch
    from safetensors.numpy import save_file

    save_file({"w": np.zeros(3)}, tmp_path / "model.safetensors")
    assert "weights (safetensors)" in refused(tmp_path / "model.safetensors")
    (tmp_path / "renamed.pb").write_bytes((tmp_path / "model.safetensors").read_bytes())
    assert "weights (safetensors)" in refused(tmp_path / "renamed.pb")
    (tmp_path / "a.gguf").write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(64))
    assert "GGUF" in refused(tmp_path / "a.gguf")
    (tmp_path / "a.tflite").write_bytes(b"\x1c\x00\x00\x00TFL3" + bytes(64))
    assert "TensorFlow Lite" in refused(tmp_path / "a.tflite")
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    assert "driple sweep" in refused(tmp_path / "a.npz")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "script.pt")
    assert "TorchScript" in refused(tmp_path / "script.pt")
    (tmp_path / "damaged.pt").write_bytes(b"PK\x03\x04" + bytes(50))
    assert "damaged zip" in refused(tmp_path / "damaged.pt")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as parts:
        parts.writestr("readme.txt", "")
    assert "zip archive without a model" in refused(tmp_path / "a.zip")


def test_keras_files_name_the_function_that_writes_a_training_step(tmp_path: Path) -> None:
    import h5py

    with zipfile.ZipFile(tmp_path / "a.keras", "w") as parts:  # as keras.Model.save lays it out
        for name in ("metadata.json", "config.json", "model.weights.h5"):
            parts.writestr(name, "{}")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = [1.0]
    for name in ("a.keras", "a.h5"):
        assert "driple.tensorflow.training_graph(model, batch)" in refused(tmp_path / name)


def test_python_files_and_configs_say_how_they_are_given(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("raise SystemExit\ndef main(): ...\ndef build_model(): ...\ndef _x(): ...\n")
    line = refused(file)
    assert f"such as {file}:build_model; without arguments it has build_model" in line
    assert "executed" in line
    (tmp_path / "broken.py").write_text("def (")
    assert "FUNCTION" in refused(tmp_path / "broken.py")
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "bert"}')
    assert f"give hf:{config}" in refused(config)
    assert f"give hf:{tmp_path}" in refused(tmp_path)


def test_folders_that_are_none_of_these(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"")
    assert "folder with weights (model.safetensors)" in refused(weights)
    checkpoint = tmp_path / "tf"
    checkpoint.mkdir()
    for name in ("checkpoint", "model.ckpt-1.index", "model.ckpt-1.data-00000-of-00001"):
        (checkpoint / name).write_bytes(b"x")
    assert "TensorFlow checkpoints" in refused(checkpoint)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(GraphError, match="directory without a SavedModel"):
        load_job(str(empty))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("train.ipynb", '{"cells": [], "nbformat": 4}', "a notebook"),
        ("package.json", '{"name": "x"}', "no model's config"),
        ("sft.yaml", "model: gpt2\n", "--training-config"),
        ("torchtitan.toml", "[model]\nname = 'x'\n", "--training-config"),
        ("README.md", "# A model\n", "a text and no model"),
        ("net.prototxt", 'name: "AlexNet"\n', "Caffe"),
    ],
)
def test_texts_that_are_no_graph_are_not_asked_to_be_one(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    assert words in refused(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "words"),
    [("adapter_config.json", "an adapter without its base"), ("model_index.json", "diffusers")],
)
def test_folders_of_other_libraries_say_what_they_are(
    tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / name).write_text("{}")
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    assert words in refused(tmp_path)
