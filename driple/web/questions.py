"""The questions that requests ask: fields beside the job, and the call of `driple.api` for each.

    {"clusters": [...], "options": {...}}  --Question.of-->  Question  --result(texts)--> Result

Fields are named as on the command line, with `_` in place of `-`. A field that nobody knows is
refused. What the command line takes as a file has no field here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from driple.answers.options import LEAST_STEPS, MOST_STEPS
from driple.checks import MOST_SEED
from driple.errors import ConfigError
from driple.jobs.option_row import JobOption
from driple.jobs.options import JOB_OPTIONS, JobOptions
from driple.web.fields import (
    RequestField,
    choice,
    names,
    number,
    numbers,
    rate,
    rates,
    switch,
    whole,
    wholes,
)
from driple.web.refusals import unknown, wrong_type

if TYPE_CHECKING:
    from driple.api.results import Result
    from driple.cluster.setting import Setting

__all__ = ["OPTION_ROWS", "QUESTIONS", "Question", "options_of"]

# Of files, of user code, or limits that are the server's.
_LEFT_OUT = {"data", "trace", "own_code_s", "own_code_gib", "config", "max_bytes"}
OPTION_ROWS: tuple[JobOption, ...] = tuple(row for row in JOB_OPTIONS if row.name not in _LEFT_OUT)
"""Options of jobs that a request may have."""

_CLUSTERS = names(
    "clusters", "settings, such as 8xH100 or V100-P1w2; the job's usual one if left out"
)
_CLUSTER = names("cluster", "a setting, such as 8xH100", most=1)
_BANDWIDTH = rate(
    "link_bandwidth", "measured bus bandwidth of a large all-reduce over the devices of a cluster"
)
_SCHEME = names("scheme", "how devices share the work, such as ddp, zero2, fsdp", most=1)
_PREDICT = (
    _CLUSTERS,
    choice("method", "what answers", ("auto", "inspector", "simulator", "analytic", "all")),
    _SCHEME,
    _BANDWIDTH,
    number("host_us_per_op", "microseconds of the host to hand an op to a GPU", above=0, most=1e6),
    whole("steps", "simulated steps", LEAST_STEPS, MOST_STEPS),
    whole("seed", "random seed of the jitter between steps", 0, MOST_SEED),
    choice("preset", "which inspector of a setting", ("default", "paper")),
    choice("placement", "variables on servers", ("round_robin", "greedy")),
)
_MOST_MACHINES = 1024
_SEARCHES = ("plan", "sweep")
_MANY_STEPS = 1000  # simulated
_MANY_WORKERS = 8  # with parameter servers, whose steps are simulated event by event

QUESTIONS: Mapping[str, tuple[RequestField, ...]] = {
    "predict": _PREDICT,
    "inspect": (
        _CLUSTER,
        whole("depth", "levels of modules", 0, 100),
        switch("memory", "memory over a step, too"),
    ),
    "sweep": (
        _CLUSTER,
        wholes("batch_sizes", "samples of a device in a step", 1, 10**6),
        wholes("workers", "numbers of workers", 1, 10_000),
        rates("bandwidths", "rates of every link, such as 25G"),
        wholes("servers", "numbers of parameter servers", 1, 1000),
        numbers("compressions", "shares of gradients that are not sent", least=0, most=0.999),
        _BANDWIDTH,
    ),
    "plan": (
        _CLUSTERS,
        number("samples", "of an epoch", above=0, most=1e15),
        number("tokens", "of an epoch, in place of samples", above=0, most=1e18),
        number("epochs", "how often all samples are trained on", above=0, most=1e9),
        names("instances", "only these: p3 is all of P3"),
        names("devices", "only instances with these devices"),
        wholes("machines", "numbers of instances", 1, _MOST_MACHINES),
        names("schemes", "only these; any: also tensor, expert and pipeline parallelism"),
        names("vary", "what may change: batch, checkpointing, precision; or none"),
        whole("global_batch", "samples of all devices per update", 1, 10**9),
        number("budget", "most that the training may cost, dollars", above=0, most=1e12),
        number("deadline_s", "longest training, seconds", above=0, most=1e9),
        choice("rank", "order of offers", ("cost", "time", "memory")),
        switch("spot", "spot prices in place of on demand"),
        names("region", "prices of this region alone", most=1),
        names("on_date", "with the prices of that day, such as 2026-01-31", most=1),
        switch("would_help", "changes that would save time"),
    ),
}
"""Fields of each question, beside `job` or `jobs` and `options`."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, whose fields were checked.

    Attributes:
        name: a key of `QUESTIONS`.
        asked: the fields as they were sent.
        values: the fields as `driple.api` takes them.
        options: of the jobs.
    """

    name: str
    asked: Mapping[str, Any]
    values: Mapping[str, Any]
    options: JobOptions

    @classmethod
    def of(cls, name: str, asked: Mapping[str, Any], graph_bytes: int | None = None) -> Question:
        """The question that a request asks.

        Args:
            name: a key of `QUESTIONS`.
            asked: its fields and `options`, without the job.
            graph_bytes: largest graph that is read; the usual limit if None.

        Raises:
            DripleError: an unknown field, or a value that is refused.
        """
        fields = {field.name: field for field in QUESTIONS[name]}
        values = {}
        for key, value in asked.items():
            if key == "options":
                continue
            if key not in fields:
                raise unknown("field", key, (*fields, "job", "options"))
            values[key] = fields[key].check(key, value)
        options = options_of(asked.get("options", {}), graph_bytes)
        return cls(name=name, asked=dict(asked), values=values, options=options)

    def result(self, texts: Sequence[str]) -> Result:
        """The answer for jobs, which `sources.served` knows.

        Raises:
            DripleError: what the question refuses.
        """
        return _ASK[self.name](self, texts)

    def text(self, texts: Sequence[str]) -> str:
        """The JSON that the command line prints."""
        from driple.render.show import json_text

        return json_text(self.result(texts).to_dict())

    @property
    def canonical(self) -> str:
        """All that it asks, as the same text whatever the order of its fields."""
        return json.dumps([self.name, self.asked], sort_keys=True)

    @property
    def is_long(self) -> bool:
        """Whether it may take minutes: a search, many steps, or many workers of servers.

        Raises:
            SettingError: an unknown cluster, or a scheme that it does not have.
        """
        return (
            self.name in _SEARCHES
            or self.values.get("steps", 0) > _MANY_STEPS
            or sum(each.num_workers for each in self.settings or () if each.num_servers)
            > _MANY_WORKERS
        )

    @property
    def settings(self) -> list[Setting] | None:
        """Its clusters, with scheme; None if it names none.

        Raises:
            SettingError: an unknown cluster, or a scheme that it does not have.
        """
        from driple.api.arguments import with_asked_scheme
        from driple.cluster.setting import Setting

        given = self.values.get("clusters") or self.values.get("cluster")
        scheme = self._single("scheme")
        if not given:
            if scheme:
                raise ConfigError("scheme needs clusters, such as 8xH100")
            return None
        settings = [Setting.parse(name) for name in given]
        return with_asked_scheme(settings, scheme) if scheme else settings

    def _single(self, name: str) -> str | None:
        given = self.values.get(name)
        return given[0] if given else None

    def _of(self, *wanted: str) -> dict[str, Any]:
        return {name: self.values[name] for name in wanted if name in self.values}


def options_of(given: object, graph_bytes: int | None = None) -> JobOptions:
    """Options of a job from a request.

    Args:
        given: the object of them, by their names in Python.
        graph_bytes: largest graph that is read; the usual limit if None.

    Raises:
        DripleError: an unknown option, or a value that is refused.
    """
    if not isinstance(given, Mapping):
        raise wrong_type("options", "an object", given)
    known = tuple(row.name for row in OPTION_ROWS)
    for name, value in given.items():
        if name not in known:
            raise unknown("option", name, known)
        if value is None:
            raise ConfigError(f"options.{name} is null; leave it out for the usual value")
        if isinstance(value, str) and len(value) > 1000:
            raise ConfigError(f"options.{name} has {len(value)} characters, at most 1000")
    options = JobOptions(**given)
    return options if graph_bytes is None else replace(options, max_bytes=graph_bytes)


def _predict(question: Question, texts: Sequence[str]) -> Result:
    from driple.api.predicting import predict

    values = question.values
    return predict(
        list(texts),
        question.settings,
        options=question.options,
        num_steps=values.get("steps"),
        **question._of("method", "preset", "seed", "placement", "host_us_per_op", "link_bandwidth"),
    )


def _inspect(question: Question, texts: Sequence[str]) -> Result:
    from driple.api.inspecting import inspect

    settings = question.settings
    return inspect(
        texts[0],
        settings[0] if settings else None,
        options=question.options,
        **question._of("depth", "memory"),
    )


def _sweep(question: Question, texts: Sequence[str]) -> Result:
    from driple.analytic.whatif import GridOptions
    from driple.api.sweeping import sweep

    settings = question.settings
    axes = question._of("workers", "servers", "compressions")
    if "bandwidths" in question.values:
        axes["bandwidths_bits_per_s"] = question.values["bandwidths"]
    return sweep(
        texts[0],
        settings[0] if settings else None,
        grid=GridOptions(**axes) if axes else None,
        options=question.options,
        **question._of("batch_sizes", "link_bandwidth"),
    )


def _plan(question: Question, texts: Sequence[str]) -> Result:
    from driple.api.planning import plan

    return plan(
        texts[0],
        options=question.options,
        settings=question.settings or (),
        region=question._single("region"),
        day=question._single("on_date"),
        **question._of(
            "samples", "tokens", "epochs", "instances", "devices", "machines", "schemes", "vary",
            "global_batch", "budget", "deadline_s", "rank", "spot", "would_help",
        ),
    )  # fmt: skip


_ASK = {"predict": _predict, "inspect": _inspect, "sweep": _sweep, "plan": _plan}
