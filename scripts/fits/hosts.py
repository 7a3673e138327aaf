"""How fast hosts are: a fit to published steps with the usual host in place of the published ones.

Published steps of PyTorch 2 that wait for their host are nearly all of one benchmark of one lab,
which has fast machines of its own. Three virtual machines that we measured take up to twice as long
for an op. The usual host is the geometric mean of these four: nobody's, but as far from the
fastest as from the slowest (decision 0059). Ours take as long as they do, whatever a fit has not
seen of the published ones (decision 0062).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from driple.codec import from_json
from driple.simulate.device_models import GpuModel

__all__ = ["HOSTS_FILE", "PUBLISHED", "KnownHosts", "known_hosts", "with_usual_host"]

HOSTS_FILE = Path(__file__).with_name("hosts.json")
PUBLISHED = "published steps"


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownHosts:
    """Hosts whose pace was measured.

    Attributes:
        date: of the measurement.
        published_op_s: seconds of an op on the published hosts, by the fit to all steps.
        published_compiled_s: the same of a kernel of a compiled step.
        factors: how many times as long each takes, by its name; 1 for the published ones.
    """

    date: str
    published_op_s: float
    published_compiled_s: float
    factors: Mapping[str, float]

    @property
    def usual_factor(self) -> float:
        """How many times as long as on the published hosts an op takes on the usual one."""
        return float(np.exp(np.mean(np.log(list(self.factors.values())))))


@cache
def known_hosts() -> KnownHosts:
    """Those of the file.

    Raises:
        ConfigError: the file is of another version.
    """
    text = HOSTS_FILE.read_text(encoding="utf-8")
    return from_json(KnownHosts, json.loads(text), where=HOSTS_FILE.name)


def with_usual_host(model: GpuModel, known: KnownHosts) -> GpuModel:
    """A fit with the pace of the usual host, and how far the others are from it.

    Args:
        model: as fitted, with the pace that it has of published hosts.
        known: hosts.
    """
    host = model.host
    ours = np.array([factor for name, factor in known.factors.items() if name != PUBLISHED])
    ops_s = np.array([host.op_s, *(known.published_op_s * ours)])
    compiled_s = np.array([host.compiled_s, *(known.published_compiled_s * ours)])
    op_s = float(np.exp(np.log(ops_s).mean()))
    paces = replace(
        host,
        op_s=op_s,
        compiled_s=float(np.exp(np.log(compiled_s).mean())),
        fastest=float(ops_s.min()) / op_s,
        slowest=float(ops_s.max()) / op_s,
    )
    return replace(model, host=paces)
