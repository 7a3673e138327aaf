"""Graph layers and readouts that no preset uses: torch runs them where NumPy runs the others.

    weights + InspectorInput (scaled)  --torch-->  scaled targets [12]

GAT, GIN and MPNN, and the readouts add, mean and sort, can be trained and compared (study
design_choices). They are written once, in `layers.py` and `readout.py`, so that a checkpoint with
one of them predicts only where torch is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from driple.errors import MissingExtraError
from driple.features.builder import InspectorInput
from driple.inspector.config import InspectorConfig

__all__ = ["layer_shapes", "torch_runner"]

Array = npt.NDArray[np.float32]


def torch_runner(
    weights: Mapping[str, Array], config: InspectorConfig, num_groups: int, num_tuned: int = 0
) -> Callable[[InspectorInput], Array]:
    """A function from one scaled input to its scaled targets, shape [12].

    Args:
        weights: weights by the names of the torch model's state.
        config: structure of the model.
        num_groups: M of the model.
        num_tuned: repeated layers, counted from the last, that have the second set of weights.

    Raises:
        MissingExtraError: torch is not installed.
    """
    _require_torch(f"graph layer {config.layer} with readout {config.readout}")
    import torch  # an extra, loaded when needed

    from driple.inspector.ensemble import make_inspector
    from driple.inspector.model import make_batch

    model = make_inspector(config, num_groups, num_tuned=num_tuned).eval()
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})

    def run(graph_input: InspectorInput) -> Array:
        with torch.no_grad():
            out: Array = model(make_batch([graph_input]))[0].numpy()
        return out

    return run


def layer_shapes(layer: str, num_in: int, num_out: int) -> dict[str, tuple[int, ...]]:
    """Shape of each weight of a graph layer, by its name.

    Raises:
        MissingExtraError: torch is not installed.
    """
    _require_torch(f"graph layer {layer}")
    import torch  # an extra, loaded when needed

    from driple.inspector.layers import make_layer

    with torch.device("meta"):  # no numbers, whatever the size
        state = make_layer(layer, num_in, num_out).state_dict()
    return {name: tuple(array.shape) for name, array in state.items()}


def _require_torch(what: str) -> None:
    try:
        import torch  # noqa: F401  # an extra
    except ImportError as error:
        raise MissingExtraError(
            f"an inspector of {what} needs torch, which is not installed; pip install "
            "'driple[train]', or use another checkpoint"
        ) from error
