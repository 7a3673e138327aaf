"""The optimizer of a Keras model, whose update is arithmetic, from the names of its variables.

adam_w/learning_rate -> adamw       sgd/learning_rate, with states -> momentum
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from driple.graph.step_facts import OptimizerUpdate, ParameterTable

__all__ = ["named_update"]

_RATE = "/learning_rate"
_NUMBER = re.compile(r"_\d+$")  # of the second optimizer of a name in a program
# Names that Keras gives the variables of its optimizers, and ours.
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "adam": "adam", "adam_w": "adamw", "nadam": "nadam", "adamax": "adamax", "lion": "lion",
        "sgd": "sgd", "rm_sprop": "rmsprop", "rmsprop": "rmsprop", "adagrad": "adagrad",
        "adadelta": "adadelta", "adafactor": "adafactor", "ftrl": "ftrl", "lamb": "lamb",
        "muon": "muon",
    }
)  # fmt: skip


def named_update(
    update: OptimizerUpdate, variables: Iterable[str], parameters: ParameterTable
) -> OptimizerUpdate:
    """The update with its optimizer, where ops did not show it and the variables' names do.

    Args:
        update: as the ops of the step show it.
        variables: names of the variables that the step reads.
        parameters: of the model; those that are trained are read and written, their gradients read,
            and the states read and written.
    """
    if update.optimizer:
        return update
    optimizers = {
        _WORDS[word]
        for name in variables
        if name.endswith(_RATE)
        and (word := _NUMBER.sub("", name.removesuffix(_RATE).rpartition("/")[2])) in _WORDS
    }
    if len(optimizers) != 1:
        return update
    (optimizer,) = optimizers
    if optimizer == "sgd" and update.state_bytes:
        optimizer = "momentum"
    trained_bytes = int(parameters.nbytes[parameters.is_trained].sum())
    moved_bytes = 3 * trained_bytes + 2 * update.state_bytes
    return replace(update, optimizer=optimizer, moved_bytes=moved_bytes)
