"""The page in Chromium as people use it: mouse, keyboard alone, phone, dark, without a script."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from scripts.checks.web_server import RunningServer, running_server
from tests.web.conftest import ROOT

GRAPH = ROOT / "datasets" / "examples" / "resnet20.pbtxt"
VIEW = "/?job=mobilenet_v2&clusters=1xA100,8xH100"
PHONE = {"width": 390, "height": 844}
_READ_MS = 40_000  # until the first job is read, also on a busy machine
OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server() as running:
        yield running
    assert running.lines == []


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    place = shutil.which("chromium")
    if place is None:
        pytest.fail("no chromium: install Debian's (apt-get install chromium), as .ci/run does")
    # While an answer is worked out, the page shows that it is: what waits for it, waits as long.
    expect.set_options(timeout=_READ_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place)
        yield browser
        browser.close()


@pytest.fixture
def open_page(server: RunningServer, chromium: Browser) -> Iterator[OpenPage]:
    """Opens a path in a context of its own; nothing may go wrong in the page meanwhile."""
    contexts, wrong = [], []

    def opened(path: str = "/", **options: Any) -> Page:
        context = chromium.new_context(base_url=server.address, **options)
        context.set_default_timeout(_READ_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    # A refusal has its status, which Chromium writes to the console as well.
    assert [line for line in wrong if "status of 422" not in line] == []


def answered(page: Page) -> Page:
    """The page with its answer."""
    expect(page.locator("#answer .lines").first).to_be_visible(timeout=_READ_MS)
    return page


def is_in_view(page: Page, selector: str) -> bool:
    """Whether the top of an element is on the screen."""
    top = page.locator(selector).first.evaluate("node => node.getBoundingClientRect().top")
    height = page.viewport_size["height"] if page.viewport_size else 0
    return bool(-1 <= top < height)


def test_a_graph_that_is_dropped_has_its_timeline(open_page: OpenPage) -> None:
    page = open_page()
    page.locator("[name=clusters]").first.fill("1xA100")
    page.get_by_label("A TensorFlow graph, an ONNX file or a config.json").set_input_files(GRAPH)
    page.get_by_role("button", name="Read").click()
    answered(page)
    picture = page.get_by_role("img", name=re.compile("Use of four resources over a step"))
    expect(picture).to_be_visible()
    box = picture.bounding_box()
    assert box is not None
    assert box["width"] > 300
    for words in ("GPU busy", "GPU memory active", "network sent", "network received"):
        expect(picture.get_by_text(words)).to_be_visible()
    assert "resnet20" not in page.url  # no name of a file
    expect(page.get_by_text("drop the file again")).to_be_visible()


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, PHONE], ids=["wide", "phone"])
def test_what_is_written_in_pictures_does_not_overlap(open_page: OpenPage, size: Any) -> None:
    """No two texts of a picture, and none leaves it."""
    page = answered(open_page(VIEW, viewport=size))
    for picture in page.locator("#answer svg").all():
        boxes = picture.locator("text").evaluate_all(
            "nodes => nodes.map(node => { const box = node.getBoundingClientRect();"
            " return [node.textContent, box.left, box.top, box.right, box.bottom]; })"
        )
        frame = picture.bounding_box()
        assert frame is not None
        for words, left, _, right, _ in boxes:
            assert frame["x"] - 1 <= left, words
            assert right <= frame["x"] + frame["width"] + 1, words
        for number, (words, left, top, right, bottom) in enumerate(boxes):
            for other, left_2, top_2, right_2, bottom_2 in boxes[:number]:
                is_apart = right <= left_2 + 1 or right_2 <= left + 1
                # A box is as high as a line, and letters are lower.
                is_apart |= bottom <= top_2 + 4 or bottom_2 <= top + 4
                assert is_apart, (words, other)


@pytest.mark.parametrize(
    ("slider", "presses"),
    [("Batch of a device, doubling", 4), ("Devices, doubling", 2),
     ("Bandwidth, doubling", 2), ("Host, doubling", 6)],
)  # fmt: skip
def test_each_slider_changes_the_answer_and_the_link(
    open_page: OpenPage, slider: str, presses: int
) -> None:
    page = answered(open_page("/?job=mobilenet_v2&clusters=8xH100"))
    before = page.locator("#answer .lines").inner_text()
    control = page.get_by_role("slider", name=slider)
    control.focus()
    for _ in range(presses):
        control.press("ArrowRight")
    name, value = control.get_attribute("data-for"), str(2**presses)
    expect(page.locator(f"#{name}")).to_have_value(value)
    expect(page).to_have_url(re.compile(rf"[?&]{name}={value}(&|#)"), timeout=_READ_MS)
    expect(page.locator("#answer .lines")).not_to_have_text(before)
    assert page.locator("#answer .lines").inner_text() != before
    expect(control).to_be_focused()
    page.reload()
    expect(answered(page).locator(f"#{name}")).to_have_value(value)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"no graph at all", "graph"), (b"", "empty"), (b"\x1f\x8b\x08\x00 cut", "graph")],
    ids=["text", "empty", "cut gzip"],
)
def test_a_bad_file_has_its_message(
    open_page: OpenPage, tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "bad.pbtxt"
    file.write_bytes(content)
    page = open_page()
    page.locator("#drop [type=file]").set_input_files(file)
    page.get_by_role("button", name="Read").click()
    message = page.get_by_role("alert")
    expect(message).to_be_visible(timeout=_READ_MS)
    assert words in message.inner_text()
    assert "bad.pbtxt" not in message.inner_text()


def test_on_a_phone_the_answer_comes_into_view(open_page: OpenPage) -> None:
    """After a submission and from a link; nothing is wider than the screen."""
    page = open_page(viewport=PHONE, has_touch=True, is_mobile=True)
    page.locator("[name=job]").first.fill("mobilenet_v2")
    page.locator("[name=clusters]").first.fill("1xA100")
    page.get_by_role("button", name="Predict").click()
    answered(page)
    expect(page.locator("#answer")).to_be_focused()
    assert is_in_view(page, "#answer")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.goto(page.locator("#answer .note a").last.get_attribute("href") or "")
    assert is_in_view(answered(page), "#answer")


def test_on_a_phone_a_slider_shows_its_answer_beside_it(open_page: OpenPage) -> None:
    """The answer is far below: its first words are at the bottom of the screen, and lead there."""
    page = answered(open_page("/?job=mobilenet_v2&clusters=1xA100", viewport=PHONE))
    line = page.locator(".jump")
    before = line.inner_text()
    assert before.startswith("1xA100: ")
    slider = page.get_by_role("slider", name="Batch of a device, doubling")
    slider.scroll_into_view_if_needed()
    slider.focus()
    for _ in range(7):
        slider.press("ArrowRight")
    expect(line).not_to_have_text(before, timeout=_READ_MS)
    expect(line).to_be_in_viewport()
    line.click()
    expect(page.locator("#answer")).to_be_in_viewport()


def test_all_of_it_works_with_the_keyboard_alone(open_page: OpenPage) -> None:
    """Choose, submit, read, and open the sources of the numbers, without a mouse."""
    page = open_page()

    def tab_to(selector: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("words => document.activeElement.matches(words)", selector):
                return
        raise AssertionError(f"no Tab leads to {selector}")

    tab_to(".skip")
    assert is_in_view(page, ".skip")
    tab_to("#ask [name=job]")
    page.keyboard.type("mobilenet_v2")
    tab_to("#ask [name=clusters]")
    page.keyboard.type("1xA100")
    tab_to("#ask [type=range][data-for=batch]")
    # The slider asks too: its answer, if it came last, would take the focus.
    with page.expect_response(lambda response: "batch=2" in response.url):
        page.keyboard.press("ArrowRight")
    answered(page)
    tab_to("#ask button[type=submit]")
    page.keyboard.press("Enter")
    # The first swap takes the focus, which on a busy machine says that the answer is at work.
    expect(page.locator("#answer")).to_be_focused()
    answered(page)
    tab_to("#answer summary")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Numbers of 1xA100")).to_be_visible()
    tab_to("#answer .table")
    tab_to("#answer .note a")


def test_a_file_can_be_sent_with_the_keyboard(open_page: OpenPage) -> None:
    """Beside the system's own dialogue, which chooses it."""
    page = open_page()
    page.locator("#drop [type=file]").focus()
    page.locator("#drop [type=file]").set_input_files(GRAPH)
    page.keyboard.press("Tab")
    expect(page.locator("#file-kind")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    answered(page)
    assert is_in_view(page, "#answer")


def test_in_the_dark_it_is_dark_and_a_button_changes_that(open_page: OpenPage) -> None:
    page = answered(open_page(VIEW, color_scheme="dark"))
    back = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(back) == "rgb(20, 23, 27)"
    page.get_by_role("button", name="Dark or light").click()
    assert page.evaluate(back) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(back) == "rgb(255, 255, 255)"


def test_it_works_without_a_script(open_page: OpenPage) -> None:
    page = open_page(java_script_enabled=False)
    page.locator("[name=job]").first.fill("mobilenet_v2")
    page.locator("[name=clusters]").first.fill("1xA100")
    page.get_by_role("button", name="Predict").click()
    while page.get_by_text("Load this page again").count():
        page.wait_for_timeout(500)
        page.reload()
    answered(page)
    assert page.url.endswith("#answer")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("path", "shown", "size"),
    [
        ("/", "#ask", None),
        (VIEW, "#answer .lines", None),
        (VIEW, "#answer .lines", PHONE),
        ("/?job=nope", "[role=alert]", None),
        ("/?job=mobilenet_v2&clusters=1xT4&plan=on", "#answer .best", None),
    ],
    ids=["empty", "answer", "phone", "refusal", "plan"],
)
def test_axe_finds_nothing_serious(
    open_page: OpenPage, path: str, shown: str, size: Any, scheme: str
) -> None:
    """Contrast, names of controls, order of headings: nothing serious or critical."""
    options = {"viewport": size} if size else {}
    page = open_page(path, color_scheme=scheme, reduced_motion="reduce", **options)
    expect(page.locator(shown).first).to_be_visible(timeout=_READ_MS)
    for summary in page.locator("#answer summary").all():
        summary.click()
    violations = Axe().run(page).response["violations"]
    serious = [
        (each["id"], [node["html"][:200] for node in each["nodes"][:3]])
        for each in violations
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []
