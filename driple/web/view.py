"""What the page shows of a job on clusters: the view that a URL holds, and its parts.

query of a URL --View.of--> View --question--> predict, inspect, plan --parts--> template
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from driple.codec import to_json
from driple.errors import ConfigError, DripleError
from driple.quantities import duration, rounded, size, timed
from driple.render.answer_lines import LABEL_WIDTH, answer_lines
from driple.render.remarks import sentence, sentences, with_sentences
from driple.web.fingerprint import data_fingerprint, driple_version
from driple.web.questions import Question
from driple.web.sources import KINDS, UPLOADED
from driple.web.svg import memory_svg, plan_svg, step_svg

if TYPE_CHECKING:
    from driple.api.inspecting import InspectResult
    from driple.api.module_tree import ModuleNode
    from driple.api.predicting import Answer, PredictResult

__all__ = ["View", "answer_parts", "plan_parts"]

_FIELDS = ("kind", "job", "config", "clusters", "batch", "precision", "devices", "bandwidth",
           "host", "plan", "samples")  # fmt: skip
_COUNTED = re.compile(r"(?:\d+x)?([^x]+)")
_MOST_CLUSTERS = 8
_LONGEST_CONFIG = 16_384
_MOST_OFFERS = 30
_USUAL_DEVICES = ("A100", "H100")
_MOST_MODULES = 12


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
        raise ConfigError(f"{name} needs a whole number, got {text[:40]!r}")
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
    answers = [_answer_parts(answer) for answer in result.answers]
    return {
        "answers": answers,
        "memory": None if inspected is None else _memory(inspected),
        "modules": [] if inspected is None else _modules(inspected),
        "version": driple_version(),
        "data": data_fingerprint(),
    }


def _answer_parts(answer: Answer) -> dict[str, Any]:
    try:
        step = answer.step() if answer.best is not None else None
    except DripleError:  # no graph that can be simulated: the lines say why
        step = None
    told = cast("dict[str, Any]", with_sentences(to_json(answer.to_dict())))
    return {
        "name": answer.setting.name,
        "lines": _labelled(answer_lines(answer)),
        "timeline": "" if step is None else step_svg(step),
        "numbers": _numbers(answer, told),
        "assumed": [*sentences(answer.job.assumptions), *sentences(answer.assumptions)],
        "error": (told["stated_error"] or {}),
    }


def _labelled(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Labels and words of the lines of the command line; continued lines are joined."""
    rows: list[tuple[str, str]] = []
    for line in lines:
        label, words = line[:LABEL_WIDTH].strip(), line[LABEL_WIDTH:].strip()
        if not label and rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {words}")
        else:
            rows.append((label, words))
    return [
        (label, words.replace("(all: --explain)", "(all of it below)")) for label, words in rows
    ]


def _numbers(answer: Answer, told: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, method and source of each number."""
    rows: list[tuple[str, str, str, str]] = []
    if answer.best is not None:
        time = answer.best.step_time
        rows.append(("step time", timed(time), time.method, time.source))
        quantiles = told["iteration_time_quantiles_s"]
        if quantiles:
            words = " / ".join(
                "no limit" if quantiles[name] is None else duration(quantiles[name])
                for name in ("p10", "p50", "p90")
            )
            rows.append(("step time p10 / p50 / p90", words, time.method, "from its interval"))
    rate = (told["throughput"] or {}).get("samples_per_s")
    if rate:
        rows.append(_row("samples per second", rate, ""))
    memory = None if answer.memory is None else answer.memory.estimate
    if memory is not None:
        sizes = {"allocated": memory.allocated, "reserved": memory.reserved}
        for name, number in sizes.items():
            if number is not None:
                ends = "" if number.lower is None else f" ({size(number.lower)} to "
                ends += "" if not ends else f"{size(number.upper or number.value)})"
                told_from = sentence(memory.source) if memory.source else "the graph's tensors"
                rows.append((f"memory {name}", size(number.value) + ends, "simulator", told_from))
    for resource, figures in (told["targets"] or {}).items():
        unit = told["units"][resource]
        for figure, number in figures.items():
            own = unit if figure == "burst_amount" else "s"
            rows.append(_row(f"{resource}: {figure.replace('_', ' ')}", number, own))
    return rows


def _row(name: str, number: Mapping[str, Any], unit: str) -> tuple[str, str, str, str]:
    words = f"{rounded(number['value'])} {unit}".strip()
    ends = number["interval"]
    if ends is not None:
        high = "no limit" if ends["high"] is None else rounded(ends["high"])
        words += f" ({rounded(ends['low'])} to {high})"
    return name, words, number["method"], number["source"]


def _memory(inspected: InspectResult) -> str:
    """The picture of memory over a step; empty where it is unknown."""
    if inspected.memory is None:
        return ""
    made = cast("dict[str, Any]", to_json(inspected.memory.to_dict(1)))
    beside = inspected.memory.beside
    estimate = None if beside is None else beside.estimate
    capacity = None if estimate is None else estimate.capacity_bytes
    return memory_svg(made["curve"], inspected.job.graph.num_nodes, capacity)


def _modules(inspected: InspectResult) -> list[dict[str, Any]]:
    """Modules of the first levels with their share of the computing time, the largest first."""
    tree, total = inspected.breakdown.modules, inspected.breakdown.total_s
    if tree is None or not total:
        return []
    rows = []
    nodes: Sequence[ModuleNode] = tree.children or [tree]
    for node in sorted(nodes, key=lambda one: -(one.time_s or 0.0))[:_MOST_MODULES]:
        seconds = node.time_s or 0.0
        rows.append(
            {
                "path": node.path or node.name or "the model",
                "time": duration(seconds),
                "pct": round(100 * seconds / total, 1),
                "ops": node.ops,
                "parameters": f"{node.parameters:,}",
            }
        )
    return rows


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
