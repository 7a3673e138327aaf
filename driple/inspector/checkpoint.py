"""A trained inspector as one file: safetensors weights, and all the rest as JSON in its header.

    Checkpoint --save_checkpoint--> FILE --load_checkpoint--> Checkpoint

The file contains everything needed to predict: structure, grouping, op-type table, scalers, order
of the targets, setting, provenance of the labels, metrics. No pickle, no classes. Loading checks
names, shapes, types and values of everything, and reports an error in one line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from driple.codec import from_json, to_dict
from driple.errors import CheckpointError, ConfigError, upgrade_hint
from driple.features.config import InputConfig
from driple.features.version import FEATURES_VERSION, FIRST_FEATURES_VERSION
from driple.files import atomic_write
from driple.graph.version import FIRST_READER_VERSION, READER_VERSION
from driple.inspector.config import InspectorConfig
from driple.inspector.cost_prior import CostPrior
from driple.inspector.intervals import Intervals
from driple.inspector.metadata import numbers_of, object_of, text_of, version_of
from driple.inspector.residuals import Residuals
from driple.inspector.scaling import InputScaler, TargetScaler
from driple.inspector.shapes import weight_shapes
from driple.inspector.trained_on import TrainedOn
from driple.storedfiles import is_lfs_pointer, lfs_advice, parse_json, read_bytes
from driple.trace.targets import NUM_TARGETS, TARGET_NAMES

__all__ = ["FORMAT", "PROVENANCES", "Checkpoint", "load_checkpoint", "save_checkpoint"]

FORMAT = 3
PROVENANCES = ("measured", "simulated", "published")

# The largest inspector that the configuration makes sense of has a few million weights.
MAX_FILE_BYTES = 256 * 2**20
MAX_HEADER_BYTES = 16 * 2**20
_METADATA_KEY = "driple"
_TRAINED_ON = "trained_on"
_KNOWN = "intervals.known"
_RESIDUALS = ("residuals.learned", "residuals.coefficients")


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A trained inspector and all that belongs to it.

    Attributes:
        weights: float32 arrays by the names of the torch model's state (`shapes.weight_shapes`).
        config: structure of the inspector.
        input_config: how its inputs are built.
        num_groups: M of the inspector, from which its depth follows.
        op_type_table: encoding of each op type.
        input_scaler: scale of features and context.
        target_scaler: scale of the targets.
        law: what its outputs are ratios to; None where they are the targets themselves.
        residuals: what is added to its outputs near to graphs that it has learned; None without.
        intervals: how wrong it is, on known and on unknown kinds of graphs; None if not calibrated.
        setting: cluster setting, such as `V100-P1w2/ho-PCIe`.
        provenance: where the labels come from: `measured`, `simulated` or `published`.
        trained_on: data set, number of workloads, date and sources.
        metrics: errors on the test split, by name.
        preset: preset it was trained with.
        versions: versions of what trained it, by name.
        num_tuned: repeated graph layers, counted from the last, whose weights were tuned for this
            setting; 0 for an inspector that was not transferred.
        format: format number of the file.
        reader_version: version of the reader that made the graphs that it learned from.
        features_version: version of the features that it learned from.
    """

    weights: dict[str, npt.NDArray[np.float32]]
    config: InspectorConfig
    input_config: InputConfig
    num_groups: int
    op_type_table: dict[str, float]
    input_scaler: InputScaler
    target_scaler: TargetScaler
    setting: str
    provenance: str
    trained_on: TrainedOn
    metrics: dict[str, float]
    preset: str
    versions: dict[str, str]
    law: CostPrior | None = None
    residuals: Residuals | None = None
    intervals: Intervals | None = None
    num_tuned: int = 0
    format: int = FORMAT
    reader_version: int = READER_VERSION
    features_version: int = FEATURES_VERSION


def save_checkpoint(checkpoint: Checkpoint, path: str | Path) -> None:
    """Write the checkpoint; the file appears whole or not at all.

    Raises:
        CheckpointError: weights or metadata that `load_checkpoint` would refuse, or a file that
            cannot be written.
    """
    target = Path(path)
    try:
        metadata = json.dumps(_to_metadata(checkpoint), allow_nan=False, sort_keys=True)
        weights = {name: np.ascontiguousarray(w) for name, w in checkpoint.weights.items()}
        if checkpoint.intervals is not None:
            weights[_KNOWN] = np.ascontiguousarray(checkpoint.intervals.known)
        if checkpoint.residuals is not None:
            arrays = (checkpoint.residuals.learned, checkpoint.residuals.coefficients)
            weights |= dict(zip(_RESIDUALS, map(np.ascontiguousarray, arrays), strict=True))
        _from_metadata(json.loads(metadata), weights)
    except (CheckpointError, ConfigError, TypeError, ValueError) as error:
        raise CheckpointError(f"{target}: not written, {error}") from error
    data = safetensors.numpy.save(weights, metadata={_METADATA_KEY: metadata})
    atomic_write(target, data, error=CheckpointError)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint and check all of it.

    Raises:
        CheckpointError: no such file, truncated or corrupt, of a newer format, or with missing,
            surplus, odd-shaped or non-finite content.
    """
    source = Path(path)
    try:
        size = source.stat().st_size
        data = b"" if size > MAX_FILE_BYTES else read_bytes(source, MAX_FILE_BYTES)
    except OSError as error:
        raise CheckpointError(f"{source}: cannot be read, {error.strerror or error}") from error
    if max(size, len(data)) > MAX_FILE_BYTES:
        raise CheckpointError(
            f"{source}: {max(size, len(data))} bytes, no checkpoint has more than "
            f"{MAX_FILE_BYTES}; give a checkpoint of `driple train`"
        )
    try:
        return _parse(data)
    except (CheckpointError, ConfigError) as error:
        raise CheckpointError(f"{source}: {error}") from error


def _parse(data: bytes) -> Checkpoint:
    """The checkpoint in the bytes of a file; errors do not yet name the file."""
    if is_lfs_pointer(data):
        raise CheckpointError(lfs_advice("checkpoint"))
    header = _read_header(data)
    fields = _metadata_of(header.pop("__metadata__", None))
    for name, entry in header.items():
        dtype = entry.get("dtype") if isinstance(entry, dict) else None
        if dtype != "F32":
            raise CheckpointError(f"weight {name!r} has type {dtype!r}, needed is F32; train anew")
    try:
        weights = safetensors.numpy.load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"truncated or corrupt ({reason}); copy or train it anew") from error
    return _from_metadata(fields, weights)


def metadata_of_header(data: bytes) -> dict[str, object]:
    """Driple's metadata in the first bytes of a checkpoint file, up to the end of the header.

    Raises:
        CheckpointError: no checkpoint, or one of a newer format.
    """
    if is_lfs_pointer(data):
        raise CheckpointError(lfs_advice("checkpoint"))
    return _metadata_of(_read_header(data).get("__metadata__"))


def _metadata_of(metadata: object) -> dict[str, object]:
    text = metadata.get(_METADATA_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise CheckpointError(
            "a safetensors file without Driple's metadata; give a checkpoint of `driple train`"
        )
    fields = _load_json(text.encode(), "its metadata")
    _check_format(fields)
    return fields


def _read_header(data: bytes) -> dict[str, object]:
    """The JSON header of a safetensors file: 8 bytes of length, then the text."""
    length = int.from_bytes(data[:8], "little") if len(data) >= 8 else -1
    if length < 2 or data[8:9] != b"{":
        raise CheckpointError("no safetensors file; give a checkpoint of `driple train`")
    if length > min(MAX_HEADER_BYTES, len(data) - 8):
        raise CheckpointError(
            f"truncated or corrupt (its header claims {length} bytes, the file has {len(data)}); "
            "copy or train it anew"
        )
    return _load_json(data[8 : 8 + length], "its header")


def _load_json(text: bytes, what: str) -> dict[str, object]:
    """A JSON object; numbers that are not finite, and keys that stand twice, are refused."""
    try:
        fields = parse_json(text)
    except ValueError as error:
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"{what} is no JSON that can be read ({reason}); copy or train it anew"
        ) from error
    if not isinstance(fields, dict):
        raise CheckpointError(f"{what} is no JSON object; copy or train it anew")
    return fields


def _check_format(fields: Mapping[str, object]) -> None:
    number = fields.get("format")
    if type(number) is not int or number < 1:
        raise CheckpointError(f"its format number is {number!r}, needed is {FORMAT}; train it anew")
    if number > FORMAT:
        raise CheckpointError(
            f"format {number}, this Driple reads up to {FORMAT}; upgrade it ({upgrade_hint()})"
        )


def _to_metadata(checkpoint: Checkpoint) -> dict[str, object]:
    """All but the weights, as JSON holds it."""
    return {
        "format": checkpoint.format,
        "setting": checkpoint.setting,
        "provenance": checkpoint.provenance,
        "preset": checkpoint.preset,
        "targets": list(TARGET_NAMES),
        "num_groups": checkpoint.num_groups,
        "num_tuned": checkpoint.num_tuned,
        "inspector": checkpoint.config.to_dict(),
        "input": checkpoint.input_config.to_dict(),
        "op_type_table": checkpoint.op_type_table,
        "input_scaler": checkpoint.input_scaler.to_dict(),
        "target_scaler": checkpoint.target_scaler.to_dict(),
        "intervals": None if checkpoint.intervals is None else checkpoint.intervals.to_dict(),
        "residuals": None if checkpoint.residuals is None else checkpoint.residuals.to_dict(),
        "law": None if checkpoint.law is None else checkpoint.law.to_dict(),
        "trained_on": to_dict(checkpoint.trained_on, where="trained_on", error=CheckpointError),
        "metrics": checkpoint.metrics,
        "versions": checkpoint.versions,
        "reader_version": checkpoint.reader_version,
        "features_version": checkpoint.features_version,
    }


def _from_metadata(
    fields: Mapping[str, object], weights: dict[str, npt.NDArray[np.float32]]
) -> Checkpoint:
    """Check everything and put it together."""
    _check_format(fields)
    fields = _of_today(fields)
    if fields.get("targets") != list(TARGET_NAMES):
        raise CheckpointError("its targets are not the twelve of this Driple; train it anew")
    num_groups = fields.get("num_groups")
    if type(num_groups) is not int or not 1 <= num_groups <= 10_000:
        raise CheckpointError(f"its num_groups is {num_groups!r}, needed is 1 to 10000")
    provenance = text_of(fields, "provenance")
    if provenance not in PROVENANCES:
        raise CheckpointError(f"its provenance is {provenance!r}, not {', '.join(PROVENANCES)}")
    config = InspectorConfig.from_dict(object_of(fields, "inspector"))
    input_config = InputConfig.from_dict(object_of(fields, "input"))
    input_scaler = InputScaler.from_dict(object_of(fields, "input_scaler"))
    weights = dict(weights)
    intervals = _intervals(fields, weights.pop(_KNOWN, None), config.num_context)
    residuals = _residuals(fields, weights, config.num_context)
    law = None
    if fields.get("law") is not None:
        law = CostPrior.from_dict(object_of(fields, "law"), len(input_config.context_names))
    _check_widths(config, input_config, input_scaler, law)
    num_tuned = fields.get("num_tuned", 0)  # written since transfer exists
    most = config.num_layers(num_groups) - 1
    if type(num_tuned) is not int or not 0 <= num_tuned <= most:
        raise CheckpointError(f"its num_tuned is {num_tuned!r}, needed is 0 to {most}")
    _check_weights(weights, config, num_groups, num_tuned)
    versions = object_of(fields, "versions")
    return Checkpoint(
        weights=weights,
        config=config,
        input_config=input_config,
        num_groups=num_groups,
        op_type_table=numbers_of(fields, "op_type_table"),
        input_scaler=input_scaler,
        target_scaler=TargetScaler.from_dict(object_of(fields, "target_scaler")),
        law=law,
        residuals=residuals,
        intervals=intervals,
        setting=text_of(fields, "setting"),
        provenance=provenance,
        trained_on=_trained_on(fields),
        metrics=numbers_of(fields, "metrics"),
        preset=text_of(fields, "preset"),
        versions={name: text_of(versions, name) for name in versions},
        num_tuned=num_tuned,
        reader_version=version_of(fields, "reader_version", FIRST_READER_VERSION),
        features_version=version_of(fields, "features_version", FIRST_FEATURES_VERSION),
    )


def _intervals(
    fields: Mapping[str, object], known: npt.NDArray[np.float32] | None, num_context: int
) -> Intervals | None:
    """The intervals, if the checkpoint has any."""
    if fields.get("intervals") is None:
        if known is not None:
            raise CheckpointError(f"has a surplus weight {_KNOWN}; train it anew")
        return None
    if known is None or known.ndim != 2 or known.shape[1] != num_context or not len(known):
        raise CheckpointError(
            f"its {_KNOWN} are no contexts of length {num_context}; train it anew"
        )
    if known.dtype != np.float32 or not np.isfinite(known).all():
        raise CheckpointError(f"its {_KNOWN} hold no finite float32 numbers; train it anew")
    return Intervals.from_dict(object_of(fields, "intervals"), known)


def _residuals(
    fields: Mapping[str, object], weights: dict[str, npt.NDArray[np.float32]], num_context: int
) -> Residuals | None:
    """The residuals, if the checkpoint has any (since format 3); their arrays leave the weights."""
    if fields.get("residuals") is None:
        return None  # arrays of residuals are then surplus weights
    missing = [name for name in _RESIDUALS if name not in weights]
    if missing:
        raise CheckpointError(f"lacks {missing[0]}; train it anew")
    learned, coefficients = (weights.pop(name) for name in _RESIDUALS)
    if learned.ndim != 2 or learned.shape[1] != num_context:
        raise CheckpointError(
            f"its {_RESIDUALS[0]} are no contexts of length {num_context}; train it anew"
        )
    return Residuals.from_dict(object_of(fields, "residuals"), learned, coefficients)


def _of_today(fields: Mapping[str, object]) -> Mapping[str, object]:
    """The fields of format 1 as those of format 2: one member, no costs, no law."""
    if fields["format"] != 1:
        return fields
    built = dict(object_of(fields, "input"))
    built["context"] = "sizes" if built.get("context") is True else "none"
    inspector = {**object_of(fields, "inspector"), "members": 1}
    return {**fields, "input": built, "inspector": inspector, "law": None, "intervals": None}


def _check_widths(
    config: InspectorConfig, built: InputConfig, scaler: InputScaler, law: CostPrior | None
) -> None:
    """Structure, input and scaler must speak of equally long vectors."""
    num_context = len(built.context_names) + (NUM_TARGETS if law else 0)
    needed = (len(built.feature_names), num_context)
    widths = (config.num_features, config.num_context)
    scaled = (len(scaler.feature_mean), len(scaler.context_mean))
    if widths != needed or (scaler.kind == "standard" and scaled != needed):
        raise CheckpointError(
            f"its inspector takes (features, context) of lengths {widths}, its scaler {scaled}, "
            f"its inputs have {needed}; train it anew"
        )


def _check_weights(
    weights: Mapping[str, npt.NDArray[np.float32]],
    config: InspectorConfig,
    num_groups: int,
    num_tuned: int,
) -> None:
    """Names, shapes, type and values of all weights."""
    needed = weight_shapes(config, num_groups, num_tuned)
    for title, names in (
        ("lacks the weights", set(needed) - set(weights)),
        ("has surplus weights", set(weights) - set(needed)),
    ):
        if names:
            shown = ", ".join(sorted(names)[:5])
            raise CheckpointError(f"{title} {shown} ({len(names)} in all); train it anew")
    for name, shape in needed.items():
        array = weights[name]
        if array.shape != shape or array.dtype != np.float32:
            raise CheckpointError(
                f"weight {name} is {array.dtype} {array.shape}, needed is float32 {shape}"
            )
        if not np.isfinite(array).all():
            raise CheckpointError(f"weight {name} holds NaN or infinity; train it anew")


def _trained_on(fields: Mapping[str, object]) -> TrainedOn:
    """Record of the training."""
    stored = {_TRAINED_ON: object_of(fields, _TRAINED_ON)}
    read = from_json(
        dict[str, TrainedOn],
        stored,
        where="its metadata",
        error=CheckpointError,
        advice="train it anew",
    )
    return read[_TRAINED_ON]
