"""Input configurations: round trip, and one line for each odd value."""

from __future__ import annotations

import pytest

from driple.errors import ConfigError
from driple.features.config import InputConfig


def test_round_trip() -> None:
    """Fields survive `to_dict` and `from_dict`."""
    config = InputConfig(policy="proportional", components="all", features="log", context="sizes")
    assert InputConfig.from_dict(config.to_dict()) == config


def test_older_checkpoints_are_of_one_server() -> None:
    """They do not say; all variables were on one."""
    fields = {k: v for k, v in InputConfig().to_dict().items() if k != "num_servers"}
    assert InputConfig.from_dict(fields) == InputConfig()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", "even"),
        ("components", "some"),
        ("features", 3),
        ("num_groups", 0),
        ("num_groups", True),
        ("num_groups", 10**9),
        ("num_groups", 2.0),
        ("seed", "0"),
        ("context", 1),
        ("num_servers", 0),
        ("policy", ["uniform"]),
    ],
)
def test_odd_values_are_refused(field: str, value: object) -> None:
    """The message names the value that was found."""
    with pytest.raises(ConfigError, match=rf"^input configuration: .*{field} must be") as caught:
        InputConfig.from_dict({**InputConfig().to_dict(), field: value})
    assert repr(value) in str(caught.value)


def test_unknown_and_missing_fields_are_named() -> None:
    """A field too many or too few is named."""
    with pytest.raises(ConfigError, match="colour"):
        InputConfig.from_dict({**InputConfig().to_dict(), "colour": 1})
    with pytest.raises(ConfigError, match="seed"):
        InputConfig.from_dict({k: v for k, v in InputConfig().to_dict().items() if k != "seed"})
