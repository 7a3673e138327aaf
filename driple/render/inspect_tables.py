"""How `driple inspect` shows a job: facts, then phases, modules and kinds of op as tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.api.module_tree import ModuleNode
from driple.render.remarks import sentences
from driple.render.show import print_table
from driple.render.terminal import escaped
from driple.units import counted

if TYPE_CHECKING:
    from driple.api.breakdown import Share
    from driple.api.inspecting import InspectResult, ParameterFacts
    from driple.cluster.setting import Setting
    from driple.graph.opgraph import OpGraph

__all__ = ["print_fact", "print_inspected", "short_name"]

_NAME_CHARS = 36  # of a module in a table of 80 columns
_GB = 1e9
_LEAST_SHARE = 0.0005  # of a step's time, from which on a module is shown
_COLUMNS, _LABEL = 80, 12


def print_inspected(result: InspectResult, top: int) -> None:
    """Facts and tables of one job.

    Args:
        result: the job.
        top: most rows of kinds of op, and of modules of one module.
    """
    job, parts = result.job, result.breakdown
    graph, cost, report = job.graph, job.cost, job.graph.report
    step = "one training step" if graph.is_training else "one forward pass"
    samples = "" if job.batch_size is None else f" of {counted(job.batch_size, 'sample')}"
    print(f"{job.name}: {step}{samples}, on one {parts.device} ({result.setting.name})")
    print_fact(
        "ops",
        f"{graph.num_nodes} on the device with {graph.num_edges} edges; the graph has "
        f"{report.nodes_in_file} nodes",
    )
    seconds = "" if parts.total_s is None else f", {_ms(parts.total_s)} on this device (simulated)"
    print_fact(
        "work",
        f"{_number(cost.total_flops / _GB)} GFLOP, "
        f"{_number(cost.total_bytes / _GB)} GB of memory read and written{seconds}",
    )
    _print_parameters(result.parameters, trains=graph.is_training)
    print_fact("network", _traffic_words(graph, result.setting))
    if report.left_out:
        listed = ", ".join(f"{number} {reason}" for reason, number in report.left_out.items())
        print_fact("left out", f"{listed}")
    for words in sentences(parts.assumptions):  # those of the job were printed first
        print_fact("assumed", words)
    for words in sentences(result.unknown):
        print_fact("not known", f"{words}")
    if parts.phases:
        print()
        _print_shares("phase", parts.phases)
    if parts.modules is not None:
        print()
        _print_modules(result, parts.modules, top)
    if top:
        print()
        _print_shares("kind of op", parts.kinds[:top], left=len(parts.kinds) - top)


def print_fact(label: str, words: str) -> None:
    """One line of facts, or several under each other."""
    lines = textwrap.wrap(escaped(words), _COLUMNS - _LABEL - 2, break_on_hyphens=False)
    for i, line in enumerate(lines):
        print(f"  {label if i == 0 else '':{_LABEL}}{line}")


def _print_parameters(facts: ParameterFacts, *, trains: bool) -> None:
    amount = _size(facts.nbytes)
    if facts.elements is not None:
        tensors = counted(facts.count, "tensor")
        amount = f"{_count(facts.elements)} in {tensors}, {amount}"
    print_fact("parameters", f"{amount}")
    if facts.trained_elements is not None and facts.trained_elements != facts.elements:
        print_fact("trained", f"{_count(facts.trained_elements)} of them; the others are frozen")
    if not trains:
        return
    print_fact("gradients", f"{_size(facts.gradient_bytes)}")
    if facts.optimizer:
        print_fact("optimizer", f"{facts.optimizer}, keeps {_size(facts.state_bytes)} of states")


def _print_shares(title: str, shares: Sequence[Share], left: int = 0) -> None:
    print_table(
        [title, "ops", "GFLOP", "GB", "time", "of time"],
        [
            [
                short_name(one.name.replace("_", " ")),
                str(one.ops),
                _number(one.flops / _GB),
                _number(one.moved_bytes / _GB),
                _ms(one.time_s),
                _percent(one.time_pct),
            ]
            for one in shares
        ],
    )
    if left > 0:
        print(f"and {left} more with less time (--top)")


def _print_modules(result: InspectResult, root: ModuleNode, top: int) -> None:
    """The tree of modules, the largest first; a module contains those indented below it."""
    total = result.breakdown.total_s or 0.0
    title = "module" if result.job.graph.modules else "name scope"
    rows = [("whole model", _Row.of(root)), *_lines(root, result.depth, top, total)]
    print_table(
        [title, "parameters", "GFLOP", "GB", "of time"],
        [
            [
                short_name(name),
                _count(row.parameters) if row.parameters else "-",
                _number(row.flops / _GB),
                _number(row.moved_bytes / _GB),
                "-" if row.time_s is None or not total else _percent(100 * row.time_s / total),
            ]
            for name, row in rows
        ],
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """Numbers of a row of the tree."""

    ops: int
    parameters: int
    flops: float
    moved_bytes: float
    time_s: float | None

    @classmethod
    def of(cls, node: ModuleNode) -> _Row:
        """Of a module."""
        return cls(node.ops, node.parameters, node.flops, node.moved_bytes, node.time_s)

    def without(self, others: Iterable[ModuleNode]) -> _Row:
        """What is left of a module when some within it are counted on their own."""
        nodes = [*others]
        left_s = None
        if self.time_s is not None:
            left_s = max(self.time_s - sum(one.time_s or 0.0 for one in nodes), 0.0)
        return _Row(
            self.ops - sum(one.ops for one in nodes),
            self.parameters - sum(one.parameters for one in nodes),
            max(self.flops - sum(one.flops for one in nodes), 0.0),
            max(self.moved_bytes - sum(one.moved_bytes for one in nodes), 0.0),
            left_s,
        )


def _lines(
    node: ModuleNode, depth: int, top: int, total_s: float, guide: str = ""
) -> Iterator[tuple[str, _Row]]:
    """Name, with guides of a tree, and numbers of each row below a module.

    Modules that hardly take time are not shown; the last row has what the others leave.
    """
    if depth <= 0 or not node.children:
        return
    children = _alike_joined(node.children)
    shown = [one for one in children if one.parameters or _takes_time(one, total_s)][:top]
    rest = _Row.of(node).without(shown)
    hidden = len(children) - len(shown)
    has_rest = bool(shown) and rest.ops > 0
    for i, child in enumerate(shown):
        last = i == len(shown) - 1 and not has_rest
        yield f"{guide}{'└' if last else '├'} {child.name}", _Row.of(child)
        yield from _lines(child, depth - 1, top, total_s, f"{guide}{' ' if last else '│'} ")
    if has_rest:
        words = f"{hidden} more and own ops" if hidden else "own ops"
        yield f"{guide}└ ({words})", rest


def _alike_joined(nodes: Sequence[ModuleNode]) -> list[ModuleNode]:
    """Modules with the same numbers, such as the blocks of a transformer, as one with their sum."""
    groups: dict[tuple[float, ...], list[ModuleNode]] = {}
    for node in nodes:
        numbers = (node.ops, node.parameters, node.flops, node.moved_bytes, len(node.children))
        groups.setdefault(numbers, []).append(node)
    joined = []
    for group in groups.values():
        names = sorted((one.name for one in group), key=lambda name: (len(name), name))
        joined.append(group[0] if len(group) == 1 else _sum(_name_of_alike(names), group))
    return sorted(joined, key=lambda one: (-(one.time_s or 0.0), -one.flops))


def _name_of_alike(names: Sequence[str]) -> str:
    """`0 … 11 (12 alike)` of numbered modules, else the first name and how many are like it."""
    forms = {re.sub(r"\d+", "", name) for name in names}
    if len(forms) == 1:
        return f"{names[0]} … {names[-1]} ({len(names)} alike)"
    return f"{names[0]} + {len(names) - 1} alike"


def _sum(name: str, nodes: Sequence[ModuleNode]) -> ModuleNode:
    """Modules as one, and those within them by their names."""
    within: dict[str, list[ModuleNode]] = {}
    for node in nodes:
        for child in node.children:
            within.setdefault(child.name, []).append(child)
    known_s = [node.time_s for node in nodes if node.time_s is not None]
    return ModuleNode(
        name=name,
        path=nodes[0].path,
        ops=sum(node.ops for node in nodes),
        flops=sum(node.flops for node in nodes),
        moved_bytes=sum(node.moved_bytes for node in nodes),
        time_s=sum(known_s) if known_s else None,
        parameters=sum(node.parameters for node in nodes),
        parameter_bytes=sum(node.parameter_bytes for node in nodes),
        children=[_sum(child, group) for child, group in within.items()],
    )


def _takes_time(node: ModuleNode, total_s: float) -> bool:
    return node.time_s is None or node.time_s >= _LEAST_SHARE * total_s


def _traffic_words(graph: OpGraph, setting: Setting) -> str:
    """What a worker of the setting sends and receives in a step."""
    from driple.schemes.registry import scheme_named

    if not graph.is_training:
        return "a forward pass exchanges nothing"
    if scheme_named(setting.scheme.name).uses_servers:
        sent, received = _size(graph.sent_bytes), _size(graph.received_bytes)
        return f"parameter servers: {sent} sent, {received} received in a step"
    if setting.num_workers == 1:
        return "one device, nothing is sent"
    replicas = setting.num_replicas
    if replicas < setting.num_workers:
        each = setting.num_workers // replicas
        return (
            f"{each} devices of a replica exchange activations; gradients of "
            f"{_size(graph.sent_bytes)} are added up by {counted(replicas, 'replica')} in a step"
        )
    return (
        f"gradients of {_size(graph.sent_bytes)} are all-reduced over {setting.num_workers} "
        "devices in a step"
    )


def short_name(name: str) -> str:
    """A name in at most `_NAME_CHARS` characters: beginning and end."""
    if len(name) <= _NAME_CHARS:
        return name
    end = _NAME_CHARS // 2
    return f"{name[: _NAME_CHARS - end - 1]}…{name[-end:]}"


def _number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0:
        return "0"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.001 else "<0.001"


def _count(value: int) -> str:
    """A number of parameters: 25.6 M."""
    for unit, words in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {words}"
    return str(value)


def _size(nbytes: float) -> str:
    for unit, words in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {words}"
    return f"{nbytes:.0f} bytes"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{_number(1e3 * seconds)} ms"


def _percent(pct: float | None) -> str:
    return "-" if pct is None else f"{pct:.1f} %"
