"""Why a request has no answer, with its HTTP status."""

from __future__ import annotations

import json

from driple.errors import ConfigError, DripleError

__all__ = ["Refusal", "busy", "refusal_of", "unknown"]

_LONGEST = 2000  # characters of a reason


class Refusal(DripleError):  # noqa: N818  # it is an answer
    """A request that is refused.

    Args:
        status: of HTTP.
        reason: one line: what was found, what was needed, what to do.
        retry_after_s: when to ask again; None if that will not help.
    """

    def __init__(self, status: int, reason: str, retry_after_s: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.retry_after_s = status, retry_after_s

    @property
    def body(self) -> bytes:
        """The JSON of the answer."""
        reason = " ".join(str(self).split())[:_LONGEST]
        return json.dumps({"reason": reason, "status": self.status}).encode()

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        retry = {} if self.retry_after_s is None else {"retry-after": str(self.retry_after_s)}
        return {"content-type": "application/json", "cache-control": "no-store", **retry}


def refusal_of(error: DripleError) -> Refusal:
    """The refusal that an error of a question stands for: 422, as the request makes no sense."""
    from driple.web.field_names import with_fields

    return error if isinstance(error, Refusal) else Refusal(422, with_fields(str(error)))


def unknown(what: str, name: object, known: tuple[str, ...]) -> Refusal:
    """A name that a request has and that nobody knows."""
    from driple.jobs.fuzzy_match import unknown_name

    return Refusal(422, unknown_name(what, name, known))


def busy(what: str) -> Refusal:
    """A server that has enough to do."""
    return Refusal(503, f"{what}; ask again in 5 seconds", 5)


def wrong_type(name: str, needed: str, value: object) -> ConfigError:
    """A field of a request that has another type."""
    return ConfigError(f"{name} must be {needed}, got {value!r:.80}")
