"""Texts of the files that answers take their stated errors from.

CheckedRun, ... -> driple/answers/checked_runs.json
ErrorScale      -> driple/answers/error_scale.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from driple.answers.checked_runs import FIELDS, FLAGS, FORMAT, PER_MILLE, CheckedRun
from driple.answers.error_scale import ErrorScale
from driple.answers.op_mix import MIX_KINDS
from driple.codec import Json, to_json

__all__ = ["runs_to_json", "scale_to_json"]

_DIGITS = {"log_ratio": 4, "distance": 3}  # as they are stored
_SCALE_DIGITS = 4


def runs_to_json(runs: Sequence[CheckedRun]) -> str:
    """Text of checked_runs.json: the mixes and the words once each, then a list per field."""
    mixes = sorted({_shares(run.mix) for run in runs})
    mix_at = {mix: number for number, mix in enumerate(mixes)}
    columns = [_column(name, runs, mix_at) for name in FIELDS]
    texts = ({value for value in column if isinstance(value, str)} for column in columns)
    words = sorted(set().union(*texts))
    word_at: dict[object, int] = {word: number for number, word in enumerate(words)}
    coded = [
        [word_at[value] if isinstance(value, str) else value for value in column]
        for column in columns
    ]
    head = f'"format": {FORMAT}, "mix_kinds": {json.dumps(MIX_KINDS)}'
    stored_mixes = ",\n".join(map(_compact, mixes))
    stored = ",\n".join(
        f'"{name}": {_compact(column)}' for name, column in zip(FIELDS, coded, strict=True)
    )
    return (
        f'{{{head}, "words": {json.dumps(words)}, "mixes": [\n{stored_mixes}\n], '
        f'"columns": {{\n{stored}\n}}}}\n'
    )


def _compact(values: Sequence[object]) -> str:
    return json.dumps(values, separators=(",", ":"))


def _shares(mix: Sequence[float]) -> tuple[int, ...]:
    return tuple(round(PER_MILLE * share) for share in mix)


def _column(
    name: str, runs: Sequence[CheckedRun], mix_at: dict[tuple[int, ...], int]
) -> list[object]:
    """One field of all runs, as numbers and texts."""
    if name == "mix":
        return [mix_at[_shares(run.mix)] for run in runs]
    if name == "devices":
        return ["+".join(run.devices) for run in runs]
    if name == "weight":
        return [float(f"{run.weight:.3g}") for run in runs]
    values = [getattr(run, name) for run in runs]
    if name in FLAGS:
        return [int(value) for value in values]
    return [round(value, _DIGITS[name]) for value in values] if name in _DIGITS else values


def scale_to_json(scale: ErrorScale) -> str:
    """Text of error_scale.json: four digits, and no effect that these round to none."""
    return json.dumps(_rounded(to_json(scale)), indent=1, sort_keys=True) + "\n"


def _rounded(value: Json) -> Json:
    if isinstance(value, float):
        return round(value, _SCALE_DIGITS)
    if isinstance(value, Mapping):
        rounded = {name: _rounded(inner) for name, inner in value.items()}
        return {name: inner for name, inner in rounded.items() if inner != 0}
    return value
