"""Commands of the README are run again, and the errors on published runs are put in."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest


def test_a_readme_is_rewritten(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each console block has what its command prints now; the rest stays."""
    readme = tmp_path / "README.md"
    readme.write_text("Head\n```console\n$ driple env\nold\n```\nTail\n")
    monkeypatch.setattr(program, "ROOT", tmp_path)
    asked = []

    def printed(arguments: str) -> str:
        asked.append(arguments.split(maxsplit=1)[0])
        return f"output of {arguments}"

    monkeypatch.setattr(program, "printed", printed)
    program.main()
    assert readme.read_text() == ("Head\n```console\n$ driple env\noutput of env\n```\nTail\n")
    assert asked == ["env", "predict"]
