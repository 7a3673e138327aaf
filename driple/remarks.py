"""Remarks of results: a code with its values. The sentence is made where it is printed.

    Remark("fields_not_used", file="ds.json", fields=("zero_optimization.overlap_comm",))
    -> {"code": "fields_not_used", "values": {"file": "ds.json", "fields": [...]}}

The sentences are in `driple.render.remarks`: one for each code. Text that has no values, such as
that of files of earlier versions, is a remark with code `text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Remark", "RemarkValue", "remark"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """What a result says beside its numbers.

    Attributes:
        code: kind of remark, such as `fields_not_used`; `driple.render.remarks` has its sentence.
        values: what the sentence names; units are suffixes of the names.
    """

    code: str
    values: Mapping[str, RemarkValue]

    def __hash__(self) -> int:
        return hash((self.code, frozenset(self.values.items())))

    @classmethod
    def of_text(cls, text: str) -> Remark:
        """A remark that is its own sentence, as files of earlier versions have them."""
        return cls(code="text", values={"text": text})


RemarkValue = str | int | float | bool | tuple[str | int | float, ...] | Remark | None


def remark(code: str, **values: RemarkValue) -> Remark:
    """A remark.

    Args:
        code: its kind.
        values: what its sentence names.
    """
    return Remark(code=code, values=values)
