"""Types of JSON objects, from which REST derives its schema."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

# pydantic reads the class of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict


def object_type(name: str, fields: Mapping[str, Any], meaning: str = "", *, is_open: bool = False) -> Any:
    """Type of a JSON object whose keys are computed. An ``is_open`` object has further keys of any type."""
    # Called as a plain function, because mypy expects literals.
    create: Any = TypedDict
    kind = create(name, dict(fields))
    kind.__doc__ = meaning
    if is_open:
        kind.__pydantic_config__ = ConfigDict(extra="allow")
    return kind
