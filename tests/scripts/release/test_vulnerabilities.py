"""Advisories cover the versions that their ranges say, and none of ours."""

from __future__ import annotations

import pytest

from scripts.release import vulnerabilities
from scripts.release.vulnerabilities import main, vulnerable

RANGE = [{"introduced": "1.0"}, {"fixed": "1.5"}, {"introduced": "2.0"}, {"fixed": "2.3"}]


def advisory(events: list[dict[str, str]]) -> dict[str, object]:
    return {"package": "x", "id": "PYSEC-1", "aliases": ["CVE-1"], "ranges": [events]}


@pytest.mark.parametrize(
    ("version", "covered"),
    [("0.9", False), ("1.0", True), ("1.4.9", True), ("1.5", False), ("1.10", False),
     ("2.2", True), ("2.3", False)],
)  # fmt: skip
def test_what_a_range_covers(version: str, covered: bool) -> None:
    lines = vulnerable({"x": version}, [advisory(RANGE)])
    assert lines == ([f"x {version}: PYSEC-1 (CVE-1)"] if covered else [])


def test_an_open_range_covers_all_and_an_excuse_none(monkeypatch: pytest.MonkeyPatch) -> None:
    open_ = [advisory([{"introduced": "0"}])]
    assert vulnerable({"x": "9"}, open_)
    assert not vulnerable({"y": "9"}, open_)
    assert not vulnerable({"x": "9"}, [advisory([{"introduced": "0"}, {"last_affected": "8"}])])
    monkeypatch.setitem(vulnerabilities.EXCUSED, "PYSEC-1", "a test")
    assert not vulnerable({"x": "9"}, open_)


def test_no_version_of_ours_is_covered_and_the_age_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    assert "days old" in capsys.readouterr().out
