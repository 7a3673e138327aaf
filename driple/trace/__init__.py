"""LABEL: traces of a run -> the twelve targets."""

from driple.label.label import Label, label_trace, targets_of

__all__ = ["Label", "label_trace", "targets_of"]
