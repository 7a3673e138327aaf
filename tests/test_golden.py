"""What the old command lines answered is what the new ones answer, to six significant digits.

tests/data/golden/answers.json.gz: an old command line, its exit status, its numbers by path
    --new_line, new_path--> the new command line and the path in its JSON --> the same number

The numbers were stored before the commands were joined. tests/data/golden/changed.json lists what
changed since, with the fault that was fixed. The fast suite compares a part of the command lines;
`pytest -m slow tests/test_golden.py` compares all of them.
"""

import contextlib
import gzip
import io
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from driple.cli.main import _run

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "data" / "golden"
TOLERANCE = 1e-6
# Preset `paper` computes in float32: the order of its sums follows the processor and the number of
# threads, and 15 of 1,324 command lines differ by up to 4e-6 between two machines.
FLOAT32_TOLERANCE = 1e-5
ROUNDED = 1e-15  # what a difference of equal times leaves, in seconds

# Old command -> new command, and the options that it needs.
COMMANDS = {
    ("predict",): (("predict",), ("--method", "inspector")),
    ("simulate",): (("predict",), ("--method", "simulator")),
    ("compare",): (("predict",), ("--method", "all")),
    ("model", "zeng"): (("predict",), ("--method", "analytic")),
    ("model", "zhang"): (("predict",), ("--method", "analytic")),
    ("whatif",): (("sweep",), ()),
    ("throughput", "predict"): (("sweep",), ()),
    ("graph", "show"): (("inspect",), ()),
    ("stalls", "cost"): (("plan",), ()),
    ("stalls", "predict"): (("profile", "links"), ()),
    ("dataset", "info"): (("data", "list"), ()),
    ("dataset", "show"): (("data", "show"), ()),
    ("zoo", "list"): (("jobs", "list"), ()),
}
MOVED = re.compile(r"^datasets/((?:CPU|V100|2080Ti|TitanRTX|\d+x).*)$")  # data sets of settings
RENAMED = {"--network": "--bandwidth"}  # option of `stalls predict`
# Options that are values of `--set` now.
VALUES = {"--preset": "preset", "--steps": "steps", "--seed": "seed", "--placement": "placement"}

# Old path -> new path: the first pattern that fits, for each old command.
JOB_FACTS = (r"(unknown_\w+|op_types_without_cost)(/.*)?$", r"job/\1\2")
ANSWER_FACTS = (JOB_FACTS[0], r"answers/0/job/\1\2")
SAME_IN_ANSWER = (
    r"((?:graph|checkpoint|stated_error|targets|workers|work)(?:/.*)?)$",
    r"answers/0/\1",
)
PATHS: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {
    ("predict",): (
        (r"(targets/\w+/\w+)$", r"answers/0/\1/value"),
        (r"(iteration_time_s|closed_form_s)$", r"answers/0/\1/value"),
        (r"interval/level$", r"answers/0/iteration_time_s/interval/level"),
        (r"interval/(targets/\w+/\w+|iteration_time_s)/0$", r"answers/0/\1/interval/low"),
        (r"interval/(targets/\w+/\w+|iteration_time_s)/1$", r"answers/0/\1/interval/high"),
        SAME_IN_ANSWER,
        ANSWER_FACTS,
    ),
    ("simulate",): (
        (r"(targets/\w+/\w+)$", r"answers/0/\1/value"),
        (r"iteration_time_s$", r"answers/0/iteration_time_s/value"),
        (r"(workers/\d+/iteration_time_s)$", r"answers/0/\1/value"),
        SAME_IN_ANSWER,
        ANSWER_FACTS,
    ),
    ("compare",): (
        # A measured time has no interval any more; both ends were the time itself.
        (
            r"settings/0/(methods/measured)/interval_s/\d$",
            r"answers/0/\1/iteration_time_s/value",
        ),
        (r"settings/0/(methods/[\w-]+/iteration_time_s)$", r"answers/0/\1/value"),
        (
            r"settings/0/(methods/[\w-]+)/interval_s/0$",
            r"answers/0/\1/iteration_time_s/interval/low",
        ),
        (
            r"settings/0/(methods/[\w-]+)/interval_s/1$",
            r"answers/0/\1/iteration_time_s/interval/high",
        ),
        (r"settings/0/(.*)$", r"answers/0/\1"),
        ANSWER_FACTS,
    ),
    ("model",): (
        (r"models/([\w-]+)/iteration_time_s$", r"answers/0/methods/\1/iteration_time_s/value"),
        (r"models/([\w-]+/.*)$", r"answers/0/methods/\1"),
        (r"(communication_ratio)$", r"answers/0/\1"),
        (
            r"((?:forward_flops|parameter_bytes|pushes|ops_of_unknown_flops|bytes_share_of_unknown)"
            r"(?:/.*)?)$",
            r"answers/0/work/\1",
        ),
        ANSWER_FACTS,
    ),
    ("whatif",): (
        (
            r"columns/(bandwidth_bits_per_s|workers|servers|compression)/(\d+)$",
            r"clusters/\1/\2",
        ),
        (r"columns/(\w+)/(\d+)$", r"estimates/\1/value/\2"),
        JOB_FACTS,
    ),
    ("throughput", "predict"): (
        (r"curve/(\d+)/workers$", r"clusters/workers/\1"),
        (r"curve/(\d+)/step_s$", r"estimates/iteration_time_s/value/\1"),
        (r"curve/(\d+)/examples_per_s$", r"estimates/examples_per_s/value/\1"),
        (r"curve/(\d+)/interval/0$", r"estimates/examples_per_s/interval/low/\1"),
        (r"curve/(\d+)/interval/1$", r"estimates/examples_per_s/interval/high/\1"),
        (r"curve/(\d+)/baselines/(.+)$", r"facts/baselines_examples_per_s/\2/\1"),
        (r"(batch_size|servers|profiled_step_s|knee)$", r"facts/\1"),
    ),
    ("graph", "show"): (JOB_FACTS, (r"(.*)$", r"\1")),
    ("stalls", "predict"): (
        JOB_FACTS,
        (r"device_s$", r"iteration_time_s/value"),
        (r"((?:interconnect|network)_stall_(?:s|pct))$", r"\1/value"),
        (r"(.*)$", r"\1"),
    ),
    ("stalls", "cost"): (
        (r"(offers/\d+)/iteration_s$", r"\1/iteration_time_s/value"),
        (r"(offers/\d+)/epoch_s$", r"\1/training_time_s/value"),
        (r"(offers/\d+)/epoch_cost$", r"\1/cost/value"),
        (r"(offers/\d+/communication_pct)$", r"\1/value"),
        (r"(offers/\d+)/per_hour$", r"\1/price_per_hour"),
        JOB_FACTS,
        (r"(.*)$", r"\1"),
    ),
    ("dataset", "show"): (
        (r"(targets/\w+/\w+|iteration_time_s)$", r"\1/value"),
        (r"(.*)$", r"\1"),
    ),
    **dict.fromkeys((("dataset", "info"), ("zoo", "list")), ((r"(.*)$", r"\1"),)),
}
PATHS[("model", "zeng")] = PATHS[("model", "zhang")] = PATHS.pop(("model",))

# Which command lines the fast suite compares: every old command, on one job and some settings.
FAST_JOB = "resnet20"
FAST_SETTINGS = ("V100-P1w2/ho-PCIe", "CPU-P1w2/ho-200M", "A100-R8/ho-NVLink")


@cache
def stored() -> list[dict[str, Any]]:
    """All old command lines that have a successor here."""
    with gzip.open(GOLDEN / "answers.json.gz", "rt", encoding="utf-8") as file:
        entries: list[dict[str, Any]] = json.load(file)
    return [entry for entry in entries if old_command(entry["command"]) is not None]


def old_command(words: list[str]) -> tuple[str, ...] | None:
    """The old command of a command line; None if it is not of the table."""
    return next((key for key in COMMANDS if tuple(words[: len(key)]) == key), None)


def new_line(words: list[str]) -> list[str]:
    """The new command line for an old one."""
    old = old_command(words)
    assert old is not None
    command, options = COMMANDS[old]
    changed = []
    rest = iter(words[len(old) :])
    for word in (MOVED.sub(r"datasets/settings/\1", old_word) for old_word in rest):
        value = VALUES.get(word)
        changed += (
            [RENAMED.get(word, word)] if value is None else ["--set", f"{value}={next(rest)}"]
        )
    return [*command, *changed, *options]


def new_path(old: tuple[str, ...], path: str) -> str:
    """Where the JSON of the new command has the number of an old path."""
    for pattern, replacement in PATHS[old]:
        match = re.match(pattern, path)
        if match:
            return match.expand(replacement)
    raise AssertionError(f"{' '.join(old)}: no new path for {path}")


def numbers_in(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a JSON value with the path to it; truth values are none."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield path, float(value)
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from numbers_in(entry, f"{path}/{key}" if path else key)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from numbers_in(entry, f"{path}/{index}")


def answer(arguments: list[str]) -> tuple[int, dict[str, float]]:
    """Exit status and numbers of one new command line."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = _run([*arguments, "--json"])
    return status, dict(numbers_in(json.loads(out.getvalue()))) if status == 0 else {}


def differences(entry: dict[str, Any]) -> list[str]:
    """What differs between an old answer and the new one, one line each."""
    words = entry["command"]
    old = old_command(words)
    assert old is not None
    status, numbers = answer(new_line(words))
    if status != entry["status"]:
        return [f"status was {entry['status']}, now {status}"]
    if old == ("stalls", "cost"):
        return _offers_that_are_gone(entry["numbers"], numbers)
    lines = []
    tolerance = FLOAT32_TOLERANCE if "paper" in words else TOLERANCE
    for path, before in entry["numbers"].items():
        place = new_path(old, path)
        after = numbers.get(place)
        if after is None or not _close(before, after, tolerance):
            lines.append(f"{path} was {before}, {place} is {after}")
    return lines


def _close(value: float, other: float, tolerance: float = TOLERANCE) -> bool:
    if max(abs(value), abs(other)) < ROUNDED:
        return True
    return abs(value - other) <= tolerance * max(abs(value), abs(other))


def _offers_that_are_gone(before: dict[str, float], after: dict[str, float]) -> list[str]:
    """Offers without an equal among the new ones: the catalogue has grown, so places differ."""
    old = ("stalls", "cost")
    new_offers = _offers(after).values()
    gone = [
        f"no offer is {offer}"
        for offer in _offers({new_path(old, path): v for path, v in before.items()}).values()
        if not any(all(_close(v, one.get(k, -1.0)) for k, v in offer.items()) for one in new_offers)
    ]
    return gone + [
        f"{path} was {value}, now {after.get(new_path(old, path))}"
        for path, value in before.items()
        if not path.startswith("offers/")
        and not _close(value, after.get(new_path(old, path), -1.0))
    ]


def _offers(numbers: dict[str, float]) -> dict[str, dict[str, float]]:
    """Numbers of each offer of a plan, by its place."""
    offers: dict[str, dict[str, float]] = {}
    for path, value in numbers.items():
        if path.startswith("offers/"):
            _, place, rest = path.split("/", 2)
            offers.setdefault(place, {})[rest] = value
    return offers


@cache
def changes() -> list[dict[str, str]]:
    """Jobs whose answers changed by a fault that was fixed since, with the reason."""
    rows: list[dict[str, str]] = json.loads((GOLDEN / "changed.json").read_text())
    return rows


def unexplained(entry: dict[str, Any]) -> list[str]:
    """What differs from an old answer without a reason in changed.json, one line each.

    A row there excuses the command lines that its `command` matches, and of these the numbers
    whose paths its `paths` match; all if it has none.
    """
    line = " ".join(entry["command"])
    excused = [row.get("paths", "") for row in changes() if re.search(row["command"], line)]
    if "" in excused:
        return []
    lines = differences(entry)
    return [one for one in lines if not any(re.match(paths, one) for paths in excused)]


def is_fast(words: list[str]) -> bool:
    """Whether the fast suite compares a command line."""
    if words[:2] == ["stalls", "cost"]:
        return "--batch-size" in words or any(FAST_JOB in word for word in words)
    if any(word.endswith(".npz") for word in words) or words[0] in ("dataset", "zoo"):
        return True
    setting = words[words.index("--setting") + 1] if "--setting" in words else FAST_SETTINGS[0]
    return (
        any(FAST_JOB in one for one in words) and setting in FAST_SETTINGS and "paper" not in words
    )


LINES = [pytest.param(entry, id=" ".join(entry["command"])) for entry in stored()]
FAST = [one for one in LINES if is_fast(one.values[0]["command"])]


@pytest.mark.parametrize("entry", FAST)
def test_an_old_answer_is_still_given(
    entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert unexplained(entry) == []


@pytest.mark.slow
@pytest.mark.parametrize("entry", LINES)
def test_every_old_answer_is_still_given(
    entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert unexplained(entry) == []


def test_the_part_is_a_part() -> None:
    """About 30 command lines with every old command among them, with and without an answer."""
    words = [one.values[0]["command"] for one in FAST]
    assert 20 <= len(words) <= 35
    assert {old_command(line) for line in words} == set(COMMANDS)
    assert {one.values[0]["status"] for one in FAST} == {0, 2}


def test_changes_state_a_reason() -> None:
    for row in changes():
        assert row["reason"]
        assert any(re.search(row["command"], " ".join(entry["command"])) for entry in stored())
