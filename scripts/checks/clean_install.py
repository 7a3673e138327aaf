"""A machine with one Python and nothing of Driple: what the checks of an installation start from.

    interpreters of this machine -> PATH with one `python3`, a home of its own, no package index
    packages, downloaded once    -> the only place that pip may look at

Times of an installation leave downloads out, since `downloaded` has fetched all of it before.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = [
    "BUILD_PACKAGES",
    "ROOT",
    "add_results",
    "clean_environment",
    "commit",
    "dated",
    "downloaded",
    "interpreters",
    "output_of",
    "readme_blocks",
    "readme_packages",
]

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
BUILD_PACKAGES = ("hatchling", "pip", "setuptools", "wheel")
_KEPT = ("LANG", "LC_ALL", "TZ", "SSL_CERT_FILE")
_SAYS = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"


def interpreters(versions: Sequence[str] = VERSIONS) -> dict[str, Path]:
    """Pythons that this machine offers, by version: those of PATH, and those of pyenv."""
    interpreters_by_version: dict[str, Path] = {}
    for version in versions:
        for command, more in _ways_to(version):
            try:
                done = subprocess.run(
                    [command, "-c", _SAYS], capture_output=True, text=True, check=True,
                    env=os.environ | more,
                )  # fmt: skip
            except (OSError, subprocess.CalledProcessError):
                continue
            words = done.stdout.split(maxsplit=1)
            if words and words[0] == version:
                interpreters_by_version[version] = Path(words[1].strip()).resolve()
                break
    return interpreters_by_version


def _ways_to(version: str) -> list[tuple[str, dict[str, str]]]:
    """Commands that may start this Python, with what they need in the environment."""
    ways: list[tuple[str, dict[str, str]]] = [(f"python{version}", {})]
    if shutil.which("pyenv"):
        listed = subprocess.run(
            ["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False
        )
        ways += [
            (f"python{version}", {"PYENV_VERSION": name.strip()})
            for name in reversed(listed.stdout.splitlines())
            if name.strip().startswith(f"{version}.")
        ]
    if version == "{}.{}".format(*sys.version_info):
        ways.append((sys.executable, {}))
    return ways


def clean_environment(
    python: Path, work: Path, packages: Path | None = None, threads: int = 2
) -> dict[str, str]:
    """Variables of a process that knows one Python, and has an empty home.

    Args:
        python: the interpreter that `python3` shall be.
        work: folder for the home and for the one command.
        packages: where pip finds all that it installs; None lets it ask its index.
        threads: of numerical libraries.
    """
    commands, home = work / "commands", work / "home"
    for folder in (commands, home):
        folder.mkdir(parents=True, exist_ok=True)
    link = commands / "python3"
    link.unlink(missing_ok=True)
    link.symlink_to(python)
    variables = {name: os.environ[name] for name in _KEPT if name in os.environ}
    variables |= {
        "PATH": f"{commands}:/usr/bin:/bin",
        "HOME": str(home),
        "OMP_NUM_THREADS": str(threads),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    if packages is not None:
        variables |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages)}
    return variables


def downloaded(python: Path, lines: Sequence[Sequence[str]], folder: Path) -> float:
    """Fetch packages with all that they need into a folder; seconds that it took.

    Args:
        python: interpreter for which they are.
        lines: arguments of one `pip download` each, such as `torch==2.13.0`; constraints hold.
        folder: where they go.
    """
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    for words in lines:
        command = [str(python), "-m", "pip", "download", "-q", "--dest", str(folder)]
        command += ["--find-links", str(folder), "-c", str(ROOT / "constraints.txt"), *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"pip could not download {' '.join(words)}: {done.stderr[-1000:]}")
    return time.monotonic() - started


def readme_blocks(language: str, text: str | None = None) -> list[str]:
    """Blocks of README.md in one language, in their order."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8") if text is None else text
    return re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)


def readme_packages(text: str | None = None) -> list[list[str]]:
    """What the README's pip commands install, one command each."""
    commands = re.findall(r"pip install (.*?)(?: &&|$)", "\n".join(readme_blocks("bash", text)),
                          re.MULTILINE)  # fmt: skip
    return [
        [word.strip("'\"") for word in command.replace("-c constraints.txt", "").split()]
        for command in commands
    ]


def output_of(command: Sequence[object], work: Path, variables: Mapping[str, str]) -> str:
    """What a command prints.

    Args:
        command: its words.
        work: folder that it runs in.
        variables: of its environment.

    Raises:
        SystemExit: it failed.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=work, env=dict(variables), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def add_results(file: Path, results: Mapping[str, object]) -> None:
    """Put results in place of those of the same names in a JSON file."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    text = json.dumps({**known, **results}, indent=1, sort_keys=True) + "\n"
    file.write_text(text, encoding="utf-8")


def commit(checkout: Path = ROOT) -> str:
    """The commit of a checkout."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def dated(values: Mapping[str, object], checkout: Path = ROOT) -> dict[str, object]:
    """A result with its date, its commit and the machine's load."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(checkout),
        "load": round(os.getloadavg()[2], 1),  # processes that would run, mean of 15 minutes
        **values,
    }
