"""YAML that says one thing only: the safe C loader, without aliases and without repeated keys."""

from __future__ import annotations

from typing import Any

import yaml


def read_mapping(text: str) -> dict[str, Any]:
    """The mapping a YAML document holds.

    :raises ValueError: with the line, when it is no YAML, uses an alias, repeats a key, or is no mapping.
    """
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"line {_line(event)}: aliases are not read")
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
        if not isinstance(node, yaml.MappingNode):
            raise ValueError("not a YAML mapping")
        _refuse_repeated_keys(node)
        value: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error
    return value


def _line(marked: Any) -> int:
    return int(marked.start_mark.line) + 1


def _refuse_repeated_keys(node: yaml.Node) -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(item)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise ValueError(f"line {_line(key)}: the key {key.value!r} is there twice")
            seen.add(key.value)
            _refuse_repeated_keys(value)
