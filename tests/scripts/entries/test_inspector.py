"""Inspectors are asked on rows of a setting that has one, however the setting spells its link."""

from __future__ import annotations

from scripts.entries.inspector import inspector_of


def test_the_usual_link_need_not_be_spelt_out() -> None:
    short, whole = inspector_of("8xH100"), inspector_of("8xH100/NVLink-H100")
    assert short is not None
    assert whole is not None
    assert short.setting == whole.setting == "8xH100/NVLink"


def test_another_link_or_scheme_or_device_has_none() -> None:
    for name in ("8xH100/PCIe5", "8xH100/NVLink-H100@fsdp", "1xH100", "4xA10/PCIe4"):
        assert inspector_of(name) is None, name
