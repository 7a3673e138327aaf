"""Refuse tracked files over 20 MB, and more than 150 MB in all.

python scripts/check_file_sizes.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MOST_BYTES = 20 * 10**6
MOST_BYTES_IN_ALL = 150 * 10**6


def main() -> int:
    """Print what is too large; 1 if anything is."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True)
    sizes = {
        name: Path(name).stat().st_size
        for name in listed.stdout.split("\0")
        if name and Path(name).is_file()
    }
    wrong = [f"{name}: {size / 1e6:.1f} MB" for name, size in sizes.items() if size > MOST_BYTES]
    if sum(sizes.values()) > MOST_BYTES_IN_ALL:
        wrong.append(f"all files together: {sum(sizes.values()) / 1e6:.1f} MB")
    for line in wrong:
        print(f"too large: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
