"""CITATION.cff names the paper and this version of the software."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[1]


def citation() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")))


def test_the_software_is_that_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = citation()
    assert stated["cff-version"] == "1.2.0"
    assert (stated["version"], stated["license"]) == (project["version"], project["license"])
    assert stated["authors"] == project["authors"]
    assert not {"doi", "repository-code", "url", "orcid"} & set(stated)


def test_the_paper_is_that_of_the_readme() -> None:
    paper = citation()["preferred-citation"]
    assert paper["title"] in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert (paper["year"], paper["doi"]) == (2022, "10.1145/3530895")
    assert [author["family-names"] for author in paper["authors"]] == [
        "Yang", "Shin", "Lee", "Yoo", "Yoo",
    ]  # fmt: skip
