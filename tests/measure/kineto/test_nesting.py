"""What stands around an event: the outermost op with a kind, phase, module and annotation."""

from __future__ import annotations

from pathlib import Path

from driple.measure.kineto.columns import read_trace
from driple.measure.kineto.nesting import PHASES, nest
from tests.measure.kineto.traces import event, gpu_step, write


def rows(path: Path) -> dict[str, tuple[str, str, tuple[str, ...], float]]:
    """Group, phase, module and own time of each op, by name."""
    columns = read_trace(path)
    host = nest(columns)
    return {
        columns.names[columns.name[index]]: (
            "" if host.group[i] < 0 else host.groups[host.group[i]],
            PHASES[host.phase[i]],
            host.paths[host.module[i]],
            float(host.own_us[i]),
        )
        for i, index in enumerate(host.index.tolist())
    }


def test_the_backward_pass_is_in_the_module_of_its_forward_op(tmp_path: Path) -> None:
    """Also where the thread of the backward pass stands before that of the forward pass."""
    events = gpu_step()
    for number, changed in enumerate(events):
        if "ackward" in changed["name"]:
            events[number] = {**changed, "pid": 1, "tid": 1}
    by_op = rows(write(tmp_path / "t.json", events[::-1]))
    inside = ("Net_0", "Conv2d_0")
    assert by_op["aten::cudnn_convolution"] == ("conv", "forward", inside, 8)
    assert by_op["aten::conv2d"] == ("conv", "forward", inside, 2)
    assert by_op["aten::convolution_backward"] == ("conv_gradient", "backward", inside, 8)
    assert by_op["aten::add_"][:3] == ("add", "update", ())


def test_ops_of_a_composite_count_as_the_outermost_kind(tmp_path: Path) -> None:
    events = [
        event("cpu_op", "aten::linear", 0, 10),
        event("cpu_op", "aten::addmm", 2, 6),
        event("cpu_op", "aten::copy_", 3, 2),
        event("cpu_op", "aten::relu", 10, 1),
    ]
    by_op = rows(write(tmp_path / "t.json", events))
    assert by_op["aten::copy_"] == ("matmul", "forward", (), 2)
    assert by_op["aten::addmm"][3] == 4
    assert by_op["aten::linear"][::3] == ("", 4)
    assert by_op["aten::relu"] == ("relu", "forward", (), 1)
