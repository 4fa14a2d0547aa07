"""The core's connectors by name, and settings that were written down read as their typed model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from evaluation.connectors.chat import CHAT
from evaluation.connectors.command_line import COMMAND_LINE
from evaluation.connectors.http import HTTP
from evaluation.connectors.protocol import Connector, Settings
from evaluation.connectors.python_callable import PYTHON_CALLABLE
from evaluation.core.errors import ConcordError
from evaluation.network.outcomes import storable

CONNECTORS: Mapping[str, Connector] = {one.name: one for one in (HTTP, COMMAND_LINE, CHAT, PYTHON_CALLABLE)}


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """What is wrong with one setting: its path (``reply.answer``; empty for all together), a code and its parameters
    (``evaluation/messages/system_settings.py``), and the sentence in English."""

    field: str
    code: str
    message: str
    params: Mapping[str, Any]


class BadSettings(ConcordError):
    """Settings that a connector cannot take, with every problem."""

    def __init__(self, problems: Sequence[SettingProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{one.field}: {one.message}".removeprefix(": ") for one in self.problems))


def read_settings(connector: Connector, given: Mapping[str, Any]) -> Settings:
    """The connector's settings.

    :raises BadSettings: with every field that does not fit.
    """
    if not _is_storable(given):
        text = "a text with NUL or half a character, or a number that is none"
        raise BadSettings([SettingProblem("", "not_storable", text, {})])
    try:
        return connector.settings.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise BadSettings(
            [SettingProblem(".".join(map(str, e["loc"])), e["type"], e["msg"], e.get("ctx", {})) for e in found]
        ) from error


def _is_storable(value: Any) -> bool:
    """Whether a database and a hash can take the value: no NUL, no lone surrogate, only finite numbers."""
    if isinstance(value, str):
        return storable(value) == value
    if isinstance(value, Mapping):
        return all(_is_storable(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return all(map(_is_storable, value))
    return not isinstance(value, float) or math.isfinite(value)
