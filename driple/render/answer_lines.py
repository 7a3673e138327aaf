"""An answer of `predict` under at most eight labels: what a person reads in ten seconds.

    Answer -> step, memory, limit, use, how sure, job, assumed

A guess comes first and states no single number. What does not fit comes before the step. Lines of
more than 100 columns are continued, and `assumed` has what is left of eight lines, at least one.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from driple.api.throughput import throughput_of
from driple.jobs.training_config import undecided_remark, undecided_remarks
from driple.quantities import (
    duration,
    duration_range,
    rate,
    rounded,
    size,
    timed,
)
from driple.remarks import Remark
from driple.render.errors_stated import error_is_of_kernels, host_is_of_a_file, host_sentence
from driple.render.job_facts import facts_words
from driple.render.memory_lines import largest_batches_words
from driple.render.plan_words import bottleneck_words
from driple.render.remarks import sentence, sentences
from driple.units import counted

if TYPE_CHECKING:
    from driple.answers.error_statement import StatedError
    from driple.answers.method_answer import MethodAnswer
    from driple.answers.step_parts import StepParts
    from driple.api.memory import JobMemory
    from driple.api.predicting import Answer
    from driple.estimate import Estimate, Interval
    from driple.inspector.predict import Prediction
    from driple.memory.memory_estimate import MemoryEstimate

__all__ = ["LABEL_WIDTH", "MOST_LABELS", "answer_lines", "shows_targets"]

MOST_LABELS = 8
LABEL_WIDTH = 10  # columns
_WIDTH = 100  # columns of a line
_GIB = 2.0**30
_CONTRADICTIONS = {"other_scheme", "engine_keeps_masters", "batches_agree_on"}  # these come first
_DOUBTFUL = {"measured_while_busy"}  # then what makes the user's own values doubtful
_LEAST_HOST_PCT = 10.0  # of the step, to be said
_MORE = " ... (all: --explain)"
_TCP_NARROWS = "what the network yields narrows it: --link-bandwidth"
_NEXT = {"link_stated", "link_by_tcp", "taken_as_rdma"}  # what changes most
_NARROWS = "a few runs of yours narrow it: driple transfer --from gpu"
_QUIET_MB_PER_S = 0.05  # that the network carries: less is none


def answer_lines(answer: Answer) -> list[str]:
    """The answer as lines of text.

    Args:
        answer: of one job on one setting.
    """
    memory = _memory(answer.memory)
    where = f"{answer.job.name} on {answer.setting.name}"
    job = _wrapped("job", f"{where}: {facts_words(answer.job)}")
    unread = [
        line
        for words in sentences(undecided_remarks(answer.job.undecided))
        for line in _wrapped("left open", words)
    ]
    if answer.best is None:
        lines = [*unread, *_wrapped("step", _untimed(answer)), *memory, *job]
        return [*lines, *_assumed(answer, max(MOST_LABELS - len(lines), 1))]
    fits = (
        answer.memory is None
        or answer.memory.estimate is None
        or (answer.memory.estimate.fits in ("yes", None))
    )
    step = _wrapped("step", _step(answer))
    if answer.iteration_time_s.is_guess or _warnings(answer):
        over_tcp = answer.best.by_network is not None
        narrows = _TCP_NARROWS if over_tcp else _NARROWS
        step = _wrapped("a guess:", f"{_guess(answer)}; {narrows}")
    lines = [
        *unread,
        *(step + memory if fits else memory + step),
        *_wrapped("limit", _limit(answer)),
        *_wrapped("use", _use(answer)),
        *_wrapped("how sure", _how_sure(answer, answer.best)),
        *_wrapped("host", "" if answer.host is None else host_sentence(answer.host)),
        *job,
    ]
    return [*lines, *_assumed(answer, max(MOST_LABELS - len(lines), 1))]


def shows_targets(answer: Answer) -> bool:
    """Whether the twelve numbers follow: on settings with servers, and of TensorFlow graphs."""
    return answer.setting.num_servers > 0 or answer.job.graph.framework == "tensorflow"


def _untimed(answer: Answer) -> str:
    """Why there is no step time, throughput or cost."""
    return sentence(undecided_remark(answer.job.open_fields("time")))


def _wrapped(label: str, words: str) -> list[str]:
    """A label and words, in lines that a terminal holds; none without words."""
    lines = _lines(words)
    return [_line(label if number == 0 else "", line) for number, line in enumerate(lines)]


def _lines(words: str) -> list[str]:
    """Words beside a label, in lines; names and paths stay whole."""
    return wrap(words, _WIDTH - LABEL_WIDTH, break_long_words=False, break_on_hyphens=False)


def _warnings(answer: Answer) -> tuple[Remark, ...]:
    """Why the inspector's answer is but a guess; none of other methods."""
    prediction = answer.prediction
    return () if prediction is None or answer.method != "inspector" else tuple(prediction.warnings)


def _line(label: str, words: str) -> str:
    return f"{label:{LABEL_WIDTH}}{words}"


def _guess(answer: Answer) -> str:
    """Both ends of what is expected, without a single number."""
    interval = answer.iteration_time_s.interval
    throughput = throughput_of(answer)
    steps = "" if interval is None else f"a step of {duration_range(interval)}"
    if throughput is None or throughput.samples_per_s.interval is None:
        return steps
    return f"{_between(throughput.samples_per_s.interval)} samples/s ({steps})"


def _between(interval: Interval) -> str:
    low = rounded(interval.low, 2)
    if interval.high is None:
        return f"{low} or more"
    high = rounded(interval.high, 2)
    return f"between {low} and {high}" if interval.low > 0 else f"at most {high}"


def _step(answer: Answer) -> str:
    parts = [timed(answer.iteration_time_s)]
    throughput = throughput_of(answer)
    if throughput is not None:
        parts.append(_rate(throughput.samples_per_s, "samples/s"))
        if throughput.tokens_per_s is not None:
            each = throughput.tokens_per_s.value / answer.setting.num_workers
            parts.append(f"{rounded(each)} tokens/s per device")
    if answer.flops_pct is not None:
        parts.append(f"MFU {rounded(answer.flops_pct, 2)} %")
    return ", ".join(parts)


def _rate(rate_per_s: Estimate, unit: str) -> str:
    """The value alone: its interval is that of the step."""
    return f"{rounded(rate_per_s.value)} {unit}"


def _memory(memory: JobMemory | None) -> list[str]:
    if memory is None:
        return []
    if memory.estimate is None:
        return _wrapped(
            "memory", f"unknown: {'' if memory.reason is None else sentence(memory.reason)}"
        )
    estimate = memory.estimate
    words = _of_capacity(estimate)
    host = ""
    if estimate.host_bytes is not None:
        room = estimate.host_capacity_bytes
        of = "" if room is None else f" of {size(room)}"
        host = f"; {size(estimate.host_bytes)}{of} on the host of each machine"
    if estimate.fits == "yes":
        words += ": fits"
        if estimate.is_full and estimate.device_total is not None:
            words += f" ({rounded(estimate.device_total.value / _GIB)} with the allocator's cache)"
        if memory.largest is not None:
            words += f"; largest batch that fits: {largest_batches_words(memory.largest)}"
    elif estimate.fits is None:
        words += ": whether it fits is unknown, as sizes are unknown"
    else:
        verb = "likely does not fit" if estimate.fits == "likely not" else "does not fit"
        margin = estimate.margin_bytes or 0.0
        words += f": {verb}, "
        words += "as estimates may be this far off" if margin >= 0 else _too_little(estimate)
        helping = [remedy.flag for remedy in memory.remedies if remedy.memory.fits == "yes"]
        if helping:
            words += f"; fits with {' or '.join(helping)}"
        elif memory.remedies:
            words += "; no single change makes it fit"
    return _wrapped("memory", words + host)


def _too_little(estimate: MemoryEstimate) -> str:
    """What is missing, beside what a step can have: the difference to what it needs."""
    room = "" if estimate.room_bytes is None else f" ({size(estimate.room_bytes)} are usable)"
    return f"{size(abs(estimate.margin_bytes or 0.0))} too little{room}"


def _of_capacity(estimate: MemoryEstimate) -> str:
    """What is needed of the device's memory; without the cache where that is what decides."""
    needed = estimate.needed
    if (estimate.fits == "yes" and estimate.is_full) or (estimate.margin_bytes or 0.0) < 0:
        needed = estimate.without_cache
    bound = (
        "at least " if estimate.is_lower_bound else "at most " if estimate.is_upper_bound else ""
    )
    used = "unknown" if needed is None else rounded(needed.value / _GIB)
    if estimate.capacity_bytes is None:
        return f"{bound}{used} GiB"
    where = f" of {estimate.device}" if estimate.device else ""
    return f"{bound}{used} of {estimate.capacity_bytes / _GIB:.3g} GiB{where}"


def _limit(answer: Answer) -> str:
    """What holds the step back, and by how much."""
    slow = answer.slow_host
    if answer.parts is not None:
        words = f"{bottleneck_words(answer.parts)} of the step{_host_words(answer.parts)}"
        if slow is not None:
            words += (
                f"; on a host that takes {slow.slow_us:.0f} us an op, not {slow.usual_us:.0f}, a "
                f"step is {duration(slow.step_s)}"
            )
            if not host_is_of_a_file(answer):
                words += " (driple measure --machine tells yours)"
        return words
    if answer.bottleneck:
        from driple.analytic.advice import BOTTLENECKS

        return BOTTLENECKS[answer.bottleneck]
    return ""


def _host_words(parts: StepParts) -> str:
    """How long the GPU waits for its host, and what estimates changes; empty of a short wait."""
    if parts.host_pct < _LEAST_HOST_PCT:
        return ""
    largest = parts.bottleneck
    is_said = largest is not None and largest.is_host
    share = "" if is_said else f", and the GPU waits {parts.host_pct:.0f} % of it for the host"
    return f"{share}; driple plan --what-would-help estimates changes"


def _use(answer: Answer) -> str:
    """How busy device, memory and network are, on the mean of a step.

    A device is busy while its kernels compute; what nvidia-smi shows counts those too that wait in
    an exchange, and stands beside it where that is more.
    """
    targets, simulation = answer.targets, answer.simulation
    if targets is None:
        return ""
    means = {
        name: figures["burst_amount"] * _share(figures["burst_duration"], figures["idle_duration"])
        for name, figures in targets.to_dict().items()
    }
    bursts = shown = ""
    step = None if simulation is None or answer.method == "inspector" else simulation.step
    if step is not None:
        usage = step.usage()
        means |= {name: usage[name].mean for name in ("device_util", "device_mem_util")}
        bursts = f" in {counted(usage['device_util'].num_bursts, 'burst')} a step"
        counted_pct, _ = step.counted_pct()
        if round(counted_pct) > round(means["device_util"]):
            shown = f" (nvidia-smi: {counted_pct:.0f} %)"
    device = "processor" if answer.setting.on_cpu else "GPU"
    network = "network none"
    if max(means["net_tx"], means["net_rx"]) > _QUIET_MB_PER_S:
        sent, received = rate(means["net_tx"]), rate(means["net_rx"])
        both = f"{sent} each way" if sent == received else f"{sent} sent, {received} received"
        network = f"network {both}"
    return (
        f"{device} {means['device_util']:.0f} % busy{bursts}{shown}, memory "
        f"{means['device_mem_util']:.0f} %, {network}"
    )


def _share(burst_s: float, idle_s: float) -> float:
    return burst_s / (burst_s + idle_s) if burst_s + idle_s > 0 else 0.0


def _how_sure(answer: Answer, best: MethodAnswer) -> str:
    """Expected error of the step, and on what it rests."""
    stated = answer.stated
    if best.method == "measured":
        return "measured: a data set has this very graph on this setting"
    if best.method == "inspector" and best.prediction is not None:
        return _how_sure_of_inspector(best.prediction, stated)
    if best.form is not None:
        return _how_sure_of_form(best, answer.job.unknown)
    if stated is None or stated.median_pct is None or stated.p90_pct is None:
        reason = "" if stated is None else sentence(stated.runs)
        return f"not checked: {reason}"
    off = f"{stated.median_pct:.0f} % off in the median, {stated.p90_pct:.0f} % for one in ten, on "
    words = f"{off}{stated.num_runs} {sentence(stated.short or stated.runs)}"
    if best.factors is not None and error_is_of_kernels(answer):
        low, high = best.factors
        words = f"kernels {words}; the host decides: {low:.2g} to {high:.2g} times the step"
        if answer.slow_host is not None:
            words += ", by what known hosts take"
    else:
        words = "; ".join((words, *sentences(best.widened)))
    if stated.nearest_because is None:
        return words
    return f"{sentence(stated.nearest_because)}; the nearest kind: {words}"


def _how_sure_of_form(best: MethodAnswer, unknown: Remark | None) -> str:
    error = best.form_error
    if error is None:
        why = "no measurement of such a cluster" if unknown is None else sentence(unknown)
        return f"not known: {why}"
    return (
        f"{error.median_pct:.0f} % off in the median, {error.p90_pct:.0f} % for one in ten, on "
        f"{counted(error.rows, 'measured iteration')}"
    )


def _how_sure_of_inspector(prediction: Prediction, stated: StatedError | None) -> str:
    """What it learned from, how far it is off there, and how far its labels are."""
    if prediction.warnings:
        words = "; ".join(sentences(prediction.warnings))
        return f"a guess: {words}; --method simulator answers in detail"
    error = prediction.metrics.get("test_iteration_time_mape_pct")
    words = f"learned from {prediction.provenance} labels"
    if error is not None:
        words += f", {error:.0f} % off (mean) on test workloads"
    if prediction.provenance == "simulated":
        of_labels = None if stated is None else stated.p90_pct
        words += (
            "; error of the labels unknown"
            if of_labels is None
            else f"; labels up to {of_labels:.0f} % off in nine of ten"
        )
    if prediction.outdated is not None:
        words += "; the checkpoint is of another version (--explain)"
    return words


def _place_of(assumed: Remark) -> int:
    """What contradicts the user comes first, then what may be wrong, then what changes most."""
    order = (_CONTRADICTIONS, _DOUBTFUL, _NEXT)
    return next((place for place, codes in enumerate(order) if assumed.code in codes), len(order))


def _assumed(answer: Answer, most: int) -> list[str]:
    """What nobody stated, as far as some lines hold it; all with --explain."""
    remarks = (*answer.job.assumptions, *answer.assumptions)
    words = sentences(sorted(remarks, key=_place_of))
    text = f"{'; '.join(words) or 'nothing'} (all: --explain)"
    lines = _lines(text)
    if len(lines) > most:
        room = _WIDTH - LABEL_WIDTH - len(_MORE)
        last = lines[most - 1]
        last = last if len(last) <= room else last[:room].rsplit(" ", 1)[0]
        lines = [*lines[: most - 1], last + _MORE]
    return [_line("assumed" if line is lines[0] else "", line) for line in lines]
