"""A release is built, checked and described; faults of its content and version are seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.release import __main__ as release
from scripts.release.__main__ import main, notes_of, wrong_content, wrong_version
from scripts.release.dependencies import project

CHANGELOG = "# Changelog\n\n## 1.1.0 (2026-01-02)\n\n### Added\n- A.\n\n## 1.0.0 (2026)\n- B.\n"


def test_notes_are_what_the_changelog_says_of_the_version() -> None:
    assert notes_of(CHANGELOG, "1.1.0") == "### Added\n- A.\n"
    assert notes_of(CHANGELOG, "1.0.0") == "- B.\n"
    assert notes_of(CHANGELOG, "1.1") == notes_of(CHANGELOG, "3.0.0") == ""


def test_lost_and_foreign_files_are_named() -> None:
    names = ["driple/a.py", "driple-1.dist-info/METADATA", "driple/notes.txt"]
    assert wrong_content(names, ["driple/a.py", "driple/b.py"], "the wheel") == [
        "the wheel lacks driple/b.py",
        "the wheel has driple/notes.txt, which git does not track",
    ]


def test_every_file_is_of_the_version() -> None:
    assert wrong_version(str(project()["version"])) == []
    assert len(wrong_version("9.9.9")) == 2


def test_a_folder_with_files_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").touch()
    assert main(["-o", str(tmp_path)]) == 2
    assert "has files already" in capsys.readouterr().err


def test_a_release_has_both_packages_a_bill_notes_and_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without twine, which is not among a developer's packages."""
    monkeypatch.setattr(release, "_checked_by_twine", lambda files: [])
    assert main(["-o", str(tmp_path / "dist")]) == 0, capsys.readouterr().err
    version = project()["version"]
    assert {file.name for file in (tmp_path / "dist").iterdir()} == {
        f"driple-{version}.tar.gz", f"driple-{version}-py3-none-any.whl",
        f"driple-{version}.cdx.json", "NOTES.md", "SHA256SUMS",
    }  # fmt: skip
    assert "### Added" in (tmp_path / "dist" / "NOTES.md").read_text(encoding="utf-8")
