"""The pace of hosts is measured to the same numbers when it is measured again."""

from __future__ import annotations

from driple.simulate.calibration import shipped_calibration
from driple.simulate.device_models import GpuModel
from scripts.fits.host_factors import on_published_host
from scripts.fits.hosts import known_hosts, with_usual_host


def test_the_calibration_has_the_usual_host_of_the_known_ones_and_keeps_it() -> None:
    """Each run starts from the pace that the one before has written in six digits."""
    shipped, known = shipped_calibration().model, known_hosts()
    assert isinstance(shipped, GpuModel)
    published = on_published_host(shipped)
    assert published.host.op_s == known.published_op_s
    assert published.host.compiled_s == known.published_compiled_s
    again = with_usual_host(published, known)
    assert on_published_host(again).host.op_s == published.host.op_s
    assert f"{again.host.op_s:.6g}" == f"{shipped.host.op_s:.6g}"
