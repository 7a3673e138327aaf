"""Devices without measurements take those of their nearest relative."""

import numpy as np
import pytest

from driple.catalog import DEVICES, device_named
from driple.errors import ConfigError, SettingError
from scripts.fits.leave_one_out import nearest_relative


@pytest.mark.parametrize(
    ("device", "names", "nearest"),
    [
        ("V100", ("A100", "V100", "V100S"), "V100"),
        ("V100", ("MI100", "A100"), "A100"),  # the same maker, however far
        ("V100", ("P100", "A100"), "P100"),  # orders 2 and 5 from 3
        ("H100", ("P100", "A100", "T4"), "A100"),
        # Of one generation by plain FLOP/s for each byte/s: 12.5 of the A100, 9.6 of the A100-80G,
        # 52 of the A10, 50 of the A6000, 22.5 of the A2, 40 of the 3090Ti, 11 of the A30.
        ("A100", ("A10", "A100-80G"), "A100-80G"),
        ("A10", ("A100", "A6000"), "A6000"),
        ("A2", ("3090Ti", "A30"), "3090Ti"),
        ("A2", ("A10", "A30"), "A30"),
        ("MI250", ("H100", "MI300X"), "MI300X"),
    ],
)
def test_the_nearest_relative_of_a_device(
    device: str, names: tuple[str, ...], nearest: str
) -> None:
    for order in (names, names[::-1]):
        assert nearest_relative(DEVICES[device], order) == nearest


@pytest.mark.parametrize("name", ["4090", "L4", "B200", "M60", "MI300X"])
def test_relatives_of_new_generations_are_found(name: str) -> None:
    """A generation without measurements was a bare ValueError; the maker counts first."""
    measured = ["T4", "V100", "A100", "3090", "K80", "MI100"]
    relative = nearest_relative(DEVICES[name], measured)
    assert DEVICES[relative].maker == DEVICES[name].maker


def test_a_device_takes_itself_then_the_nearest_generation_then_the_nearest_balance() -> None:
    v100 = device_named("V100")
    assert nearest_relative(v100, ["K80", "V100", "V100-SXM2"]) == "V100"
    assert nearest_relative(v100, ["K80", "P100", "A100"]) == "P100"
    balances = {
        name: device_named(name).fp32_flops / device_named(name).bytes_per_s
        for name in ("2080Ti", "T4")
    }
    own = v100.fp32_flops / v100.bytes_per_s
    nearest = min(balances, key=lambda name: abs(np.log(balances[name] / own)))
    assert nearest_relative(v100, ["2080Ti", "T4"]) == nearest


def test_a_device_without_relatives_is_refused_in_our_own_words() -> None:
    v100 = device_named("V100")
    with pytest.raises(ConfigError, match="no measured device can stand in for V100"):
        nearest_relative(v100, [])
    with pytest.raises(SettingError, match="no device in the catalogue is called 'V9000'"):
        nearest_relative(v100, ["V9000"])
