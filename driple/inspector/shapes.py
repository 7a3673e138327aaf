"""Names and shapes of an inspector's weights, from its configuration.

No torch is needed, but for graph layers that no preset uses (`variants.py`).
"""

from __future__ import annotations

from driple.inspector.config import InspectorConfig
from driple.inspector.variants import layer_shapes
from driple.trace.targets import NUM_TARGETS

__all__ = ["member_prefix", "weight_shapes"]

Shapes = dict[str, tuple[int, ...]]


def weight_shapes(config: InspectorConfig, num_groups: int, num_tuned: int = 0) -> Shapes:
    """Shape of each weight of `make_inspector(config, num_groups, num_tuned)`, by its name."""
    if config.members == 1:
        return _of_member(config, num_groups, num_tuned)
    member = _of_member(config, num_groups, num_tuned)
    return {
        f"{member_prefix(i)}{name}": shape
        for i in range(config.members)
        for name, shape in member.items()
    }


def member_prefix(number: int) -> str:
    """Prefix of the weight names of a member, where there are several."""
    return f"members.{number}."


def _of_member(config: InspectorConfig, num_groups: int, num_tuned: int) -> Shapes:
    shapes = _stage("first", config, config.num_features)
    repeated = {"shared": config.num_layers(num_groups) - 1 - num_tuned, "tuned": num_tuned}
    for name, times in repeated.items():
        if times:
            shapes |= _stage(name, config, config.hidden)
            if config.update == "residual":
                shapes |= {f"{name}.norm.{part}": (config.hidden,) for part in ("weight", "bias")}
    if config.readout == "set2set":
        shapes |= _recurrent("readout.lstm", 2 * config.hidden, config.hidden, num_gates=4)
    widths = [config.readout_width + config.num_context]
    widths += [config.hidden] * (config.mlp_layers - 1) + [NUM_TARGETS]
    for i in range(config.mlp_layers):
        shapes |= _linear(f"mlp.{i}", widths[i], widths[i + 1])
    return shapes


def _stage(prefix: str, config: InspectorConfig, num_in: int) -> Shapes:
    shapes = _conv(f"{prefix}.conv", config.layer, num_in, config.hidden)
    if config.update == "gru":
        shapes |= _recurrent(f"{prefix}.gru", config.hidden, config.hidden, num_gates=3)
    return shapes


def _conv(prefix: str, layer: str, num_in: int, num_out: int) -> Shapes:
    if layer == "gcn":
        return _linear(f"{prefix}.linear", num_in, num_out)
    shapes = layer_shapes(layer, num_in, num_out)
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def _linear(prefix: str, num_in: int, num_out: int) -> Shapes:
    return {f"{prefix}.weight": (num_out, num_in), f"{prefix}.bias": (num_out,)}


def _recurrent(prefix: str, num_in: int, hidden: int, *, num_gates: int) -> Shapes:
    rows = num_gates * hidden
    return {
        f"{prefix}.weight_ih": (rows, num_in),
        f"{prefix}.weight_hh": (rows, hidden),
        f"{prefix}.bias_ih": (rows,),
        f"{prefix}.bias_hh": (rows,),
    }
