"""Read YAML as a pydantic model and report the line and field of each problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from evaluation.core.errors import InvalidFile, Problem

_Model = TypeVar("_Model", bound=BaseModel)


def _field_line(text: str, field: Sequence[int | str]) -> int | None:
    """Line of a field, or of its nearest existing parent."""
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
    """Parse a YAML text as ``model``.

    :raises InvalidFile: ``{problem}_not_yaml`` for invalid YAML; ``{problem}_invalid`` with line and field of each
    validation error."""
    try:
        return model.model_validate(yaml.load(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as error:
        line, message = locate_yaml_error(error)
        raise InvalidFile([Problem(f"{problem}_not_yaml", file, line, params={"error": message})]) from error
    except ValidationError as error:
        raise InvalidFile(validation_problems(error, text, file, f"{problem}_invalid")) from error


def locate_yaml_error(error: yaml.YAMLError) -> tuple[int | None, str]:
    """Line at which the parser stopped, and its message on one line."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    message = ", ".join(part for name in ("context", "problem") if (part := getattr(error, name, None)))
    return mark.line + 1 if mark else None, message or str(error)


def validation_problems(error: ValidationError, text: str, file: str, code: str) -> list[Problem]:
    """Validation errors as problems, with line and field."""
    return [
        Problem(code, file, _field_line(text, e["loc"]), ".".join(map(str, e["loc"])), {"error": e["msg"]})
        for e in error.errors()
    ]
