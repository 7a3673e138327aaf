"""What the page shows of a job on clusters: the view that a URL holds, and its parts.

query of a URL --View.of--> View --question--> predict, inspect, plan --parts--> template
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from driple.errors import ConfigError
from driple.extras import driple_version
from driple.plot.answer_view import answer_view, memory_picture, module_rows
from driple.plot.svg import plan_svg
from driple.quantities import duration, rounded
from driple.web.fingerprint import data_fingerprint
from driple.web.questions import Question
from driple.web.sources import KINDS, UPLOADED

if TYPE_CHECKING:
    from driple.api.inspecting import InspectResult
    from driple.api.predicting import PredictResult

__all__ = ["View", "answer_parts", "plan_parts"]

_FIELDS = ("kind", "job", "config", "clusters", "batch", "precision", "devices", "bandwidth",
           "host", "plan", "samples")  # fmt: skip
_COUNTED = re.compile(r"(?:\d+x)?([^x]+)")
_MOST_CLUSTERS = 8
_LONGEST_CONFIG = 16_384
_MOST_OFFERS = 30
_USUAL_DEVICES = ("A100", "H100")


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """All that the page shows, as the URL holds it; texts are as they were typed.

    Attributes:
        kind: of job.
        job: name, or digest of an upload.
        config: a config.json.
        clusters: names with commas.
        batch: samples of a device.
        precision: of a model.
        devices: number of devices, in place of that in the names of clusters.
        bandwidth: of what joins the devices, GB/s.
        host: microseconds of the host for an op.
        plan: `on` to rank clusters that can be rented.
        samples: of an epoch, for the plan.
    """

    kind: str = "catalogue"
    job: str = ""
    config: str = ""
    clusters: str = ""
    batch: str = ""
    precision: str = ""
    devices: str = ""
    bandwidth: str = ""
    host: str = ""
    plan: str = ""
    samples: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> View:
        """From the query of a URL, or the fields of a form; unknown names are left out.

        Raises:
            ConfigError: a value that no view has.
        """
        values = {name: query[name].strip() for name in _FIELDS if query.get(name, "").strip()}
        if values.get("kind", "catalogue") not in KINDS:
            raise ConfigError(f"the kind of job must be one of {', '.join(KINDS)}")
        if len(values.get("config", "")) > _LONGEST_CONFIG:
            raise ConfigError(f"a config in a link has at most {_LONGEST_CONFIG} characters")
        return cls(**values)

    @property
    def is_asked(self) -> bool:
        """Whether it names a job."""
        return bool(self.config if self.kind == "config" else self.job)

    @property
    def url(self) -> str:
        """The page's URL, which restores it and shows its answer."""
        values = {name: getattr(self, name) for name in _FIELDS}
        return f"/?{urlencode({name: value for name, value in values.items() if value})}#answer"

    @property
    def is_upload(self) -> bool:
        """Whether its job is a file, which no link holds."""
        return self.kind in UPLOADED

    @property
    def names(self) -> list[str]:
        """Names of the clusters, with the number of devices that is asked.

        Raises:
            ConfigError: too many, or devices of a cluster that has several machines.
        """
        given = [part.strip() for part in re.split(r"[,;\s]+", self.clusters) if part.strip()]
        if len(given) > _MOST_CLUSTERS:
            raise ConfigError(f"the page shows {_MOST_CLUSTERS} clusters at most; REST takes more")
        if not self.devices:
            return given
        count = _whole("devices", self.devices)
        return [self._counted(name, count) for name in given or ["1xA100"]]

    @staticmethod
    def _counted(name: str, count: int) -> str:
        match = _COUNTED.fullmatch(name)
        if match is None or "-P" in name or "-R" in name:
            raise ConfigError(f"devices is for names such as 8xH100; {name[:80]} states its own")
        return f"{count}x{match[1]}"

    @property
    def predict(self) -> Question:
        """Its question to `predict`.

        Raises:
            DripleError: a value that is refused.
        """
        asked: dict[str, Any] = {"options": self._options}
        if self.names:
            asked["clusters"] = self.names
        if self.bandwidth:
            asked["link_bandwidth"] = f"{_number('bandwidth', self.bandwidth):g}GB/s"
        if self.host:
            asked |= {"method": "simulator", "host_us_per_op": _number("host", self.host)}
        return Question.of("predict", asked)

    @property
    def inspect(self) -> Question:
        """Its question to `inspect`: modules and memory on the first cluster."""
        asked: dict[str, Any] = {"options": self._options, "depth": 1}
        if self.names:
            asked["cluster"] = self.names[0]
        return Question.of("inspect", asked)

    @property
    def planned(self) -> Question:
        """Its question to `plan`: instances with these devices, or all."""
        asked: dict[str, Any] = {"options": self._options, "devices": self._plan_devices}
        if self.samples:
            asked["samples"] = _number("samples", self.samples)
        return Question.of("plan", asked)

    @property
    def _plan_devices(self) -> list[str]:
        """Devices of the clusters, whose instances are ranked."""
        settings = self.predict.settings or []
        known = [setting.device for setting in settings if not setting.on_cpu]
        return list(dict.fromkeys(known)) or [*_USUAL_DEVICES]

    @property
    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.batch:
            options["batch_size"] = _whole("batch", self.batch)
        if self.precision:
            options["precision"] = self.precision
        return options


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise ConfigError(f"{name} needs a whole number from 0, got {text[:40]!r}")
    return int(text)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"{name} needs a number, got {text[:40]!r}") from error


def answer_parts(result: PredictResult, inspected: InspectResult | None) -> dict[str, Any]:
    """What the template shows of answers and of the job.

    Args:
        result: of the clusters.
        inspected: of the job on the first cluster; None if it could not be inspected.
    """
    answers = [answer_view(answer) for answer in result.answers]
    return {
        "answers": answers,
        "memory": None if inspected is None else memory_picture(inspected),
        "modules": [] if inspected is None else module_rows(inspected),
        "version": driple_version(),
        "data": data_fingerprint(),
    }


def plan_parts(text: str) -> dict[str, Any]:
    """What the template shows of a plan.

    Args:
        text: the JSON of `plan`.
    """
    plan = json.loads(text)
    front = plan["pareto"]
    offers = [
        {
            "name": offer["name"],
            "scheme": offer["scheme"] or "",
            "batch": offer["batch_size"] or "",
            "time": duration(offer["training_time_s"]["value"]),
            "cost": "no price" if offer["cost"] is None else f"${rounded(offer['cost']['value'])}",
            "fits": (offer["memory"] or {}).get("fits") or "unknown",
            "on_front": place in front,
            "is_best": place == plan["recommended"],
        }
        for place, offer in enumerate(plan["offers"][:_MOST_OFFERS])
    ]
    why = plan["recommendation"] or plan["no_price"] or {}
    return {
        "offers": offers,
        "num_offers": len(plan["offers"]),
        "picture": plan_svg(plan["offers"], front),
        "why": why.get("text", ""),
    }
