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
        raise InvalidFile([Problem(f"{problem}_not_yaml", file, params={"error": str(error)})]) from error
    except ValidationError as error:
        code = f"{problem}_invalid"
        problems = [
            Problem(code, file, _line(text, e["loc"]), ".".join(map(str, e["loc"])), {"error": e["msg"]})
            for e in error.errors()
        ]
        raise InvalidFile(problems) from error
