"""JSON shapes of replies: the strict schemas that judges are asked to fill, and the check that a value fits one.

Only what every structured-output server knows is used: objects whose members are all required, lists, and closed
lists of values; no bounds, no null. Lists of unknown length stand for what the judge finds, objects with one member per
part for what it is asked about, so that a strict server cannot leave a part out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
YES_NO: Schema = {"type": "boolean"}
ANYTHING: Schema = {}  # for reading only: whatever stands there is judged later


def closed(members: Mapping[str, Schema]) -> dict[str, Any]:
    """An object with exactly these members."""
    return {
        "type": "object",
        "properties": dict(members),
        "required": list(members),
        "additionalProperties": False,
    }


def list_of(item: Schema) -> dict[str, Any]:
    """A list of any length."""
    return {"type": "array", "items": dict(item)}


def one_of(values: Sequence[str]) -> dict[str, Any]:
    """One of these texts."""
    return {"type": "string", "enum": list(values)}


def whole_number(values: Sequence[int]) -> dict[str, Any]:
    """One of these whole numbers."""
    return {"type": "integer", "enum": list(values)}


def conforms(value: Any, schema: Schema) -> bool:
    """Whether a JSON value has the shape. ``true`` is no number, ``4.0`` no whole number."""
    if "enum" in schema:
        return any(value == known and type(value) is type(known) for known in schema["enum"])
    match schema.get("type"):
        case "object":
            return _fits_object(value, schema)
        case "array":
            return isinstance(value, list) and all(conforms(item, schema["items"]) for item in value)
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case _:
            return not schema


def _fits_object(value: Any, schema: Schema) -> bool:
    members: Mapping[str, Schema] = schema["properties"]
    return (
        isinstance(value, dict)
        and value.keys() == members.keys()
        and all(conforms(value[name], member) for name, member in members.items())
    )
