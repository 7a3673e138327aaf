"""Packages by extra, from the metadata of what is installed."""

from __future__ import annotations

import pytest

from scripts.release.dependencies import extras_of_project, licence_of, packages


def test_what_driple_needs_has_no_extra_and_what_extras_bring_names_them() -> None:
    by_name = {package.name: package for package in packages(["yaml"])[0]}
    assert by_name["numpy"].extras == by_name["typer"].extras == ()
    assert by_name["pyyaml"].extras == ("yaml",)
    assert "markdown-it-py" in by_name["rich"].needs
    assert "markdown-it-py" in by_name  # of rich
    assert "torch" not in by_name


def test_extras_of_extras_are_followed() -> None:
    """`hf` brings what `torch` does."""
    assert "" in extras_of_project()
    assert "all" not in extras_of_project()
    packages_found = packages(["hf"])
    assert "torch" in {package.name for package in packages_found[0]} | set(packages_found[1])


class Stub:
    """Metadata of a package."""

    def __init__(self, **facts: object) -> None:
        self.metadata = self
        self.facts = facts

    def __contains__(self, name: str) -> bool:
        return name.replace("-", "_") in self.facts

    def __getitem__(self, name: str) -> object:
        return self.facts[name.replace("-", "_")]

    def get_all(self, name: str) -> object:
        return self.facts.get(name)


@pytest.mark.parametrize(
    ("facts", "licence"),
    [
        ({"License_Expression": "MIT", "License": "GPL"}, "MIT"),
        ({"Classifier": ["License :: OSI Approved :: MIT License"], "License": "x\ny"},
         "MIT License; x"),
        ({"Classifier": ["License :: OSI Approved"]}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_a_licence_is_what_the_metadata_state(facts: dict[str, object], licence: str) -> None:
    assert licence_of(Stub(**facts)) == licence  # type: ignore[arg-type]
