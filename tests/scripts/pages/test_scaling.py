"""The page on scaling says what was measured, and its files are such as Ray takes."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml

from scripts.pages.scaling import PAGE, STORED, page, rate_on

ROOT = Path(__file__).parents[3]
TIMES = {
    "start_s": 1.0,
    "jobs": 2,
    "read_s": 3.0,
    "block_s": [0.5, 1.5],
    "driver_block_s": 0.001,
}


def test_the_page_is_made_of_the_stored_measurements() -> None:
    assert PAGE.read_text() == page(json.loads(STORED.read_text()))


def test_rates_on_more_cores_by_hand() -> None:
    """320 lines are 10 blocks of 1 s in the mean; a worker is ready after 7 s."""
    assert rate_on(1, TIMES, 320) == pytest.approx(320 / 17, rel=0.01)
    assert rate_on(2, TIMES, 320) == pytest.approx(320 / 12, rel=0.1)
    slow = TIMES | {"driver_block_s": 2.0}
    assert rate_on(128, slow, 320) == pytest.approx(320 / (7 + 20))


def test_ray_takes_the_file_of_the_cluster() -> None:
    spec = find_spec("ray")
    assert spec is not None
    assert spec.origin is not None
    schema = json.loads((Path(spec.origin).parent / "autoscaler" / "ray-schema.json").read_text())
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    files = [yaml.safe_load(text) for text in blocks]
    ray_up, kube_ray = files
    jsonschema.validate(ray_up, schema)
    assert kube_ray["kind"] == "RayCluster"
