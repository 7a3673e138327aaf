"""Checkpoints: what is saved comes back, and everything else is one line that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driple.errors import CheckpointError
from driple.features.features import CONTEXT_NAMES
from driple.inspector import checkpoint as module
from driple.inspector.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from driple.inspector.config import InspectorConfig
from driple.inspector.predict import Predictor
from driple.inspector.trained_on import TrainedOn

from .examples import checkpoint_of, random_input, random_inspector


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    config = InspectorConfig(hidden=4, num_context=len(CONTEXT_NAMES), readout="mean", depth=2)
    return checkpoint_of(random_inspector(config, 6), 6)


@pytest.fixture(scope="module")
def data(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("checkpoint") / "c.safetensors"
    save_checkpoint(checkpoint, path)
    return path.read_bytes()


def refused(data: bytes, folder: Path) -> str:
    """The message with which a file of these bytes is refused."""
    path = folder / "odd.safetensors"
    path.write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def with_metadata(data: bytes, change: Callable[[dict[str, object]], None]) -> bytes:
    """The same weights with changed metadata."""
    length = int.from_bytes(data[:8], "little")
    fields = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["driple"])
    change(fields)
    weights = safetensors.numpy.load(data)
    return safetensors.numpy.save(weights, metadata={"driple": json.dumps(fields)})


def with_weights(data: bytes, change: Callable[[dict[str, np.ndarray]], None]) -> bytes:
    """The same metadata with changed weights."""
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    weights = safetensors.numpy.load(data)
    change(weights)
    return safetensors.numpy.save(weights, metadata=metadata)


def test_round_trip(checkpoint: Checkpoint, data: bytes, tmp_path: Path) -> None:
    """Everything comes back to the last bit, and predicts the same."""
    path = tmp_path / "c.safetensors"
    path.write_bytes(data)
    again = load_checkpoint(path)
    assert list(tmp_path.iterdir()) == [path]
    for field in ("config", "input_config", "num_groups", "op_type_table", "setting", "format"):
        assert getattr(again, field) == getattr(checkpoint, field)
    for field in ("provenance", "trained_on", "metrics", "preset", "versions"):
        assert getattr(again, field) == getattr(checkpoint, field)
    assert set(again.weights) == set(checkpoint.weights)
    inputs = [random_input(0, 6, len(CONTEXT_NAMES))]
    first, two = (Predictor(c).predict_inputs(inputs) for c in (checkpoint, again))
    assert first.tobytes() == two.tobytes()


def test_versions_of_reader_and_features_are_stored(
    checkpoint: Checkpoint, data: bytes, tmp_path: Path
) -> None:
    """They come back; a file from before they were written is of the first version of both."""
    path = tmp_path / "c.safetensors"
    save_checkpoint(replace(checkpoint, reader_version=7, features_version=5), path)
    again = load_checkpoint(path)
    assert (again.reader_version, again.features_version) == (7, 5)

    def without(fields: dict[str, object]) -> None:
        del fields["reader_version"], fields["features_version"]

    path.write_bytes(with_metadata(data, without))
    old = load_checkpoint(path)
    assert (old.reader_version, old.features_version) == (1, 1)
    for odd in (0, -1, 2.5, "2", True):
        damaged = with_metadata(data, lambda fields, odd=odd: fields.update(reader_version=odd))
        assert "reader_version" in refused(damaged, tmp_path)


@pytest.mark.parametrize("number", [1, 2])
def test_files_of_formats_before_predict_the_same(
    checkpoint: Checkpoint, data: bytes, tmp_path: Path, number: int
) -> None:
    """Format 1 knew sizes as the only context, and one member; format 2 had no residuals."""

    def as_before(fields: Any) -> None:
        fields["format"] = number
        del fields["residuals"]
        if number == 1:
            fields["input"]["context"] = True
            del fields["inspector"]["members"], fields["law"], fields["intervals"]

    path = tmp_path / "c.safetensors"
    path.write_bytes(with_metadata(data, as_before))
    again = load_checkpoint(path)
    assert again.input_config == checkpoint.input_config
    inputs = [random_input(0, 6, len(CONTEXT_NAMES))]
    before, now = (Predictor(c).predict_inputs(inputs) for c in (again, checkpoint))
    assert before.tobytes() == now.tobytes()


def test_saving_twice_gives_the_same_bytes(
    checkpoint: Checkpoint, data: bytes, tmp_path: Path
) -> None:
    """No time, no path, no random order in the file; an old file is replaced."""
    path = tmp_path / "c.safetensors"
    path.write_bytes(b"old")
    save_checkpoint(checkpoint, path)
    assert path.read_bytes() == data


def test_files_that_are_no_checkpoint(data: bytes, tmp_path: Path) -> None:
    """Missing, a folder, empty, text, cut short, too long, a header that claims too much."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(CheckpointError, match="cannot be read"):
            load_checkpoint(path)
    assert "no safetensors file" in refused(b"", tmp_path)
    assert "no safetensors file" in refused(b"node { name: 'x' }", tmp_path)
    assert "truncated or corrupt" in refused(data[:-1], tmp_path)
    assert "truncated or corrupt" in refused(data[:100], tmp_path)
    assert "truncated or corrupt" in refused(data + b"\0", tmp_path)
    assert "claims" in refused((2**40).to_bytes(8, "little") + data[8:], tmp_path)
    assert "no JSON" in refused((9).to_bytes(8, "little") + b"{not json", tmp_path)
    deep = b'{"a":' + b"[" * 100_000
    assert "no JSON" in refused(len(deep).to_bytes(8, "little") + deep, tmp_path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """A sparse file beyond the limit is refused by its size."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(module.MAX_FILE_BYTES + 1)
    with pytest.raises(CheckpointError, match="no checkpoint has more"):
        load_checkpoint(path)


def test_foreign_safetensors_files(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Without metadata, without ours, and with ours that is no JSON or no object."""
    weights = checkpoint.weights
    assert "without Driple's metadata" in refused(safetensors.numpy.save(weights), tmp_path)
    for text, expected in (("{", "no JSON"), ("[]", "no JSON object"), ('{"a": NaN}', "no JSON")):
        odd = safetensors.numpy.save(weights, metadata={"driple": text})
        assert expected in refused(odd, tmp_path)


def test_keys_that_stand_twice_are_refused(data: bytes, tmp_path: Path) -> None:
    """In the header and in Driple's metadata: the last one would win, whatever the first says."""
    length = int.from_bytes(data[:8], "little")
    header, weights = data[8 : 8 + length], data[8 + length :]
    for written, twice, key in (
        (b'{"__metadata__"', b'{"__metadata__":{},"__metadata__"', "__metadata__"),
        (b'\\"format\\": 3', b'\\"format\\": 99, \\"format\\": 3', "format"),
    ):
        assert header.count(written) == 1
        damaged = header.replace(written, twice)
        damaged += b" " * (-len(damaged) % 8)
        words = refused(len(damaged).to_bytes(8, "little") + damaged + weights, tmp_path)
        assert f"the key '{key}' stands twice" in words


def test_a_newer_format_says_what_to_do(data: bytes, tmp_path: Path) -> None:
    """Its number, what this Driple reads, and to upgrade; even if all else is unknown."""
    message = refused(with_metadata(data, lambda m: (m.clear(), m.update(format=7))), tmp_path)
    assert "format 7, this Driple reads up to 3; upgrade" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", None),
        ("format", "1"),
        ("format", True),
        ("format", 0),
        ("setting", 3),
        ("provenance", "guessed"),
        ("targets", ["net_tx.burst_amount"]),
        ("num_groups", 0),
        ("num_groups", 10**12),
        ("num_groups", 2.5),
        ("inspector", None),
        ("inspector", {"layer": "gcn"}),
        ("input", []),
        ("op_type_table", {"Add": "x"}),
        ("op_type_table", {"Add": True}),
        ("metrics", {"nrmse": 10**400}),
        ("input_scaler", {"kind": "identity"}),
        ("target_scaler", {}),
        (
            "target_scaler",
            {"kind": "max", "offset": [10**400] * 12, "scale": [1] * 12, "floor": [0] * 12},
        ),
        ("trained_on", 5),
        ("versions", {"torch": 2}),
        ("preset", None),
    ],
)
def test_odd_metadata_is_refused(name: str, value: object, data: bytes, tmp_path: Path) -> None:
    """Missing or of another type, each told in one line."""

    def change(fields: dict[str, object]) -> None:
        fields.pop(name)
        if value is not None:
            fields[name] = value

    refused(with_metadata(data, change), tmp_path)


@pytest.mark.parametrize(
    ("field", "value"), [("hidden", 5000), ("hidden", 8), ("depth", 10**7), ("num_context", 0)]
)
def test_sizes_that_do_not_fit_are_refused(
    field: str, value: int, data: bytes, tmp_path: Path
) -> None:
    """Absurd sizes, and sizes that the weights do not have."""

    def change(fields: dict[str, object]) -> None:
        inspector = fields["inspector"]
        assert isinstance(inspector, dict)
        inspector[field] = value

    refused(with_metadata(data, change), tmp_path)


def test_odd_weights_are_refused(data: bytes, tmp_path: Path) -> None:
    """Missing, surplus, of another shape or type, NaN, infinite: the message names the weight."""
    name = "mlp.0.bias"

    def put(value: np.ndarray) -> Callable[[dict[str, np.ndarray]], None]:
        return lambda weights: weights.update({name: value})

    assert "lacks the weights mlp.0.bias" in refused(
        with_weights(data, lambda w: w.pop(name)), tmp_path
    )
    surplus = with_weights(data, lambda w: w.update(extra=np.zeros(1, np.float32)))
    assert "surplus weights extra" in refused(surplus, tmp_path)
    assert "(3,)" in refused(with_weights(data, put(np.zeros(3, np.float32))), tmp_path)
    assert "F64" in refused(with_weights(data, put(np.zeros(4))), tmp_path)
    for bad in (np.nan, np.inf):
        odd = with_weights(data, put(np.array([bad, 0, 0, 0], dtype=np.float32)))
        assert "NaN or infinity" in refused(odd, tmp_path)


def test_what_could_not_be_loaded_is_not_saved(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """NaN, other types and shapes, and things that are no JSON leave no file behind."""
    path = tmp_path / "c.safetensors"
    bad_weights = {**checkpoint.weights, "mlp.0.bias": np.full(4, np.nan, dtype=np.float32)}
    for odd in (
        replace(checkpoint, weights=bad_weights),
        replace(checkpoint, weights={}),
        replace(checkpoint, metrics={"nrmse": float("nan")}),
        replace(checkpoint, trained_on=TrainedOn(others={"share": float("nan")})),
        replace(checkpoint, provenance="guessed"),
        replace(checkpoint, num_groups=0),
    ):
        with pytest.raises(CheckpointError, match="not written"):
            save_checkpoint(odd, path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is one line; the old checkpoint stays and nothing half-written."""
    path = tmp_path / "c.safetensors"
    path.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        save_checkpoint(checkpoint, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(CheckpointError, match=r"cannot write .*No such file"):
        save_checkpoint(checkpoint, tmp_path / "none" / "c.safetensors")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(draw=st.data())
def test_damaged_files_are_refused_or_still_whole(
    data: bytes, tmp_path: Path, draw: st.DataObject
) -> None:
    """Flipped, cut, doubled and overwritten bytes: a CheckpointError, or a finite checkpoint."""
    damaged = bytearray(data)
    header = 8 + int.from_bytes(data[:8], "little")
    for _ in range(draw.draw(st.integers(1, 4))):
        end = draw.draw(st.sampled_from([16, header, len(damaged)]))
        place = draw.draw(st.integers(0, max(0, min(end, len(damaged)) - 1)))
        kind = draw.draw(st.sampled_from(["flip", "cut", "insert", "delete"]))
        if kind == "flip" and damaged:
            damaged[place] ^= 1 << draw.draw(st.integers(0, 7))
        elif kind == "cut":
            del damaged[place:]
        elif kind == "insert":
            damaged[place:place] = draw.draw(st.binary(min_size=1, max_size=8))
        else:
            del damaged[place : place + draw.draw(st.integers(1, 8))]
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(bytes(damaged))
    try:
        loaded = load_checkpoint(path)
    except CheckpointError as error:
        assert "\n" not in str(error)
        return
    assert all(np.isfinite(weight).all() for weight in loaded.weights.values())
    assert isinstance(loaded.config, InspectorConfig)


@pytest.mark.parametrize(
    "ranges",
    [[], 3, {"a": 1}, {"a": [1]}, {"a": [2, 1]}, {"a": [{}, 1]}, {"a": [True, 2]}, {"a": [0, "x"]}],
)
def test_ranges_that_are_none_are_refused(ranges: object) -> None:
    """What is recorded of the training graphs is compared with each graph."""
    fields: dict[str, object] = {"trained_on": {"range": ranges}}
    with pytest.raises(CheckpointError, match=r"trained_on\.range"):
        module._trained_on(fields)
    assert module._trained_on({"trained_on": {"range": {"a": [1, 2.5]}}})
    assert module._trained_on({"trained_on": {}}) == TrainedOn()
