"""A release of this checkout, built, checked and described in a folder; nothing is published.

    checkout --build--> sdist, wheel --check--> content, version, metadata -> bill, notes, sums

    python -m scripts.release -o dist

Checks: the files are those that git tracks; CHANGELOG.md and CITATION.cff have the version;
`twine check` takes metadata and README; licences, pinned hashes and advisories are in order.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.release import hashes, licences, vulnerabilities
from scripts.release.dependencies import ROOT, packages, project
from scripts.release.sbom import bill_of_materials, text_of

__all__ = ["main", "notes_of", "wrong_content", "wrong_version"]

_FACTS = re.compile(
    r"[^/]+\.dist-info/|PKG-INFO$|pyproject\.toml$|README\.md$|LICENSE$|\.gitignore$"
)


def notes_of(changelog: str, version: str) -> str:
    """What CHANGELOG.md says of a version, without its heading; empty if it does not name it."""
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if re.match(rf"\[?{re.escape(version)}(?![\w.])", heading):
            return text.strip() + "\n"
    return ""


def wrong_version(version: str) -> list[str]:
    """Files that do not know this version as the newest, one line each."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?(\d[\w.]*)", changelog, re.MULTILINE)
    lines = []
    if newest is None or newest[1] != version:
        lines.append(f"CHANGELOG.md begins with {newest[1] if newest else 'none'}, not {version}")
    if f"version: {version}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        lines.append(f"CITATION.cff is not of {version}")
    return lines


def wrong_content(installed: Iterable[str], tracked: Iterable[str], what: str) -> list[str]:
    """Files that a package lacks, and those that it should not have, one line each.

    Args:
        installed: names in the wheel or the sdist, without the folder of the sdist.
        tracked: names that git tracks, as they stand in the package.
        what: of the two, for messages.
    """
    has = {name for name in installed if not _FACTS.search(name)}
    wanted = set(tracked)
    return [
        *(f"{what} lacks {name}" for name in sorted(wanted - has)),
        *(f"{what} has {name}, which git does not track" for name in sorted(has - wanted)),
    ]


def _tracked() -> list[str]:
    command = ["git", "ls-files", "-z", "driple", "checkpoints"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return [name for name in listed.stdout.split("\0") if name]


def _built(folder: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of the checkout, built with the installed hatchling."""
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    (sdist,) = SdistBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(sdist), Path(wheel)


def _faults(sdist: Path, wheel: Path, version: str) -> list[str]:
    tracked = _tracked()
    with zipfile.ZipFile(wheel) as packed:
        in_wheel = packed.namelist()
    with tarfile.open(sdist) as packed_source:
        names = [member.name for member in packed_source.getmembers() if member.isfile()]
    in_sdist = [name.partition("/")[2] for name in names]
    as_installed = [name if name.startswith("driple/") else f"driple/{name}" for name in tracked]
    return [
        *wrong_version(version),
        *wrong_content(in_wheel, as_installed, "the wheel"),
        *wrong_content(in_sdist, tracked, "the sdist"),
        *(f"{file.name} is of another version" for file in (sdist, wheel)
          if f"-{version}" not in file.name),
    ]  # fmt: skip


def _checked_by_twine(files: Sequence[Path]) -> list[str]:
    """What twine has against the metadata."""
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    return [f"twine check: {(done.stdout + done.stderr).strip()[-500:]}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, check and describe; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", help="new folder")
    options = parser.parse_args(arguments)
    folder: Path = options.output
    if folder.exists() and any(folder.iterdir()):
        print(f"{folder} has files already; name another folder, or empty it", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    version = str(project()["version"])
    sdist, wheel = _built(folder)
    faults = [*_faults(sdist, wheel, version), *_checked_by_twine([sdist, wheel])]
    for name, check in (
        ("licences", licences.main),
        ("hashes", lambda: hashes.main(["--check"])),
        ("advisories", lambda: vulnerabilities.main([])),
    ):
        if check():
            faults.append(f"{name}: see above")
    bill = folder / f"driple-{version}.cdx.json"
    bill.write_text(text_of(bill_of_materials(packages()[0], version)), encoding="utf-8")
    notes = notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    (folder / "NOTES.md").write_text(f"# Driple {version}\n\n{notes}", encoding="utf-8")
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in (bill, sdist, wheel)
    ]
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    for line in faults:
        print(f"wrong: {line}", file=sys.stderr)
    print(f"{folder}: {', '.join(sorted(file.name for file in folder.iterdir()))}; not published")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
