"""Rows that are checked with degrees of parallelism: their settings hold their devices."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from driple.cluster.setting import Setting
from driple.runs.published_runs import read_published
from scripts.checks.split_rows import ROWS, chosen, is_split, split_setting


def test_rows_and_their_settings_agree() -> None:
    """Devices, replicas and degrees of each row are those of the setting that it is checked on."""
    rows = chosen(read_published(ROWS))
    split = [row for row in rows if is_split(row)]
    assert len(split) == 113
    assert {row.source for row in rows} == {row.source for row in split}
    for row in rows:
        setting = Setting.parse(split_setting(row))
        assert setting.num_workers == row.num_devices
        degrees = setting.scheme.degrees
        assert (degrees.tensor, degrees.pipeline) == (row.tp, row.pp)
        assert (degrees.context, degrees.expert) == (row.cp, row.ep)
        assert setting.num_replicas == row.dp
