"""Bill of materials (CycloneDX 1.6, JSON) of Driple with all its extras, as installed here.

    pyproject.toml, metadata of the installed packages -> driple-VERSION.cdx.json

    python -m scripts.release.sbom -o FILE

The same packages give the same bytes: no time, no number of its own, names in order.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.release.dependencies import Package, extras_of_project, packages, project
from scripts.release.licences import STATED

__all__ = ["bill_of_materials", "main", "text_of"]


def bill_of_materials(installed: Sequence[Package], version: str) -> dict[str, object]:
    """The document.

    Args:
        installed: the packages, by name.
        version: of Driple.
    """
    own = f"pkg:pypi/driple@{version}"
    known = {package.name: _url(package) for package in installed}
    direct = {
        str(canonicalize_name(Requirement(line).name))
        for lines in extras_of_project().values()
        for line in lines
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "driple",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [_component(package) for package in installed],
        "dependencies": [
            {"ref": own, "dependsOn": sorted(known[name] for name in direct & set(known))},
            *(
                {
                    "ref": known[package.name],
                    "dependsOn": [known[name] for name in package.needs if name in known],
                }
                for package in installed
            ),
        ],
    }


def _url(package: Package) -> str:
    return f"pkg:pypi/{package.name}@{package.version}"


def _component(package: Package) -> dict[str, object]:
    """One package; `scope` says whether Driple itself needs it, a property which extras do."""
    licence = STATED.get(package.name, package.licence)
    extras = [{"name": "driple:extra", "value": name} for name in package.extras]
    return {
        "type": "library",
        "bom-ref": _url(package),
        "name": package.name,
        "version": package.version,
        "scope": "optional" if package.extras else "required",
        "purl": _url(package),
        "licenses": [{"license": {"name": licence}}] if licence else [],
        **({"properties": extras} if extras else {}),
    }


def text_of(document: dict[str, object]) -> str:
    """The document as it is stored."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the bill of materials; packages that are not installed are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    options = parser.parse_args(arguments)
    installed, missing = packages()
    document = bill_of_materials(installed, str(project()["version"]))
    options.output.write_text(text_of(document), encoding="utf-8")
    print(f"{options.output}: {len(installed)} packages")
    if missing:
        print(f"not installed, so not listed: {', '.join(missing)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
