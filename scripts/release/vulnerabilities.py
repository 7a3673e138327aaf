"""Known vulnerabilities of the exact versions that CI installs, from a dated file; asks no network.

    clone of the PyPI advisory database --advisories of our packages--> advisories.json
    constraints.txt, advisories.json -> versions that an advisory covers

    python -m scripts.release.vulnerabilities                    # the check
    python -m scripts.release.vulnerabilities --database FOLDER  # writes advisories.json anew

The check says how old its file is: advisories that came later are not in it. EXCUSED has advisories
that do not concern Driple, each with the reason.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from scripts.release.hashes import pinned

__all__ = ["EXCUSED", "main", "vulnerable"]

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "scripts" / "release" / "advisories.json"
EXCUSED: dict[str, str] = {}


def advisories_of(database: Path, names: frozenset[str]) -> dict[str, Any]:
    """Advisories of some packages, out of a clone (with or without files) of the database."""
    import yaml

    git = ["git", "-C", str(database)]
    dated = subprocess.run(
        [*git, "log", "-1", "--format=%cs %H"], capture_output=True, text=True, check=True
    ).stdout.split()
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", "HEAD", "vulns"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    advisories = []
    for file in listed:
        if canonicalize_name(Path(file).parent.name) not in names:
            continue
        text = subprocess.run(
            [*git, "show", f"HEAD:{file}"], capture_output=True, text=True, check=True
        ).stdout
        advisory = yaml.safe_load(text)
        if "withdrawn" not in advisory:
            advisories += list(_ranges(advisory))
    return {
        "source": "PyPI Advisory Database (pypa/advisory-database), CC-BY 4.0",
        "date": dated[0],
        "commit": dated[1],
        "packages": len(names),
        "advisories": sorted(advisories, key=lambda each: (each["package"], each["id"])),
    }


def _text_of(known: Mapping[str, Any]) -> str:
    """The file, with a line for each advisory."""
    head = {name: value for name, value in known.items() if name != "advisories"}
    lines = ",\n".join(json.dumps(each) for each in known["advisories"])
    return f'{json.dumps(head)[:-1]}, "advisories": [\n{lines}\n]}}\n'


def _ranges(advisory: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What of each package an advisory covers: ranges of versions, `fixed` being out of them."""
    for affected in advisory.get("affected", ()):
        ranges = [
            [{kind: str(version) for kind, version in event.items()} for event in each["events"]]
            for each in affected.get("ranges", ())
            if each["type"] == "ECOSYSTEM"
        ]
        yield {
            "package": canonicalize_name(affected["package"]["name"]),
            "id": advisory["id"],
            "aliases": sorted(advisory.get("aliases", ())),
            "ranges": ranges,
        }


def vulnerable(versions: Mapping[str, str], advisories: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each advisory that covers a version, and has no excuse."""
    return [
        f"{each['package']} {versions[each['package']]}: {each['id']} "
        f"({', '.join(each['aliases']) or 'no other name'})"
        for each in advisories
        if each["package"] in versions
        and each["id"] not in EXCUSED
        and any(_covers(events, versions[each["package"]]) for events in each["ranges"])
    ]


def _covers(events: Sequence[Mapping[str, str]], version: str) -> bool:
    """Whether the events of a range, in their order, leave a version affected."""
    mine, affected = Version(version), False
    for event in events:
        ((kind, value),) = event.items()
        try:
            begins = Version("0" if value == "0" else value)
        except InvalidVersion:  # of an old package: no version of ours is like it
            continue
        if kind == "introduced" and mine >= begins:
            affected = True
        elif (kind == "fixed" and mine >= begins) or (kind == "last_affected" and mine > begins):
            affected = False
    return affected


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, after writing the file anew if asked; 1 if an advisory covers a version."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--database", type=Path, help="clone of the advisory database")
    options = parser.parse_args(arguments)
    versions = pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    if options.database is not None:
        known = advisories_of(options.database, frozenset(versions))
        RESULT.write_text(_text_of(known), encoding="utf-8")
    known = json.loads(RESULT.read_text(encoding="utf-8"))
    age = (date.today() - date.fromisoformat(known["date"])).days
    lines = vulnerable(versions, known["advisories"])
    print(
        f"{len(versions)} packages, {len(known['advisories'])} advisories of {known['date']} "
        f"({age} days old): {len(lines)} cover a version of constraints.txt"
    )
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
