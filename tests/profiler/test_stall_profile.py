"""Profiles and links that cannot be are refused before anything is computed from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driple.errors import ConfigError, MeasureError
from driple.profiler.linkfit import read_channels
from driple.profiler.stall_profile import read_profile
from tests.profiler.profiles import write_profile

GRADIENTS = {"nbytes": [4, 8], "ready_s": [0.05, 0.09], "step_s": 0.1}


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("profile.json", {"left_out": []}),
        ("profile.json", {"left_out": {"2": "why", "é": "why"}}),
        ("profile.json", {"left_out": {"9": "why"}}),
        ("profile.json", {"command": "x"}),
        ("profile.json", {"plan": {}}),
        ("profile.json", {"plan": {"processes": 2, "network_bits_per_s": "10G"}}),
        ("step1.r0.json", {"iteration_s": 0.0}),
        ("step1.r0.json", {"iteration_s": 10**400}),
        ("step1.r0.json", {"iteration_s": None}),
        ("step1.r0.json", {"processes": 0}),
        ("step1.r0.json", {"batches_per_epoch": "x"}),
        ("step1.r0.json", {"script": []}),
        ("step1.r0.json", {"cleared": {}}),
        ("step1.r0.json", {"wrapped": None}),
        ("step1.r0.json", {"other_cores": []}),
        ("step1.r0.json", {"gradients": 3}),
        ("step1.r0.json", {"gradients": GRADIENTS | {"ready_s": [1]}}),
        ("step1.r0.json", {"gradients": GRADIENTS | {"step_s": 0}}),
        ("step1.r0.json", {"gradients": GRADIENTS | {"nbytes": [4, -8]}}),
    ],
)
def test_profiles_of_other_forms_are_refused(
    tmp_path: Path, file: str, change: dict[str, Any]
) -> None:
    """The line names the folder and what to do."""
    folder = write_profile(tmp_path / "p", {1: [0.1], 2: [0.2]}, gradients=GRADIENTS)
    read_profile(folder)
    stored = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(stored | change))
    with pytest.raises(MeasureError, match=r"damaged stall profile: .* --output ANOTHER"):
        read_profile(folder)


@pytest.mark.parametrize("text", ["7", "[]", "null", "[" * 10_000, "{", "\x00"])
def test_what_is_no_profile_is_refused(tmp_path: Path, text: str) -> None:
    """JSON of another kind, JSON that is none."""
    (tmp_path / "profile.json").write_text(text)
    with pytest.raises(MeasureError, match="holds no stall profile"):
        read_profile(tmp_path)


@pytest.mark.parametrize(
    "change", [{"name": 1.5}, {"overlap": "x"}, {"latency_s": 10**400}, {"latency_per": []}]
)
def test_links_of_other_forms_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """Names are texts."""
    link = {"name": "NVLink", "latency_s": 1e-4, "bytes_per_s": 1e9, "latency_per": "gradient",
            "overlap": True}  # fmt: skip
    file = tmp_path / "links.json"
    file.write_text(json.dumps({"format": 1, "links": [link]}))
    assert set(read_channels(file)) == {"nvlink"}
    file.write_text(json.dumps({"format": 1, "links": [link | change]}))
    with pytest.raises(ConfigError, match="holds no fitted links"):
        read_channels(file)
