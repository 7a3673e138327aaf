"""Write docs/web.md, with what a server of this checkout answers, and its picture.

    python -m scripts.pages.web [--check]   the page
    python -m scripts.pages.web --picture   and docs/pictures/web.png anew: needs chromium

web.in.md + answers of `driple serve` -> docs/web.md
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driple.web.limits import Limits
from scripts.settings.shipped import DOCS, ROOT
from scripts.studies.kit.page import fill
from scripts.studies.kit.written import options_of, written

TEMPLATE = Path(__file__).with_name("web.in.md")
PAGE, PICTURE = DOCS / "web.md", DOCS / "pictures" / "web.png"
REQUEST = {"job": "mobilenet_v2", "clusters": ["1xA100", "8xH100"]}
WRONG = {"job": "mobilenet_v2", "clusters": "8xQ100"}
SHOWN = ("setting", "iteration_time_s", "iteration_time_quantiles_s")
_MIB = 2**20


@contextmanager
def server() -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    command = [sys.executable, "-m", "driple", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None  # noqa: S101  # for mypy
        address = re.search(r"http://[\d.:]+", process.stderr.readline())
        if address is None:
            raise SystemExit("the server did not start")
        yield address[0]
        process.terminate()


def asked(address: str, body: object) -> Any:
    """The answer of /v1/predict, however long it takes."""
    url: str | urllib.request.Request = urllib.request.Request(  # noqa: S310  # our own
        f"{address}/v1/predict", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    while True:
        try:
            with urllib.request.urlopen(url) as answer:  # noqa: S310  # our own
                content = json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)
        if content.get("status") != 202:
            return content
        url = address + content["location"]
        time.sleep(0.2)


def draw(address: str) -> None:
    """The picture of the page."""
    query = f"job={REQUEST['job']}&clusters={','.join(REQUEST['clusters'])}"
    page = f"{address}/?{query}"
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options = ["--window-size=1100,1060", "--virtual-time-budget=20000", f"--screenshot={PICTURE}"]
    asked(address, REQUEST)
    subprocess.run([*command, *options, page], check=True, capture_output=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or check it."""
    parser = options_of(__doc__)
    parser.add_argument("--picture", action="store_true", help="and the picture: needs chromium")
    options = parser.parse_args(argv)
    with server() as address:
        answer = asked(address, REQUEST)["answers"][-1]
        refused = asked(address, WRONG)
        if options.picture:
            draw(address)
    limits = Limits()
    parts = {
        "request": json.dumps(REQUEST),
        "answer": json.dumps({name: answer[name] for name in SHOWN}, indent=1),
        "refused": json.dumps(refused),
        "body_mib": f"{limits.body_bytes // _MIB}",
        "read_s": f"{limits.read_s:g}",
        "kept_minutes": f"{limits.work_kept_s / 60:g}",
        "kept": f"{limits.work_kept}",
    }
    page = fill(TEMPLATE.read_text(encoding="utf-8"), parts)
    return written({PAGE: page}, check=options.check, program="python -m scripts.pages.web")


if __name__ == "__main__":
    sys.exit(main())
