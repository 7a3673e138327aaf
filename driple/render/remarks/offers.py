"""Sentences on prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

__all__ = ["SENTENCES"]


def _prices_not_used(file: str, names: Sequence[str], num_names: int) -> str:
    some = ", ".join(repr(name) for name in names)
    some += f" and {num_names - len(names)} more" if num_names > len(names) else ""
    return (
        f"--prices {file}: no instance or setting is called {some}; that price is not used (driple "
        "list instances has the names)"
    )


def _not_known(is_spot: bool, region: str | None, date: str | None) -> str:
    where = "" if region is None else f" of {region}"
    when = "" if date is None else f" up to {date}"
    kind = "spot price" if is_spot else "price"
    return f"no {kind}{where}{when} is known; give one with --prices FILE"


def _no_price(unknown: str, options: str) -> str:
    advice = f"; set them with {options}" if options else ""
    return f"no price and no recommendation: {unknown}, so times are too short{advice}"


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "no_price": _no_price,
    "no_price_of_own": "no price is known of your own {name}; give one with --prices FILE",
    "price_not_known": _not_known,
    "price_refused": "{file} states {reason}",
    "prices_not_used": _prices_not_used,
}
