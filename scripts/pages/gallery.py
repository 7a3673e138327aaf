"""Write docs/gallery.md: a picture of each kind, drawn by the command that stands above it.

    python -m scripts.pages.gallery [--check]   the page
    python -m scripts.pages.gallery --picture   and its pictures anew: a minute

commands below -> docs/pictures/gallery-*.png, docs/gallery.md
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from scripts.settings.shipped import DOCS, ROOT
from scripts.studies.kit.written import options_of, written

__all__ = ["PICTURES", "Picture", "main", "page"]

PAGE, FOLDER = DOCS / "gallery.md", DOCS / "pictures"


class Picture(NamedTuple):
    """A picture: its name, what it shows, the command without `--plot`, and how to read it."""

    name: str
    title: str
    command: str
    words: str


PICTURES = (
    Picture(
        "step",
        "One step on a GPU",
        "predict bert-base --batch-size 32 --precision amp-bf16 --setting 4x8xH100/NVLink+100G",
        "Phases of the device are filled, bursts are lines at their mean; in the grey time the "
        "device waits for the network.",
    ),
    Picture(
        "workers",
        "A worker with a parameter server",
        "predict datasets/examples/resnet20.pbtxt --setting V100-P1w2/ho-10G --method simulator",
        "Hatched, the GPU waits for its host. The worker receives parameters once and sends each "
        "gradient when it is ready.",
    ),
    Picture(
        "methods",
        "Every method on one graph",
        "predict datasets/examples/resnet20.pbtxt --setting CPU-P1w2 --method all",
        "A dot is a method's step time, a bar its 90 % interval; hollow dots state no error.",
    ),
    Picture(
        "plan",
        "Time against cost",
        "plan bert-base --batch-size 32 --samples 1M --epochs 3 --instance p4d,p5,g5,g6e",
        "A point is the best way to use some machines; nothing is both faster and cheaper than the "
        "points on the line.",
    ),
    Picture(
        "sweep",
        "More workers, faster links",
        "sweep bert-base --batch-size 32 --setting 8xA100 --workers 1-64 --bandwidth 10G,100G,400G",
        "Samples per second of all devices; dashed is perfect scaling.",
    ),
    Picture(
        "memory",
        "Memory over a step",
        "inspect bert-base --batch-size 32 --setting 1xA100 --memory",
        "Allocated bytes by kind over the ops of one step, with the peak and what runs there.",
    ),
)


def draw(picture: Picture) -> None:
    """Run its command.

    Raises:
        SystemExit: the command fails.
    """
    command = [sys.executable, "-m", "driple", *shlex.split(picture.command)]
    file = FOLDER / f"gallery-{picture.name}.png"
    done = subprocess.run(
        [*command, "--plot", str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"driple {picture.command}: {done.stderr[-500:]}")


def page() -> str:
    """The page."""
    parts = [
        "# Gallery\n\nEach picture is drawn by the command above it (`pip install '.[plot]'`).\n"
    ]
    parts += [
        f"## {picture.title}\n```bash\ndriple {picture.command} --plot {picture.name}.png\n```\n\n"
        f"{picture.words}\n\n![{picture.title}](pictures/gallery-{picture.name}.png)\n"
        for picture in PICTURES
    ]
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or check it."""
    parser = options_of(__doc__)
    parser.add_argument("--picture", action="store_true", help="and the pictures")
    options = parser.parse_args(argv)
    for picture in PICTURES if options.picture else ():
        draw(picture)
    return written({PAGE: page()}, check=options.check, program="python -m scripts.pages.gallery")


if __name__ == "__main__":
    sys.exit(main())
