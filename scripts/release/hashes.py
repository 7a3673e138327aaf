"""Exact versions and hashes of what `scripts/quickstart` installs, for each Python and machine.

    pyproject.toml, constraints.txt -> pip download per Python and machine -> sha256 of the files

    python -m scripts.release.hashes           # writes scripts/release/quickstart.txt
    python -m scripts.release.hashes --check   # says whether it is as constraints.txt has it

The file has no address: any index that serves these files will do.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

__all__ = ["MACHINES", "PYTHONS", "main", "pinned", "text_of", "wanted", "wrong_pins"]

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "scripts" / "release" / "quickstart.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
_HEAD = """# What scripts/quickstart installs: `python -m scripts.release.hashes` writes this file.
# For Python {pythons} on Linux ({machines}), held to by pip's --require-hashes.
"""


def wanted() -> list[str]:
    """Requirements of Driple itself and of its build."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [*project["project"]["dependencies"], *project["build-system"]["requires"]]


def files_for(python: str, machine: str, folder: Path) -> list[Path]:
    """The files that pip installs of the requirements on one kind of machine.

    Raises:
        SystemExit: pip cannot get them.
    """
    command = [sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:"]
    command += ["--python-version", python, "--implementation", "cp", "--dest", str(folder)]
    for platform in _PLATFORMS:
        command += ["--platform", f"{platform}_{machine}"]
    command += ["-c", str(ROOT / "constraints.txt"), *wanted()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"Python {python} on {machine}: {done.stderr[-1000:]}")
    return sorted(folder.glob("*.whl"))


def text_of(files: Iterable[Path]) -> str:
    """The requirements file for these wheels; each name may have several wheels of one version.

    Raises:
        SystemExit: two versions of a package, which no requirements file can ask for.
    """
    hashes: defaultdict[str, set[str]] = defaultdict(set)
    versions: dict[str, str] = {}
    for file in files:
        name, version = file.name.split("-")[:2]
        name = re.sub(r"[-_.]+", "-", name).lower()
        if versions.setdefault(name, version) != version:
            raise SystemExit(f"{name} comes as {versions[name]} and {version}; constrain it")
        hashes[name].add(hashlib.sha256(file.read_bytes()).hexdigest())
    lines = [
        f"{name}=={versions[name]} \\\n"
        + " \\\n".join(f"    --hash=sha256:{value}" for value in sorted(hashes[name]))
        for name in sorted(hashes)
    ]
    head = _HEAD.format(pythons=", ".join(PYTHONS), machines=", ".join(MACHINES))
    return head + "\n".join(lines) + "\n"


def pinned(text: str) -> dict[str, str]:
    """Versions of a requirements or constraints file, by normalised name."""
    return {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE)
    }


def wrong_pins(text: str, constraints: Mapping[str, str]) -> list[str]:
    """What a requirements file has otherwise than the constraints, or lacks; one line each."""
    versions = pinned(text)
    needed = {re.sub(r"[-_.]+", "-", re.split(r"[<>=!~ ;\[]", one)[0]).lower() for one in wanted()}
    lines = [f"{name} is missing" for name in sorted(needed - set(versions))]
    lines += [
        f"{name} is {version}, and constraints.txt has {constraints.get(name, 'none')}"
        for name, version in sorted(versions.items())
        if constraints.get(name) != version
    ]
    for block in re.split(r"\n(?=\S)", text):
        if "==" in block and not re.search(r"--hash=sha256:[0-9a-f]{64}", block):
            lines.append(f"{block.split('==')[0]} has no hash")
    if "://" in text:
        lines.append("an address is in it; any index will do")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file, or check it; 1 if it is not as constraints.txt has it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="without asking any index")
    options = parser.parse_args(arguments)
    if not options.check:
        with tempfile.TemporaryDirectory() as folder:
            files = [
                file
                for python in PYTHONS
                for machine in MACHINES
                for file in files_for(python, machine, Path(folder) / f"{python}-{machine}")
            ]
            RESULT.write_text(text_of(files), encoding="utf-8")
    constraints = pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    wrong = wrong_pins(RESULT.read_text(encoding="utf-8"), constraints)
    for line in wrong:
        print(f"{RESULT.name}: {line}; run python -m scripts.release.hashes", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
