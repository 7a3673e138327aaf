"""What the body of a request says: JSON, or a form with a file (multipart/form-data), in memory.

Names of files are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import HTTP
from typing import Any, cast

from driple.storedfiles import parse_json
from driple.web.refusals import Refusal

__all__ = ["form_of", "json_of"]

_MOST_PARTS = 64
_MOST_HEADER_BYTES = 4096
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{1,70}")


def json_of(content: bytes, name: str = "body") -> Mapping[str, Any]:
    """The object in a body, or in a part of a form.

    Args:
        content: the text.
        name: of what it is from, for messages.

    Raises:
        Refusal: empty, no JSON, or no object.
    """
    if not content.strip():
        raise Refusal(400, f"the {name} is empty; send a JSON object")
    try:
        value = parse_json(content)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the {name} is no JSON: {error}; send an object") from error
    if not isinstance(value, Mapping):
        raise Refusal(400, f"the {name} is no JSON object; send an object")
    return value


def form_of(body: bytes, content_type: str) -> dict[str, list[bytes]]:
    """The fields of a form, each with all its values.

    Raises:
        Refusal: a damaged form, or one with too many parts.
    """
    given = EmailMessage(policy=HTTP)
    given["content-type"] = content_type
    boundary = given.get_boundary("")
    if not _BOUNDARY.fullmatch(boundary):
        raise Refusal(400, "multipart/form-data needs a boundary")
    mark = b"\r\n--" + boundary.encode()
    pieces = (b"\r\n" + body).split(mark, _MOST_PARTS + 1)
    if len(pieces) > _MOST_PARTS + 1 or len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise Refusal(400, f"the form is cut off, or has over {_MOST_PARTS} parts")
    fields: dict[str, list[bytes]] = {}
    for piece in pieces[1:-1]:
        head, blank, value = piece.partition(b"\r\n\r\n")
        if not blank or len(head) > _MOST_HEADER_BYTES:
            raise Refusal(400, "a part of the form has no header of its own")
        name = _name_of(head)
        if name is None:
            raise Refusal(400, "a part of the form has no name")
        fields.setdefault(name, []).append(value)
    return fields


def _name_of(head: bytes) -> str | None:
    """The name of a part; that of its file is dropped."""
    header = cast("Any", BytesHeaderParser(policy=HTTP).parsebytes(head.lstrip(b"\r\n")))
    disposition = header["content-disposition"]
    if disposition is None or disposition.content_disposition != "form-data":
        return None
    name = disposition.params.get("name")
    return name if isinstance(name, str) else None
