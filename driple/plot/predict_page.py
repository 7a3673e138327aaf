"""`driple predict --html`: each answer with its step as a picture, and where numbers come from.

PredictResult -> HTML, complete in itself
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.plot.answer_view import answer_view
from driple.plot.page import facts, heading, items, page, paragraphs, picture, table
from driple.quantities import duration
from driple.render.errors_stated import stated_error_sentence
from driple.render.job_facts import facts_words

if TYPE_CHECKING:
    from driple.api.predicting import Answer, PredictResult

__all__ = ["page_text"]


def page_text(result: PredictResult) -> str:
    """The page of all answers, setting by setting."""
    first = result.answers[0]
    sections = [paragraphs([f"Job: {facts_words(first.job)}."])]
    if len(result.answers) > 1:
        sections += [heading("All settings"), _overview(result)]
    for answer in result.answers:
        sections += _answer(answer)
    names = ", ".join(dict.fromkeys(answer.setting.name for answer in result.answers))
    return page(f"{first.job.name} on {names}", sections)


def _overview(result: PredictResult) -> str:
    rows = []
    for answer in result.answers:
        time = None if answer.best is None else answer.best.step_time
        ends = None if time is None else time.interval
        high = "" if ends is None else "no limit" if ends.high is None else duration(ends.high)
        rows.append(
            [
                answer.setting.name,
                "undecided" if time is None else duration(time.value),
                "unknown" if ends is None else f"{duration(ends.low)} to {high}",
                answer.method,
            ]
        )
    return table(["setting", "step", "90 % interval", "method"], rows, left=frozenset({0, 3}))


def _answer(answer: Answer) -> list[str]:
    view = answer_view(answer)
    stated = answer.stated
    sources = [*view["assumed"]]
    if stated is not None:
        sources.append(f"Error: {stated_error_sentence(stated)}")
    return [
        heading(view["name"]),
        facts(view["lines"]),
        heading("Four resources over a step", 3) if view["timeline"] else "",
        picture(view["timeline"]),
        heading("Where each number comes from", 3),
        table(
            ["number", "value", "method", "rests on"], view["numbers"], left=frozenset({0, 2, 3})
        ),
        heading("Assumptions and error", 3) if sources else "",
        items(sources),
    ]
