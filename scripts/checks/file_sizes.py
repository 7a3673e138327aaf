"""Refuse tracked files over 20 MB, a checkout over 80 MB, and a wheel over 30 MB.

python -m scripts.checks.file_sizes [--wheel FILE.whl]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

MOST_BYTES = 20 * 10**6
MOST_BYTES_OF_CHECKOUT = 80 * 10**6
MOST_BYTES_OF_WHEEL = 30 * 10**6


def tracked_bytes(folder: Path) -> dict[str, int]:
    """Sizes of the tracked files of a checkout, by name."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return {
        name: (folder / name).stat().st_size
        for name in listed.stdout.split("\0")
        if name and (folder / name).is_file()
    }


def too_large(num_bytes: Mapping[str, int], wheel: Path | None = None) -> list[str]:
    """Lines that name each file, checkout or wheel over its limit.

    Args:
        num_bytes: sizes of the tracked files, by name.
        wheel: built package, if it is checked too.
    """
    wrong = [
        f"{name}: {size / 1e6:.1f} MB, at most {MOST_BYTES / 1e6:.0f} MB"
        for name, size in num_bytes.items()
        if size > MOST_BYTES
    ]
    whole = sum(num_bytes.values())
    if whole > MOST_BYTES_OF_CHECKOUT:
        limit = f"at most {MOST_BYTES_OF_CHECKOUT / 1e6:.0f} MB"
        wrong.append(f"the checkout: {whole / 1e6:.1f} MB, {limit}")
    if wheel is not None and (size := wheel.stat().st_size) > MOST_BYTES_OF_WHEEL:
        wrong.append(f"{wheel}: {size / 1e6:.1f} MB, at most {MOST_BYTES_OF_WHEEL / 1e6:.0f} MB")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is too large; 1 if anything is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--wheel", type=Path, help="built package")
    options = parser.parse_args(arguments)
    wrong = too_large(tracked_bytes(Path.cwd()), options.wheel)
    for line in wrong:
        print(f"too large: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
