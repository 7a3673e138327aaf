"""Commands of the README are run again, and the errors on published runs are put in."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

OLD = "```console\n$ driple env\nold\n```\n<!-- GPU jobs -->\nold\n<!-- end -->\n"
NEW = "```console\n$ driple env\nnew\n```\n<!-- GPU jobs -->\nerrors\n<!-- end -->\n"


@pytest.fixture
def readme(program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A README whose commands print `new`."""
    file = tmp_path / "README.md"
    file.write_text(OLD)
    monkeypatch.setattr(program, "PAGE", file)
    monkeypatch.setattr(program, "refreshed", lambda text: text.replace("env\nold", "env\nnew"))
    monkeypatch.setattr(program, "gpu_jobs", lambda: "errors")
    return file


def test_a_readme_is_rewritten_and_its_picture_drawn(
    program: ModuleType, readme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(program, "printed", ran.append)
    assert program.main([]) == 0
    assert readme.read_text() == NEW
    assert [line.split()[0] for line in ran] == ["predict"]


def test_a_check_writes_nothing(
    program: ModuleType, readme: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(["--check"]) == 1
    assert readme.read_text() == OLD
    assert "run python -m scripts.pages.readme" in capsys.readouterr().err
