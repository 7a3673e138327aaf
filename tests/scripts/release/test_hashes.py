"""What `scripts/quickstart` installs is exact, and of the versions that CI tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.release.hashes import RESULT, ROOT, pinned, text_of, wanted, wrong_pins

CONSTRAINTS = pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))


def test_the_file_is_of_the_constraints() -> None:
    text = RESULT.read_text(encoding="utf-8")
    assert wrong_pins(text, CONSTRAINTS) == []
    assert {"numpy", "hatchling", "protobuf", "typer"} <= set(pinned(text))
    assert text.count("--hash=sha256:") > 2 * len(pinned(text)) / 2


def test_a_stale_version_a_lost_package_and_a_missing_hash_are_seen() -> None:
    text = RESULT.read_text(encoding="utf-8")
    old = text.replace(f"numpy=={CONSTRAINTS['numpy']}", "numpy==1.0")
    assert [line for line in wrong_pins(old, CONSTRAINTS) if "numpy is 1.0" in line]
    assert wrong_pins(text.replace("rich==", "poor=="), CONSTRAINTS)[0] == "rich is missing"
    bare = text.replace("mdurl==0.1.2 \\\n    --hash", "mdurl==0.1.2\n# --hash")
    assert "mdurl has no hash" in wrong_pins(bare.replace("sha256", "md5"), CONSTRAINTS)
    assert wrong_pins("--index-url https://x\n" + text, CONSTRAINTS)[-1].startswith("an address")


def test_wheels_of_one_version_share_a_line(tmp_path: Path) -> None:
    for name in ("a_b-1.0-cp311-x.whl", "a_b-1.0-cp312-x.whl"):
        (tmp_path / name).write_text(name)
    text = text_of(tmp_path.iterdir())
    assert text.count("a-b==1.0") == 1
    assert text.count("--hash") == 2
    (tmp_path / "a_b-2.0-cp312-x.whl").touch()
    with pytest.raises(SystemExit, match=r"a-b comes as"):
        text_of(tmp_path.iterdir())


def test_requirements_are_those_of_the_package_and_its_build() -> None:
    assert any(name.startswith("hatchling") for name in wanted())
    assert any(name.startswith("numpy") for name in wanted())
