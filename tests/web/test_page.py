"""The page works without a script, its links restore it, and it has nothing inline."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import driple.web
import driple.web.pages
from tests.web.conftest import Asker

VIEW = "/?job=mobilenet_v2&clusters=1xA100,8xH100"


def test_the_page_shows_lines_pictures_modules_and_sources(asker: Asker) -> None:
    """All of an answer, for both clusters, from the URL alone."""
    text = asker.page(VIEW).text
    assert text.count("Four resources over a step") == 2
    for words in ("MFU", "GPU busy", "network sent", "Memory over a step", "Time by module",
                  "Where each number comes from", "step time p10 / p50 / p90"):  # fmt: skip
        assert words in text, words
    whole = asker.client.get(VIEW).text  # kept by now
    assert 'value="mobilenet_v2"' in whole
    assert 'value="1xA100,8xH100"' in whole
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == 3
    for picture in pictures:
        ElementTree.fromstring(picture)  # noqa: S314  # made here


def test_a_page_without_pytorch_says_what_it_answers(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a name is typed, and only there."""
    words = "Names and configs need PyTorch"
    assert words not in asker.page("/").text
    monkeypatch.setattr(driple.web.pages, "find_spec", lambda name: None)
    assert words in asker.page("/").text


def test_nothing_is_inline(asker: Asker) -> None:
    """No script, style or handler within the page, which the policy would not let run."""
    text = asker.page("/").text + asker.page(VIEW).text
    assert not re.findall(r"<script(?![^>]*\ssrc=)", text)
    assert "<style" not in text
    assert not re.findall(r"\sstyle=|\son[a-z]+=\"(?!off|on\")", text)
    assert not re.findall(r"hx-on|javascript:|https?://(?!www\.w3\.org)", text)


@pytest.mark.parametrize("change", ["devices=4", "devices=8&bandwidth=4", "host=40", "batch=16"])
def test_a_slider_changes_the_answer_and_the_url(asker: Asker, change: str) -> None:
    usual = asker.page("/view?job=mobilenet_v2&clusters=8xH100")
    changed = asker.page(f"/view?job=mobilenet_v2&clusters=8xH100&{change}")
    assert changed.status_code == 200
    assert changed.text != usual.text
    again = asker.client.get(f"/view?job=mobilenet_v2&clusters=8xH100&{change}")
    assert all(part in again.headers["hx-replace-url"] for part in change.split("&"))


def test_an_uploaded_file_must_be_dropped_again(asker: Asker, graph: bytes) -> None:
    """The link works while the server keeps the file; after that it says what to do."""
    sent = {"kind": "graph", "clusters": "1xA100"}
    answer = asker.client.post(
        "/upload", files={"file": ("../a<b>.pbtxt", graph)}, data=sent, follow_redirects=False
    )
    assert answer.status_code == 303
    place = answer.headers["location"]
    assert "a<b>" not in place
    shown = asker.page(place.replace("/?", "/view?"))
    assert "drop the file again" in shown.text
    assert 'class="lines"' in shown.text
    lost = asker.page(re.sub("job=[0-9a-f]{8}", "job=00000000", place))
    assert lost.status_code == 422
    assert "drop the file again" in lost.text


def test_a_config_is_in_the_link(asker: Asker) -> None:
    config = (
        b'{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2, "n_embd": 64, '
        b'"n_head": 2, "vocab_size": 100}'
    )
    answer = asker.client.post(
        "/upload", files={"file": ("c", config)}, data={"kind": "config"}, follow_redirects=False
    )
    assert "GPT2LMHeadModel" in answer.headers["location"]
    assert 'class="lines"' in asker.page(answer.headers["location"]).text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/?job=nope", "unknown job"),
        ("/?job=%3Cscript%3Ealert(1)%3C/script%3E", "no name of the catalogue"),
        ("/?job=mobilenet_v2&clusters=1xZ900", "1xZ900"),
        ("/?job=mobilenet_v2&clusters=x.yaml", "is no name"),
        ("/?job=mobilenet_v2&devices=many", "whole number"),
        ("/?job=mobilenet_v2&kind=nope", "kind of job"),
        ("/?kind=config&config=%7B", "no JSON"),
    ],
)
def test_a_bad_view_says_why(asker: Asker, path: str, words: str) -> None:
    answer = asker.page(path)
    assert answer.status_code in (400, 422)
    assert words in answer.text
    assert "<script>alert" not in answer.text


def test_a_plan_has_its_ranking_and_front(asker: Asker) -> None:
    text = asker.page("/view?job=mobilenet_v2&clusters=1xT4&plan=on").text
    assert "Pareto front" in text
    assert "(recommended)" in text
    assert 'class="front"' in text


def test_static_files_are_those_that_are_named(asker: Asker) -> None:
    assert asker.client.get("/static/htmx-4.0.1.min.js").status_code == 200
    for name in ("VENDORED.md", "..%2fapp.py", "nothing.js"):
        assert asker.client.get(f"/static/{name}").status_code == 404


def test_the_vendored_file_is_the_released_one() -> None:
    """Its digest stands beside its version, licence and source."""
    import hashlib

    folder = Path(driple.web.__file__).parent / "static"
    digest = hashlib.sha256((folder / "htmx-4.0.1.min.js").read_bytes()).hexdigest()
    assert digest in (folder / "VENDORED.md").read_text()
    assert "Zero-Clause BSD" in (folder / "htmx-LICENSE.txt").read_text()
