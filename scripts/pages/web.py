"""Write docs/web.md, with what a server of this checkout answers, and its pictures.

    python -m scripts.pages.web             the page
    python -m scripts.pages.web --picture   and docs/pictures/web*.png anew: needs chromium

web.in.md + answers of `driple serve` -> docs/web.md
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driple.errors import DripleError
from driple.files import atomic_write
from driple.web.limits import Limits
from scripts.checks.web_server import ROOT, RunningServer, running_server
from scripts.studies.kit.page import fill

TEMPLATE = Path(__file__).with_name("web.in.md")
PAGE, PICTURES = ROOT / "docs" / "web.md", ROOT / "docs" / "pictures"
REQUEST = {"job": "mobilenet_v2", "clusters": ["1xA100", "8xH100"]}
WRONG = {"job": "mobilenet_v2", "clusters": "8xQ100"}
SHOWN = ("setting", "iteration_time_s", "iteration_time_quantiles_s")
# Width, height and scheme of the screen, by picture.
SCREENS: dict[str, tuple[int, int, str]] = {
    "web.png": (1100, 1060, "light"),
    "web-dark.png": (1100, 1060, "dark"),
    "web-narrow.png": (390, 844, "light"),
}
_MIB = 2**20


def draw(server: RunningServer) -> None:
    """The pictures of the page."""
    from playwright.sync_api import sync_playwright

    query = f"job={REQUEST['job']}&clusters={','.join(REQUEST['clusters'])}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for name, (width, height, scheme) in SCREENS.items():
            options: dict[str, Any] = {
                "viewport": {"width": width, "height": height},
                "color_scheme": scheme,
            }
            page = browser.new_page(**options)
            narrow = "#answer" if width < 600 else ""  # where a link of the page leads
            page.goto(f"{server.address}/?{query}{narrow}")
            page.wait_for_selector("#answer .lines")
            page.wait_for_load_state("networkidle")
            page.screenshot(path=PICTURES / name)
        browser.close()


def main(argv: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--picture", action="store_true", help="and the pictures: needs chromium")
    options = parser.parse_args(argv)
    with running_server() as server:
        answer = server.answer("/v1/predict", REQUEST)["answers"][-1]
        refused = server.answer("/v1/predict", WRONG)
        if options.picture:
            draw(server)
    limits = Limits()
    parts = {
        "request": json.dumps(REQUEST),
        "answer": json.dumps({name: answer[name] for name in SHOWN}, indent=1),
        "refused": json.dumps(refused),
        "body_mib": f"{limits.body_bytes // _MIB}",
        "head_s": f"{limits.head_s:g}",
        "body_s": f"{limits.body_s:g}",
        "read_s": f"{limits.read_s:g}",
        "work_minutes": f"{limits.work_s / 60:g}",
        "kept_minutes": f"{limits.work_kept_s / 60:g}",
        "kept": f"{limits.work_kept}",
    }
    page = fill(TEMPLATE.read_text(encoding="utf-8"), parts)
    atomic_write(PAGE, page.encode(), error=DripleError)


if __name__ == "__main__":
    main()
