"""What a YAML text describes, read as a model, with line and field of what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from evaluation.core.errors import InvalidFile, Problem

_Model = TypeVar("_Model", bound=BaseModel)


def _line(text: str, field: Sequence[int | str]) -> int | None:
    """The line of a field, or of the nearest part around it that is there."""
    node = yaml.compose(text, Loader=yaml.CSafeLoader)
    line = None
    for step in field:
        if isinstance(node, yaml.MappingNode):
            key, node = next(((key, value) for key, value in node.value if key.value == step), (None, None))
            line = line if key is None else key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
    return line


def read_yaml(model: type[_Model], text: str, file: str, problem: str) -> _Model:
    """What a YAML text describes.

    :raises InvalidFile: ``..._not_yaml`` when it is not YAML, ``..._invalid`` with line and field of each problem when
        it is not a complete description.
    """
    try:
        return model.model_validate(yaml.load(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as error:
        line, told = where_and_what(error)
        raise InvalidFile([Problem(f"{problem}_not_yaml", file, line, params={"error": told})]) from error
    except ValidationError as error:
        raise InvalidFile(problems_of(error, text, file, f"{problem}_invalid")) from error


def where_and_what(error: yaml.YAMLError) -> tuple[int | None, str]:
    """The line at which the parser stopped, and what it says in one line."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    told = ", ".join(part for name in ("context", "problem") if (part := getattr(error, name, None)))
    return mark.line + 1 if mark else None, told or str(error)


def problems_of(error: ValidationError, text: str, file: str, code: str) -> list[Problem]:
    """Each thing that a model finds wrong with what a YAML text says, with line and field."""
    return [
        Problem(code, file, _line(text, e["loc"]), ".".join(map(str, e["loc"])), {"error": e["msg"]})
        for e in error.errors()
    ]
