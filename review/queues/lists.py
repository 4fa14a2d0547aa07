"""Lists as people type them: ids apart by commas or lines, and whose field a tag is."""

from __future__ import annotations

import re

from evaluation.core.errors import Refused


def listed(text: str) -> list[str]:
    """The words between commas, semicolons and line ends, each once, in their order."""
    words = (word.strip() for word in re.split(r"[,;\n\r]", text))
    return list(dict.fromkeys(word for word in words if word))


def fields_from(text: str) -> dict[str, list[str]]:
    """``tag: kim, lee`` line by line as tag -> names; a tag on several lines has all of their people.

    :raises Refused: ``no_fields`` for a line without a tag or without names.
    """
    fields: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        tag, colon, names = line.rpartition(":")
        people = listed(names)
        if not colon or not tag.strip() or not people:
            raise Refused("no_fields")
        known = fields.setdefault(tag.strip(), [])
        known += [name for name in people if name not in known]
    return fields
