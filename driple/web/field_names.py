"""Flags of the command line in a message, as fields of a request: its reader has no flags.

"a graph does not state its batch size; give --batch-size"  ->  "...; give options.batch_size"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from driple.web.questions import OPTION_ROWS, QUESTIONS

__all__ = ["with_fields"]

_FLAG = re.compile(r"--set ([a-z_]+)(?==|\b)|--([a-z][a-z-]*)")
# Where the field has another name than the flag.
_OTHER_NAMES = {
    "setting": "clusters",
    "instance": "instances",
    "bandwidth": "bandwidths",
    "ps": "servers",
    "compress": "compressions",
    "deadline": "deadline_s",
    "what-would-help": "would_help",
    "input": "options.inputs or options.input_shape",
}
# Advice that has another form for who cannot raise a limit.
_OTHER_WORDS = {
    "raise the limit with --set max_mib=N": "ask driple on the command line, which has --set "
    "max_mib=N"
}


@cache
def _names() -> Mapping[str, str]:
    """Fields by the names of flags, and of values of `--set`."""
    names = {field.name: field.name for fields in QUESTIONS.values() for field in fields}
    names |= {field.replace("_", "-"): field for field in list(names)}
    for row in OPTION_ROWS:
        names[row.set_name or row.typed.removeprefix("--")] = f"options.{row.name}"
    return names | _OTHER_NAMES


def with_fields(message: str) -> str:
    """A message with the names of fields in place of flags; flags without a field stay."""
    for words, others in _OTHER_WORDS.items():
        message = message.replace(words, others)
    return _FLAG.sub(lambda match: _names().get(match[1] or match[2], match[0]), message)
