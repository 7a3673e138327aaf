"""How fast hosts are: a fit to published steps with the usual host in place of the published ones.

Published steps of PyTorch 2 that wait for their host are nearly all of one benchmark of one lab,
which has fast machines of its own. Three virtual machines that we measured take two to three times
as long for an op. The usual host is the geometric mean of these four: nobody's, but as far from the
fastest as from the slowest (decision 0059).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from driple.simulate.device_models import GpuModel

__all__ = ["HOSTS_FILE", "usual_factor", "with_usual_host"]

HOSTS_FILE = Path(__file__).with_name("hosts.json")


def with_usual_host(model: GpuModel) -> GpuModel:
    """The same with the pace of the usual host, and how far the others are from it."""
    factors = json.loads(HOSTS_FILE.read_text(encoding="utf-8"))["factors"]
    usual, host = usual_factor(factors), model.host
    paces = replace(
        host,
        op_s=host.op_s * usual,
        compiled_s=host.compiled_s * usual,
        fastest=min(factors.values()) / usual,
        slowest=max(factors.values()) / usual,
    )
    return replace(model, host=paces)


def usual_factor(factors: Mapping[str, float]) -> float:
    """How many times as long as on the published hosts an op takes on the usual one."""
    return float(np.exp(np.mean(np.log(list(factors.values())))))
