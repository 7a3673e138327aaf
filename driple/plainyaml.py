"""YAML of files that users pass on to each other: plain lists, mappings and values, all bounded.

text --size, anchors, tags, depth, repeated keys--> yaml's safe loader -> plain Python values
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from driple.errors import ConfigError, MissingExtraError, install_hint

__all__ = ["MAX_YAML_BYTES", "read_plain_yaml"]

MAX_YAML_BYTES = 2**20
MAX_DEPTH = 20  # a catalogue of instances has 5
_LONGEST_REASON = 200
_LONGEST_KEY = 80
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # what "\\ud800" stands for
_MERGE = "tag:yaml.org,2002:merge"


def read_plain_yaml(text: str, where: str) -> Any:
    """What a YAML text holds.

    An alias repeats all that its anchor names, so that a few lines may stand for gigabytes: both
    are refused. So is an explicit tag (`!!bool x`), which has the loader convert a text that is no
    such value. Nesting is bounded, as the loader recurses. Of a key that stands twice in a mapping
    the loader would take the last: it is refused, as in JSON, CSV and TOML files.

    Args:
        text: to read.
        where: it comes from, as errors call it.

    Raises:
        ConfigError: no YAML, too large, nested too deep, an anchor, an alias or a tag, a key that
            stands twice, or a value that cannot be, such as the 45th of a month.
        MissingExtraError: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            f"YAML files are read with PyYAML, which is not installed; {install_hint('yaml')}"
        ) from error
    if len(text) > MAX_YAML_BYTES:
        raise ConfigError(f"{where} has over {MAX_YAML_BYTES} bytes; keep only what you need")
    try:
        _check_structure(yaml.parse(text, Loader=yaml.SafeLoader), where)
        _check_keys(yaml.SafeLoader(text), where)
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{where} is no YAML: {_reason(error)}") from error
    except ConfigError:
        raise
    except (ValueError, OverflowError) as error:  # a number or a date that Python cannot hold
        raise ConfigError(f"{where} has a value that cannot be read: {_reason(error)}") from error


def _check_structure(events: Iterable[Any], where: str) -> None:
    """Refuse anchors, aliases, tags and deep nesting, from the parser's events alone."""
    from yaml import CollectionEndEvent, CollectionStartEvent

    depth = 0
    for event in events:
        if getattr(event, "anchor", None) is not None:
            raise ConfigError(
                f"{where} has an anchor or alias (&name, *name) in line "
                f"{event.start_mark.line + 1}; write the values out"
            )
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise ConfigError(
                f"{where} has the tag {tag[:_LONGEST_KEY]!r} in line {event.start_mark.line + 1}; "
                "write the value alone"
            )
        depth += isinstance(event, CollectionStartEvent)
        depth -= isinstance(event, CollectionEndEvent)
        if _HALF_CHARACTER.search(getattr(event, "value", None) or ""):
            raise ConfigError(
                f"{where} has a text that is no Unicode in line {event.start_mark.line + 1}; "
                "write the whole character"
            )
        if depth > MAX_DEPTH:
            raise ConfigError(f"{where} is nested over {MAX_DEPTH} deep; write it flat")


def _check_keys(loader: Any, where: str) -> None:
    """Refuse a key that stands twice in one mapping, in whatever spelling (1 and 0x1)."""
    from yaml import MappingNode, ScalarNode, SequenceNode

    root = loader.get_single_node()
    waiting = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, SequenceNode):
            waiting += node.value
        if not isinstance(node, MappingNode):
            continue
        lines: dict[object, int] = {}
        for key, value in node.value:
            waiting += [key, value]
            if not isinstance(key, ScalarNode):  # the loader refuses such keys
                continue
            is_merge = key.tag == _MERGE
            name = _MERGE if is_merge else loader.construct_object(key)
            line = key.start_mark.line + 1
            if name in lines:
                raise ConfigError(
                    f"{where} has the key {key.value[:_LONGEST_KEY]!r} twice in one mapping, in "
                    f"lines {lines[name]} and {line}; keep one"
                )
            lines[name] = line


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:_LONGEST_REASON]
