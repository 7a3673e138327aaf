"""What a user may change of the methods is checked before any work."""

from __future__ import annotations

from typing import Any

import pytest

from driple.answers.options import LEAST_STEPS, MOST_STEPS, USUAL, MethodOptions
from driple.checks import MOST_SEED
from driple.errors import ConfigError


@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("placement", {"placement": "somewhere"}),
        ("seed", {"seed": -1}),
        ("seed", {"seed": MOST_SEED + 1}),
        ("steps", {"num_steps": LEAST_STEPS - 1}),
        ("steps", {"num_steps": MOST_STEPS + 1}),
        ("host_us_per_op", {"host_us_per_op": 0.0}),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(flag: str, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"--set {flag}"):
        MethodOptions(**values)


@pytest.mark.parametrize("steps", [None, LEAST_STEPS, MOST_STEPS])
@pytest.mark.parametrize("seed", [0, MOST_SEED])
def test_the_ends_of_the_ranges_are_allowed(steps: int | None, seed: int) -> None:
    MethodOptions(num_steps=steps, seed=seed, host_us_per_op=1e-3)


@pytest.mark.parametrize("method", ["inspector", "simulator", "zeng", "all"])
def test_a_host_of_the_user_belongs_to_one_method(method: str) -> None:
    """Any other would leave it out without a word."""
    USUAL.check_method(method)
    paced: MethodOptions = MethodOptions(host_us_per_op=5.0)
    tuned = MethodOptions(host=object())  # type: ignore[arg-type]
    for options, its_own, flag in (
        (paced, "simulator", "--set host_us_per_op"), (tuned, "inspector", "--set host"),
    ):  # fmt: skip
        if method == its_own:
            options.check_method(method)
            continue
        with pytest.raises(ConfigError, match=f"{flag} .*the method is {method}"):
            options.check_method(method)


def test_what_rests_on_nothing_of_the_user_is_said_by_the_flags() -> None:
    assert (LEAST_STEPS, MOST_STEPS) == (2, 100_000)
    assert (USUAL.preset, USUAL.seed, USUAL.placement) == ("default", 0, "round_robin")
    assert USUAL.num_steps is USUAL.datasets is USUAL.host_us_per_op is USUAL.host is None
