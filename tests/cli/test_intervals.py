"""Where a step time is printed, its interval stands beside it: the same numbers as in the JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from driple.answers import by_simulator as module
from driple.answers.error_statement import StatedError
from driple.answers.tuned_steps import tuned_steps
from driple.estimate import GUESS_FACTOR, Interval
from driple.plot.step import _step_words
from driple.quantities import duration, duration_range
from driple.remarks import Remark
from driple.units import format_range, three_digits
from tests.cli.test_main import EXAMPLE, MEASURED, driple

QUICK = ("--set", "steps=20")
RUNS = Remark.of_text("runs")
SIMULATE = ("predict", "--method", "simulator")
NARROW = StatedError(
    num_runs=9, runs=RUNS, median_pct=5, p90_pct=9, runs_median_pct=4, runs_p90_pct=8,
    low_factor=0.9, high_factor=1.1,
)  # fmt: skip
WIDE = StatedError(
    num_runs=9, runs=RUNS, median_pct=300, p90_pct=3600, runs_median_pct=250, runs_p90_pct=900,
    low_factor=1e-4, high_factor=2.0,
)  # fmt: skip


def asked(*arguments: object) -> tuple[str, dict[str, Any]]:
    """All that a command explains, and its JSON."""
    explain = ("--explain",) if arguments[0] == "predict" else ()
    shown, as_json = driple(*arguments, *explain), driple(*arguments, "--json")
    assert shown.returncode == as_json.returncode == 0, shown.stderr + as_json.stderr
    return shown.stdout, json.loads(as_json.stdout)


def first_line(*arguments: object) -> str:
    """What `predict` says first."""
    shown = driple(*arguments)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout.splitlines()[0]


def says(first: str, time: dict[str, Any]) -> bool:
    """Whether a first line has a number of the JSON."""
    ends = time["interval"]
    if ends is None:
        return first.startswith(f"step      {duration(time['value'])}")
    interval = Interval(low=ends["low"], high=ends["high"])
    if interval.width > GUESS_FACTOR:
        return first.startswith("a guess:  ") and f"a step of {duration_range(interval)}" in first
    return first.startswith(f"step      {duration(time['value'], interval)}")


def in_words(time: dict[str, Any]) -> str:
    """A number of the JSON as it should be printed."""
    ends, words = time["interval"], f"{three_digits(time['value'])} s"
    return words if ends is None else f"{words} ({format_range(ends['low'], ends['high'])})"


def stating(monkeypatch: pytest.MonkeyPatch, stated: StatedError) -> None:
    monkeypatch.setattr(module, "stated_error", lambda *_, **__: stated)


@pytest.mark.parametrize(
    ("line", "has_interval"),
    [
        ((*SIMULATE, EXAMPLE, "--setting", "1xH100"), True),
        ((*SIMULATE, EXAMPLE, "--setting", "2080Ti-P1w2/ho-10G"), True),
        ((*SIMULATE, MEASURED, "--setting", "CPU-P1w2"), True),
        ((*SIMULATE, EXAMPLE, "--setting", "2xA100"), True),
        ((*SIMULATE, EXAMPLE, "--setting", "8xMI300X"), True),
        ((*SIMULATE, EXAMPLE, "--setting", "V100-P1w2"), True),
    ],
    ids=lambda part: part[-1] if isinstance(part, tuple) else None,
)
def test_the_simulators_step_time_is_printed_with_the_interval_of_the_json(
    line: tuple[object, ...], has_interval: bool
) -> None:
    """Without a stated error there are no brackets, and no line that explains them."""
    shown, result = asked(*line, *QUICK)
    (answer,) = result["answers"]
    time = answer["iteration_time_s"]
    assert (time["interval"] is not None) == has_interval
    lines = shown.splitlines()
    assert f"iteration time {in_words(time)}" in lines
    assert says(first_line(*line, *QUICK), time)
    explained = [one for one in lines if one.startswith("in brackets: ")]
    assert len(explained) == has_interval
    if has_interval:
        assert explained[0].startswith(f"in brackets: where {time['interval']['level']:.0%} of ")
        at = lines.index(explained[0])
        assert any("the simulator" in one and "median" in one for one in lines[at:])


def test_an_interval_that_a_slower_host_lengthens_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of small kernels takes three times as long on it, far beyond the stated error."""
    stating(monkeypatch, NARROW)
    line = (*SIMULATE, MEASURED, "--setting", "1xH100", *QUICK)
    shown, result = asked(*line)
    (answer,) = result["answers"]
    time, slow_s = answer["iteration_time_s"], answer["slow_host"]["step_s"]
    assert time["interval"]["high"] > slow_s > 1.1 * time["value"]
    assert f"iteration time {in_words(time)}" in shown
    assert says(first_line(*line), time)
    assert "errors stated below, and by what the host or the network may take\n" in shown
    known, result = asked(*line, "--set", "host_us_per_op=20")
    (answer,) = result["answers"]
    time = answer["iteration_time_s"]
    assert time["interval"]["high"] <= 1.001 * tuned_steps().host_ends[1] * time["value"]
    assert f"iteration time {in_words(time)}" in known
    assert answer["slow_host"] is None


def test_a_guess_has_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a factor of 6 it is a guess, and printed all the same: first and without its middle."""
    stating(
        monkeypatch,
        StatedError(
            num_runs=9,
            runs=Remark.of_text("runs"),
            median_pct=50,
            p90_pct=90,
            low_factor=0.1,
            high_factor=9.0,
        ),
    )
    shown, result = asked(*SIMULATE, EXAMPLE, "--setting", "1xH100", *QUICK)
    assert "a guess for 1xH100: " in shown
    time = result["answers"][0]["iteration_time_s"]
    assert f"iteration time {in_words(time)}" in shown
    first = first_line(*SIMULATE, EXAMPLE, "--setting", "1xH100", *QUICK)
    assert first.startswith("a guess:  ") and says(first, time)
    assert duration(time["value"]) not in first


def test_an_interval_without_an_upper_end_says_or_more(monkeypatch: pytest.MonkeyPatch) -> None:
    stating(monkeypatch, WIDE)
    shown, result = asked(*SIMULATE, EXAMPLE, "--setting", "1xH100", *QUICK)
    time = result["answers"][0]["iteration_time_s"]
    assert time["interval"]["high"] is None
    assert f"iteration time {in_words(time)}\n" in shown
    assert " or more)\n" in shown
    first = first_line(*SIMULATE, EXAMPLE, "--setting", "1xH100", *QUICK)
    assert first.startswith("a guess:  at most ")
    assert f" (a step of {duration(time['interval']['low'])} or more); " in first
    pytest.importorskip("torch")
    line = ("sweep", "resnet18", "--setting", "1xH100", "--batch-size", "16,32")
    shown, result = asked(*line)
    ends = result["estimates"]["iteration_time_s"]["interval"]
    assert ends["high"] == [None, None]
    for low in ends["low"]:
        assert f"  guess: {duration(low)} or more  " in shown


def test_closed_forms_are_printed_with_the_intervals_of_the_json() -> None:
    shown, result = asked("predict", "--method", "analytic", MEASURED, "--setting", "CPU-P1w2")
    methods = result["answers"][0]["methods"]
    (row,) = [line for line in shown.splitlines() if line.startswith("iteration ")]
    assert all(one["iteration_time_s"]["interval"] for one in methods.values())
    assert re.split(r"  +", row)[1:] == [
        in_words(one["iteration_time_s"]) for one in methods.values()
    ]
    assert "in brackets: where 90% of such steps are expected, by the errors stated below" in shown


def test_all_methods_are_printed_with_the_intervals_of_the_json() -> None:
    """The sentence on which to trust has the interval of that method, which is not symmetric."""
    line = ("predict", "--method", "all", EXAMPLE, "--setting", "1xH100", *QUICK)
    shown, result = asked(*line)
    (answer,) = result["answers"]
    time = answer["methods"]["simulator"]["iteration_time_s"]
    assert in_words(time).replace(" s (", " (") in shown
    ends = time["interval"]
    (trust,) = [words for words in shown.splitlines() if ": trust the simulator" in words]
    assert trust == answer["trust"]["text"]
    assert trust.endswith(f" {three_digits(ends['low'])} to {three_digits(ends['high'])} s")


def test_sweep_prints_the_interval_of_each_batch_size() -> None:
    pytest.importorskip("torch")
    shown, result = asked("sweep", "resnet18", "--setting", "1xH100", "--batch-size", "16-64")
    time = result["estimates"]["iteration_time_s"]
    ends = time["interval"]
    for value, low, high in zip(time["value"], ends["low"], ends["high"], strict=True):
        interval = Interval(low=low, high=high)
        is_guess = interval.width > GUESS_FACTOR
        words = f"guess: {duration_range(interval)}" if is_guess else duration(value, interval)
        assert f"  {words}  " in shown, words
    assert f"{100 * ends['level']:.0f} % of such steps are expected within their interval" in shown


def test_the_step_that_plan_explains_has_the_interval_of_the_json() -> None:
    pytest.importorskip("torch")
    shown, result = asked("plan", "resnet18", "--setting", "1xH100", "--samples", 1000, "--explain")
    offer = next(one for one in result["offers"] if one["step_parts"] is not None)
    time = offer["iteration_time_s"]
    words = format_range(time["interval"]["low"], time["interval"]["high"], duration)
    assert f": {duration(time['value'])} ({words} in nine of ten)\n" in shown


def test_a_picture_of_a_step_has_its_interval() -> None:
    class Step:
        step_s = 0.0428

    step: Any = Step()
    ends = Interval(low=0.0311, high=0.0912, level=0.9)
    assert _step_words(step, ends) == "0.0428 s (0.0311 to 0.0912)"
    assert _step_words(step, Interval(low=0.0311, high=None)) == "0.0428 s (0.0311 or more)"
    assert _step_words(step, None) == "0.0428 s"
