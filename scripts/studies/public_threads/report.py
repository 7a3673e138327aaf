"""Page from threads.json, passed.csv and results.jsonl."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from scripts.studies.kit.page import Parts
from scripts.studies.kit.tables import markdown
from scripts.studies.public_threads.run import HOME, RESULTS, THREADS

_OUT_OF_MEMORY = "out of memory"
_MOST_WIDTH = 4.0
_OUTCOMES = ("right", "inside, too wide", "outside", "no answer")


def rows() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each thread with today's answer."""
    answers = map(json.loads, RESULTS.read_text(encoding="utf-8").splitlines())
    known = {answer["id"]: answer for answer in answers}
    return [(each, known[each["id"]]) for each in json.loads(THREADS.read_text(encoding="utf-8"))]


def number_of(thread: Mapping[str, Any], answer: Mapping[str, Any]) -> list[float] | None:
    """Value, lower and upper end of what the thread states; None without an answer."""
    name = "step_s" if thread["published"]["what"] == "step" else "memory_gib"
    numbers: list[float] | None = answer.get(name)
    return numbers


def is_right(thread: Mapping[str, Any], answer: Mapping[str, Any]) -> bool | None:
    """Whether the number is inside the interval; of a job that did not fit, the verdict."""
    number = number_of(thread, answer)
    if number is None:
        return None
    if thread["published"]["what"] == _OUT_OF_MEMORY:
        return answer["fits"] in ("no", "likely not")
    return bool(number[1] <= thread["published"]["value"] <= number[2])


def width_of(thread: Mapping[str, Any], answer: Mapping[str, Any]) -> float | None:
    """Upper over lower end."""
    number = number_of(thread, answer)
    return None if number is None else number[2] / number[1]


def outcome(thread: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """In words."""
    right, width = is_right(thread, answer), width_of(thread, answer)
    if right is None or width is None:
        return "no answer"
    if not right:
        return "outside"
    return "right" if width <= _MOST_WIDTH else "inside, too wide"


def table(ten: int) -> list[str]:
    """A line for each thread of the first or the second ten."""
    lines = []
    for thread, answer in rows():
        if thread["ten"] != ten:
            continue
        width = width_of(thread, answer)
        lines.append(
            [
                f"{thread['query']}.{thread['rank']} {thread['source']} ({thread['date']})",
                thread["job"],
                _published(thread),
                _first(thread, answer),
                _answer(thread, answer),
                "-" if width is None else f"{width:.1f}",
                outcome(thread, answer),
            ]
        )
    head = ["source", "job", "published", "first answer", "answer today", "width", "today"]
    return markdown(head, lines)


def figures() -> list[str]:
    """Counts of each ten and of both: today's answers, and those of before anything was mended."""
    today = {ten: Counter(outcome(*each) for each in rows() if each[0]["ten"] == ten)
             for ten in (1, 2)}  # fmt: skip
    blind = Counter(each["first"]["outcome"] for each, _ in rows() if each["ten"] == 2)
    counted = [
        ("first ten, today", today[1]),
        ("second ten, first answer", blind),
        ("second ten, today", today[2]),
        ("both, today", today[1] + today[2]),
    ]
    lines = [[name, *(str(counts[word]) for word in _OUTCOMES)] for name, counts in counted]
    return markdown(["threads", *_OUTCOMES], lines, right=True)


def _published(thread: Mapping[str, Any]) -> str:
    what = thread["published"]["what"]
    if what == _OUT_OF_MEMORY:
        return _OUT_OF_MEMORY
    return _with_unit(thread, thread["published"]["value"])


def _with_unit(thread: Mapping[str, Any], value: float) -> str:
    unit = "s" if thread["published"]["what"] == "step" else "GiB"
    return f"{value:.3g} {unit}"


def _answer(thread: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    number = number_of(thread, answer)
    if number is None:
        return str(answer.get("refused", "not estimated"))
    words = f"{_with_unit(thread, number[0])} ({number[1]:.3g} to {number[2]:.3g})"
    if thread["published"]["what"] != _OUT_OF_MEMORY:
        return words
    verdict = {"no": "does not fit", "yes": "fits"}.get(answer["fits"], "likely does not fit")
    return f"{verdict}: {words} of {answer['capacity_gib']:.3g} GiB"


def _first(thread: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    return str(thread["first"]["answer"]) if "first" in thread else "the same"


def changes() -> list[str]:
    """What was changed between the first answer and today's."""
    return [f"- **{each['id']}**: {each['change']}." for each, _ in rows() if "change" in each]


def commands() -> list[str]:
    """What was typed for each job, after `driple predict`."""
    lines = [[each["id"], f"`{' '.join(each['command'])}`"] for each, _ in rows()]
    return markdown(["job", "driple predict ..."], lines)


def passed() -> list[str]:
    """Why results were passed over, and how often."""
    reasons = Counter(row["reason"] for row in _passed())
    return markdown(["reason", "results"], [[why, str(n)] for why, n in reasons.most_common()])


def _passed() -> list[dict[str, str]]:
    with (HOME / "passed.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def parts() -> Parts:
    """Tables and counts of the page."""
    first = [each.get("first", {}).get("is_right", is_right(each, answer))
             for each, answer in rows() if each["ten"] == 1]  # fmt: skip
    over = Counter(row["ten"] for row in _passed())
    return {
        "figures": figures(),
        "first_ten": table(1),
        "second_ten": table(2),
        "changes": changes(),
        "commands": commands(),
        "passed": passed(),
        "passed_1": str(over["1"]),
        "passed_2": str(over["2"]),
        "first_unanswered": str(sum(one is None for one in first)),
        "first_outside": str(sum(one is False for one in first)),
    }
