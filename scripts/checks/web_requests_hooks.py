"""Requests that schemathesis leaves out, as no client can send them.

A form of several parts (multipart) has no part for an empty list: what should be a request with a
wrong value for a field arrives as one without the field, and is answered rightly.
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
    return [] not in body.values()
