"""The bill of materials lists each package once, with what needs it, and is the same each time."""

from __future__ import annotations

import json
from pathlib import Path

from scripts.release.dependencies import packages
from scripts.release.sbom import bill_of_materials, main, text_of


def test_the_same_packages_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert main(["-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_each_package_is_there_once_and_no_reference_leads_nowhere() -> None:
    installed, _ = packages()
    document = json.loads(text_of(bill_of_materials(installed, "1.2.3")))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    references = [each["bom-ref"] for each in document["components"]]
    assert len(set(references)) == len(references) == len(installed)
    own = document["metadata"]["component"]["bom-ref"]
    for each in document["dependencies"]:
        assert {each["ref"], *each["dependsOn"]} <= {own, *references}
    scopes = {each["name"]: each["scope"] for each in document["components"]}
    assert scopes["numpy"] == "required"
    direct = document["dependencies"][0]["dependsOn"]
    assert any(name.startswith("pkg:pypi/numpy@") for name in direct)
    assert not any(name.startswith("pkg:pypi/mdurl@") for name in direct)  # of markdown-it-py
