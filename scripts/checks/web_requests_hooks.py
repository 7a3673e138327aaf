"""Requests that schemathesis leaves out, as no client can send them.

A form of several parts (multipart) has no part for an empty list: what should be a request with a
wrong value for a field arrives as one without the field, and is answered rightly.
"""

from __future__ import annotations

import schemathesis

__all__ = ["can_be_sent"]

_PARTS = "multipart/form-data"


@schemathesis.hook("filter_case")
def can_be_sent(context: schemathesis.HookContext, case: schemathesis.Case) -> bool:
    """Whether each field of a request reaches the server."""
    is_form = case.media_type == _PARTS and isinstance(case.body, dict)
    return not (is_form and [] in case.body.values())
