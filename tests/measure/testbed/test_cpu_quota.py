"""Which share of a core each worker of a CPU setting has."""

import pytest

from driple.cluster.setting import Setting
from driple.errors import MeasureError, SettingError
from driple.measure.testbed.cpu_quota import labelled_workers, worker_shares


@pytest.mark.parametrize(
    ("name", "shares", "own"),
    [
        ("CPU-P1w2/ho-200M", {"w0": 0.4, "w1": 0.4}, ("w0", "w1")),
        ("CPU25-P1w2/ho-200M", {"w0": 0.25, "w1": 0.25}, ("w0", "w1")),
        ("CPU-P2w3/ho-1G", {"w0": 0.4, "w1": 0.4, "w2": 0.4}, ("w0", "w1", "w2")),
        ("CPU-P1w2/he-200M", {"w0": 0.4, "w1": 0.25}, ("w0",)),
        ("CPU25-P1w2/he-200M", {"w0": 0.25, "w1": 0.4}, ("w0",)),
        ("CPU-P1w3/he-200M", {"w0": 0.4, "w1": 0.25, "w2": 0.4}, ("w0", "w2")),
    ],
)
def test_shares_follow_from_the_setting(
    name: str, shares: dict[str, float], own: tuple[str, ...]
) -> None:
    """Alike in a homogeneous cluster, by turns in a mixed one; labels are of the own device."""
    setting = Setting.parse(name)
    assert worker_shares(setting, 0.4) == shares
    assert labelled_workers(setting) == own


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("V100-P1w2/ho-PCIe", "CPU settings"),
        ("CPU0-P1w2/ho-200M", "no setting is called 'CPU0"),
        ("CPU70-P1w2/he-200M", "no setting is called 'CPU70"),
        ("CPU-P1w1/he-200M", "two or more workers"),
    ],
)
def test_what_has_no_share_is_refused(name: str, message: str) -> None:
    """Devices that are no CPU, and mixtures that are not declared."""
    with pytest.raises((MeasureError, SettingError), match=message):
        worker_shares(Setting.parse(name), 0.4)
