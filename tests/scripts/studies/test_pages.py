"""Pages of the studies: made of stored results, short, and without a dead link."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.studies.kit.page import MOST_WORDS, PAGE, num_words, page_of
from scripts.studies.report import NAMES, main, parts_of

STUDIES = Path(__file__).parents[3] / "scripts/studies"
# These read data sets and profiles, which takes half a minute.
SLOW = {"measured", "stalls"}
LINK = re.compile(r"\]\(([^)#\s]+)\)")


def test_every_study_has_a_program_and_a_page() -> None:
    """All folders but the kit."""
    folders = {file.parent.name for file in STUDIES.glob("*/*.py")} - {"kit"}
    assert set(NAMES) == folders
    for name in NAMES:
        assert (STUDIES / name / "run.py").exists()
        assert (STUDIES / name / PAGE).exists()


def test_an_unknown_study_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With the names of those that there are; none is no study either."""
    for arguments in (["weather"], []):
        with pytest.raises(SystemExit):
            main(arguments)
        assert "accuracy, catalogue" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_short_and_answers_a_question(name: str) -> None:
    """At most 1,500 words beside tables: question, data, result, limits, in this order."""
    text = (STUDIES / name / PAGE).read_text()
    assert num_words(text) <= MOST_WORDS
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert heads == ["Question", "Data", "Result", "Limits"]
    for target in LINK.findall(text):
        if not target.startswith("http"):
            assert (STUDIES / name / target).exists(), target


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in NAMES]
)
def test_a_page_is_what_its_report_makes_of_stored_results(name: str) -> None:
    """Nothing was changed by hand, and no result without the page."""
    assert (STUDIES / name / PAGE).read_text() == page_of(STUDIES / name, parts_of(name)), (
        f"run python -m scripts.studies.report {name}"
    )
