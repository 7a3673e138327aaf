"""Everything known of an answer (`driple predict --explain`), and all methods side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from driple.remarks import Remark
from driple.render.errors_stated import (
    HOST_ADVICE,
    error_is_of_kernels,
    host_is_of_a_file,
    host_sentence,
    slow_host_sentence,
    stated_error_sentence,
)
from driple.render.memory_lines import memory_sentence
from driple.render.method_words import METHOD_WORDS
from driple.render.remarks import sentence, sentences
from driple.render.show import note, print_assumptions, print_table, print_targets
from driple.units import counted, format_range, three_digits

if TYPE_CHECKING:
    from driple.answers.method_answer import MethodAnswer
    from driple.api.predicting import Answer
    from driple.estimate import Estimate
    from driple.inspector.predict import Prediction
    from driple.simulate.run import Simulation
    from driple.step.profile import StepProfile

__all__ = ["print_compared", "print_explained"]

_SAME = 1e-6  # ends that differ by less are the same
_LEAST_SHOWN = 0.005  # of a step: shorter phases are left out of the line


def print_explained(answer: Answer) -> None:
    """Tables of one answer by one method."""
    if answer.reason is not None:
        print(sentence(answer.reason))
    _print_what_does_not_fit(answer)
    if answer.method == "inspector" and answer.prediction is not None:
        _print_inspector(answer, answer.prediction)
    elif answer.method == "simulator" and answer.simulation is not None:
        _print_simulator(answer, answer.simulation)
    else:
        _print_closed_forms(answer)
    _print_memory(answer)


def _print_what_does_not_fit(answer: Answer) -> None:
    """First of all, that the job needs more memory than there is, and what would make it fit."""
    memory = answer.memory
    if memory is None or memory.estimate is None or memory.estimate.fits in ("yes", None):
        return
    print(f"{answer.job.name} on {answer.setting.name}: {memory_sentence(memory.estimate)}")
    helping = [one.flag for one in memory.remedies if one.memory.fits == "yes"]
    if helping:
        print(f"what would fit: {'; or '.join(helping)}")
    elif memory.remedies:
        tried = ", ".join(one.flag for one in memory.remedies)
        print(f"no single change makes it fit ({tried}); combine them, or take larger devices")


def _print_memory(answer: Answer) -> None:
    """One line, unless it has been printed first; nothing on processors."""
    memory = answer.memory
    if memory is None:
        return
    if memory.estimate is None:
        print(f"memory: unknown; {'' if memory.reason is None else sentence(memory.reason)}")
    elif memory.estimate.fits in ("yes", None):
        print(memory_sentence(memory.estimate))


def _print_inspector(answer: Answer, prediction: Prediction) -> None:
    trained = prediction.trained_on
    for words in sentences(prediction.warnings):
        print(
            f"a guess for {prediction.setting}: {words}; driple predict JOB --method simulator "
            f"--setting {prediction.setting} answers in detail"
        )
    print(f"{answer.job.name} on {prediction.setting}: learned from {prediction.provenance} labels")
    print_assumptions(answer.assumptions)
    if prediction.outdated is not None:
        print(sentence(prediction.outdated))
    ends = None if prediction.ends is None else prediction.ends.tolist()
    interval = answer.iteration_time_s.interval
    print_targets(prediction.targets, prediction.iteration_time_s, ends, interval=interval)
    _print_throughput(answer)
    if prediction.level is not None:
        kind = f"{prediction.provenance} " if prediction.provenance == "simulated" else ""
        of_any = prediction.provenance == "measured" and answer.host is None
        where = " on machines of this kind" if of_any else ""
        print(f"in brackets: where {prediction.level:.0%} of such {kind}values are expected{where}")
    elif prediction.ends is not None:
        why = _why_no_level(prediction, answer.job.unknown)
        print(f"in brackets: {why}; how many of such values lie there is not known")
    if answer.host is not None:
        print(host_sentence(answer.host))
    if prediction.closed_form_s is not None:
        print(f"closed form, to compare: step time {prediction.closed_form_s:.3g} s")
    error = prediction.metrics.get("test_smape_pct")
    tested = f"; SMAPE {error:.0f} % on its test workloads" if error is not None else ""
    print(
        f"graph: {prediction.num_nodes} ops, {prediction.num_edges} edges, {prediction.num_groups} "
        "groups"
    )
    origin = trained.transferred_from
    moved = "" if origin is None else f", transferred from {origin.setting}"
    part, whole, data = (
        "?" if fact is None else fact
        for fact in (trained.num_train, trained.num_workloads, trained.data_set)
    )
    print(f"checkpoint: learned from {part} of {whole} workloads of {data}{moved}{tested}")
    if answer.stated is not None:
        print(f"labels: {stated_error_sentence(answer.stated)}")


def _why_no_level(prediction: Prediction, unknown: Remark | None) -> str:
    """Why no share of values is stated for the intervals."""
    if unknown is not None:
        return f"{sentence(unknown)} and count as 1"
    if prediction.contradiction is not None:
        return "wide enough to hold the closed form's times too"
    return "extrapolated" if prediction.outdated is None else "learned from another version"


def _print_simulator(answer: Answer, simulation: Simulation) -> None:
    if answer.iteration_time_s.is_guess:
        print(
            f"a guess for {simulation.setting.name}: by the published runs that the last lines "
            "name, errors as large as the interval are expected"
        )
    print(f"{answer.job.name} on {simulation.setting.name}: simulated")
    print_assumptions(answer.assumptions)
    step, time = simulation.step, answer.iteration_time_s
    if step is None:
        print_targets(simulation.targets, time.value, interval=time.interval)
    else:
        bursts = {name: usage.num_bursts for name, usage in step.usage().items()}
        print_targets(step.targets(), time.value, bursts=bursts, interval=time.interval)
        _print_step(step, simulation.setting.worker.known_window_s)
    times = [record.iteration_time_s for record in simulation.records]
    _print_throughput(answer)
    _print_level(answer)
    workers = [
        (device, f"{three_digits(seconds)} s")
        for device, seconds in zip(simulation.topology.devices, times, strict=True)
    ]
    print_table(["", "device", "iteration"], list(_rows_of_workers(workers)))
    kinds = simulation.topology.labelled_workers()
    if len(kinds) > 1:
        own = f"{counted(sum(kinds.values()), 'worker')} on {simulation.topology.devices[0]}"
        shown = "targets and iteration time are" if step is None else "the iteration time is"
        note(f"{shown} the mean over the {own}")
    if answer.slow_host is not None:
        print(f"{slow_host_sentence(answer.slow_host)}{_host_advice(answer)}")
    if answer.stated is not None:
        of_kernels = "of kernels: " if error_is_of_kernels(answer) else ""
        print(f"{of_kernels}{stated_error_sentence(answer.stated)}")


def _host_advice(answer: Answer) -> str:
    """How to state one's own host; nothing where a machine file does, which refuses another."""
    return "" if host_is_of_a_file(answer) else f"; {HOST_ADVICE}"


def _print_level(answer: Answer) -> None:
    """Which share of step times the brackets hold, and by what; nothing without an interval."""
    time, stated = answer.iteration_time_s, answer.stated
    interval = time.interval
    if interval is None or interval.level is None:
        return
    own = None if stated is None else stated.interval_of(time.value)
    is_own = own is None or all(
        math.isclose(one, other, rel_tol=_SAME)
        for one, other in zip(own, (interval.low, interval.high or math.inf), strict=True)
    )
    more = "" if is_own else ", and by what the host or the network may take"
    print(
        f"in brackets: where {interval.level:.0%} of such steps are expected, by the errors stated "
        f"below{more}"
    )


def _print_step(step: StepProfile, window_s: float | None) -> None:
    """Phases of a step, and what the device's own counters would show of it."""
    from driple.step.phases import PHASE_WORDS

    parts = [
        f"{PHASE_WORDS[name]} {three_digits(seconds)} s ({100 * seconds / step.step_s:.0f} %)"
        for name, seconds in step.phases_s().items()
        if seconds >= _LEAST_SHOWN * step.step_s
    ]
    print(f"one step: {', '.join(parts)}")
    gpu, memory = step.counted_pct()
    if window_s is None:
        print(
            f"means over the step, kernels of the network included: GPU {gpu:.0f} %, its memory "
            f"{memory:.0f} %; over which time the device's own counters average is not known"
        )
        return
    print(
        f"nvidia-smi would show {gpu:.0f} % for the GPU and {memory:.0f} % for its memory, the "
        f"means over windows of {three_digits(window_s)} s"
    )


def _rows_of_workers(workers: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """A row for workers that follow each other and show the same device and iteration time."""
    first = 0
    for (device, seconds), alike in groupby(workers):
        last = first + len([*alike]) - 1
        name = f"worker {first}" if first == last else f"workers {first} to {last}, alike"
        yield [name, device, seconds]
        first = last + 1


def _print_throughput(answer: Answer) -> None:
    """One line; nothing if the batch size is unknown."""
    from driple.api.throughput import throughput_of

    throughput = throughput_of(answer)
    if throughput is None:
        return
    number = answer.setting.num_workers
    rates = [_rate(throughput.samples_per_s, "samples/s")]
    if throughput.tokens_per_s is not None:
        rates.append(_rate(throughput.tokens_per_s, "tokens/s"))
    workers = "1 worker" if number == 1 else f"{number} workers together"
    print(f"throughput {', '.join(rates)}, {workers}")


def _rate(rate: Estimate, unit: str) -> str:
    text, ends = f"{_large(rate.value)} {unit}", rate.interval
    return text if ends is None else f"{text} ({format_range(ends.low, ends.high, _large)})"


def _large(value: float) -> str:
    """Three significant digits, with commas between thousands."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else three_digits(value)


def _print_closed_forms(answer: Answer) -> None:
    from driple.analytic.advice import BOTTLENECKS
    from driple.analytic.closed_forms import PARTS

    answers, work = answer.forms, answer.forms[0].work
    if work is not None:
        print(
            f"forward pass {work.forward_flops / 1e9:.1f} GFLOP a step, parameters "
            f"{work.nbytes / 1e6:.1f} MB in {work.num_pushes} pushes"
        )
    print(f"{answer.job.name} on {answer.setting.name}, a synchronous iteration")
    print_assumptions(answer.assumptions)
    parts = [one.parts_s or {} for one in answers]
    rows = [[part, *(f"{three_digits(seconds[part])} s" for seconds in parts)] for part in PARTS]
    rows.append(["iteration", *(_time_words(one, unit=" s") for one in answers)])
    print_table(["", *(METHOD_WORDS[one.method] for one in answers)], rows)
    _print_throughput(answer)
    _print_level(answer)
    for form in answers:
        words, error = METHOD_WORDS[form.method], form.form_error
        if error is None:
            unknown = answer.job.unknown
            why = "no measurement of such a cluster" if unknown is None else sentence(unknown)
            print(f"error of {words}: not known, {why}")
        else:
            print(
                f"error of {words}, on {counted(error.rows, 'measured iteration')}: mean "
                f"{error.mean_pct:.0f} %, 90th percentile {error.p90_pct:.0f} %"
            )
    first = answers[0].form
    if first is not None:
        print(
            f"held back by {BOTTLENECKS[first.bottleneck]}; the busiest link works "
            f"{first.communication_ratio or 0.0:.2f} times as long as a device"
        )


def print_compared(answers: Sequence[Answer]) -> None:
    """All methods: a row for each, a column for each setting; then who contradicts whom."""
    from driple.answers.ask import METHODS

    print_assumptions(dict.fromkeys(words for one in answers for words in one.assumptions))
    print(
        f"{answers[0].job.name}: seconds of an iteration, and where it lies nine times out of ten"
    )
    rows = []
    for method in METHODS:
        cells = []
        for answer in answers:
            known = next((one for one in answer.answers if one.method == method), None)
            cells.append("-" if known is None else _cell(known))
        rows.append([METHOD_WORDS[method], *cells])
    print_table(["", *(answer.setting.name for answer in answers)], rows)
    for answer in answers:
        _print_doubts(answer)
    for answer in answers:
        _print_what_does_not_fit(answer)
        _print_memory(answer)


def _print_doubts(answer: Answer) -> None:
    from driple.answers.ask import disagreements, trust_of

    name = answer.setting.name
    for method_answer in answer.answers:
        if method_answer.measured is not None:
            print(f"{name}: measured as {method_answer.measured.workload}")
    for pair in disagreements(answer.answers):
        print(
            f"{name}: {METHOD_WORDS[pair.first.method]} ({pair.first.step_s:.3g} s) and "
            f"{METHOD_WORDS[pair.other.method]} ({pair.other.step_s:.3g} s) differ by a "
            f"factor of {pair.factor:.1f}, more than their known errors"
        )
    if answer.stated is not None:
        print(f"{name}, simulator: {stated_error_sentence(answer.stated)}")
    if answer.slow_host is not None:
        slow = slow_host_sentence(answer.slow_host)
        print(f"{name}, simulator: {slow}{_host_advice(answer)}")
    if answer.compared is not None:
        print(sentence(trust_of(answer.compared)))
    for method_answer in answer.answers:
        if method_answer.doubts:
            note(
                f"{name}, {METHOD_WORDS[method_answer.method]}: "
                f"{'; '.join(sentences(method_answer.doubts))}"
            )
    if answer.compared is not None:
        for reason in dict.fromkeys(answer.compared.silent.values()):
            note(reason)


def _cell(answer: MethodAnswer) -> str:
    """The time and its range, in seconds; a measured time has none."""
    if answer.method == "measured":
        return three_digits(answer.step_s)
    words = _time_words(answer)
    return words if answer.step_time.interval is not None else f"{words} (error not known)"


def _time_words(answer: MethodAnswer, unit: str = "") -> str:
    """The time, and its range where its error is known."""
    words, ends = f"{three_digits(answer.step_s)}{unit}", answer.step_time.interval
    return words if ends is None else f"{words} ({format_range(ends.low, ends.high)})"
