"""No extra brings a package under the GPL."""

from __future__ import annotations

import pytest

from scripts.release.dependencies import Package, packages
from scripts.release.licences import refused


def test_every_installed_package_is_under_a_permissive_licence() -> None:
    installed, _ = packages()
    assert len(installed) > 20
    assert refused(installed) == []


@pytest.mark.parametrize(
    ("licence", "is_fine"),
    [
        ("MIT", True), ("BSD-3-Clause", True), ("MIT OR GPL-2.0", True), ("MPL-2.0", True),
        ("GPL-3.0-only", False), ("LGPL-2.1", False), ("AGPL-3.0", False), ("", False),
        ("GNU General Public License v3; MIT License", False), ("Proprietary", False),
        ("MIT AND GPL-2.0", False),
    ],
)  # fmt: skip
def test_what_is_refused(licence: str, is_fine: bool) -> None:
    package = Package(name="x", version="1", licence=licence, needs=(), extras=("web",))
    lines = refused([package])
    assert bool(lines) != is_fine
    assert all(line.startswith("x 1 (web): ") for line in lines)
