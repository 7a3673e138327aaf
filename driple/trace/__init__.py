"""LABEL: traces of a run -> the twelve targets."""

from driple.trace.label import Label, label_trace, targets_of
from driple.trace.trace import Trace

__all__ = ["Label", "Trace", "label_trace", "targets_of"]
