"""Sentences of remarks, by code.

    Remark                --sentence-->        text for people
    JSON with remarks     --with_sentences-->  the same, each remark with its `text`

Each module of this package has the sentences of one subject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from driple.remarks import Remark
from driple.render.remarks import (
    devices,
    graphs,
    inspectors,
    jobs,
    measured,
    offers,
    runs,
    simulated,
    tables,
)

if TYPE_CHECKING:
    from driple.codec import Json

__all__ = ["SENTENCES", "sentence", "sentences", "with_sentences"]

SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "text": "{text}",
    **graphs.SENTENCES,
    **jobs.SENTENCES,
    **devices.SENTENCES,
    **simulated.SENTENCES,
    **inspectors.SENTENCES,
    **runs.SENTENCES,
    **offers.SENTENCES,
    **tables.SENTENCES,
    **measured.SENTENCES,
}
"""Code -> a template with the names of its values, or a function of them."""

_KEYS = {"code", "values"}
_LEAVES = frozenset((str, int, float, bool, type(None)))


def sentence(remark: Remark) -> str:
    """The remark as one sentence, without a full stop; remarks among its values are sentences too.

    Args:
        remark: its code is one of `SENTENCES`.
    """
    values = {
        name: sentence(value) if isinstance(value, Remark) else value
        for name, value in remark.values.items()
    }
    return _sentence(remark.code, values)


def sentences(remarks: Iterable[Remark]) -> tuple[str, ...]:
    """Each of some remarks as a sentence."""
    return tuple(sentence(remark) for remark in remarks)


def _sentence(code: str, values: Mapping[str, Any]) -> str:
    words = SENTENCES[code]
    return words.format(**values) if isinstance(words, str) else words(**values)


def with_sentences(value: Json) -> Json:
    """JSON as commands print it: each remark in it has its sentence as `text`.

    Args:
        value: of a result, as `to_dict` gives it.
    """
    if isinstance(value, Mapping):
        converted = {
            key: held if type(held) in _LEAVES else with_sentences(held)
            for key, held in value.items()
        }
        return (
            _with_text(converted)
            if converted.keys() == _KEYS and converted["code"] in SENTENCES
            else converted
        )
    if isinstance(value, list) and not set(map(type, value)) <= _LEAVES:
        return [with_sentences(held) for held in value]
    return value


def _with_text(remark: dict[str, Any]) -> Json:
    values = {
        name: value["text"] if isinstance(value, dict) else value
        for name, value in cast("Mapping[str, Any]", remark["values"]).items()
    }
    return {**remark, "text": _sentence(remark["code"], values)}
