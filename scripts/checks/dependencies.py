"""Whether the lowest versions that pyproject.toml allows answer, and the newest there are.

    pyproject.toml -> constraints: each dependency at its bound, or none
    wheel, constraints -> clean environment -> README's predictions, tests

    python -m scripts.checks.dependencies [lowest newest] [--write]

PyTorch is the same in both, as builds for processors alone are not offered in each version.
`--write` puts what ran, with the date, into scripts/checks/dependencies.json.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.checks.clean_install import ROOT, add_results, dated, output_of
from scripts.checks.pythons import TORCH, built_wheel, smoke

__all__ = ["EXTRAS", "main", "pinned"]

RESULT = ROOT / "scripts" / "checks" / "dependencies.json"
EXTRAS = ("plot", "train", "torch", "hf", "timm", "onnx", "yaml", "web", "mcp", "async")
KINDS = ("lowest", "newest")
_BOUND = re.compile(r"([A-Za-z0-9_-]+)>=([0-9.]+)")


def pinned(project: Mapping[str, Any], extras: Sequence[str]) -> dict[str, str]:
    """The lowest version of each dependency.

    Args:
        project: table `project` of pyproject.toml.
        extras: whose dependencies count beside those that all installations have.
    """
    wanted = [*project["dependencies"]]
    for name in extras:
        wanted += project["optional-dependencies"][name]
    bounds = (_BOUND.match(line) for line in wanted)
    return {bound[1]: bound[2] for bound in bounds if bound is not None}


def main(arguments: Sequence[str] | None = None) -> int:
    """Install and try each kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=" or ".join(KINDS))
    parser.add_argument("--write", action="store_true", help=f"into {RESULT.name}")
    options = parser.parse_args(arguments)
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"{min(unknown)} is neither {' nor '.join(KINDS)}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lowest = {name: of for name, of in pinned(project, EXTRAS).items() if name != "torch"}
    results: dict[str, object] = {}
    for kind in options.kinds or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            constraints = work / "versions.txt"
            lines = [*TORCH, *(f"{name}=={of}" for name, of in lowest.items() if kind == "lowest")]
            constraints.write_text("".join(f"{line}\n" for line in lines))
            wheel = built_wheel(work)
            ran = smoke(
                Path(sys.executable), wheel, work, extras=",".join(EXTRAS), constraints=constraints
            )
            results[kind] = dated({**ran, "versions": _installed(work, lowest)})
        print(f"{kind}: {json.dumps(results[kind])}", flush=True)
    if options.write:
        add_results(RESULT, results)
    return 0


def _installed(work: Path, names: Mapping[str, str]) -> dict[str, str]:
    """Versions of some packages in the environment of a folder."""
    listed = output_of([work / "venv" / "bin" / "pip", "list", "--format", "json"], work, {})
    same = {name.lower().replace("_", "-"): name for name in names}
    packages = {
        each["name"].lower().replace("_", "-"): each["version"] for each in json.loads(listed)
    }
    return {name: packages[key] for key, name in sorted(same.items()) if key in packages}


if __name__ == "__main__":
    sys.exit(main())
