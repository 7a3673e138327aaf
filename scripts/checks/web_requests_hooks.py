"""Requests that schemathesis leaves out, as no client can send them.

In a form of several parts (multipart) all is text or bytes: an empty list has no part, and an
object arrives as its text. What should be a wrong value for a field arrives as none, or as a right
one, and is answered rightly.
"""

from __future__ import annotations

from typing import Any

import schemathesis

__all__ = ["can_be_sent"]

_PARTS = "multipart/form-data"


@schemathesis.hook("filter_case")
def can_be_sent(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Whether each field of a request reaches the server."""
    body = case.body
    if case.media_type != _PARTS or not isinstance(body, dict):
        return True
    return all(isinstance(value, str | bytes) for value in body.values())
