"""Built-in connectors by name, and validation of stored settings."""

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
from evaluation.network.outcomes import replace_unstorable

CONNECTORS: Mapping[str, Connector] = {
    connector.name: connector for connector in (HTTP, COMMAND_LINE, CHAT, PYTHON_CALLABLE)
}


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """Problem of one setting: path (``reply.answer``; empty for the settings as a whole), message code with parameters
    (``evaluation/messages/system_settings.py``), and an English sentence."""

    field: str
    code: str
    message: str
    params: Mapping[str, Any]


class InvalidSettings(ConcordError):
    """Invalid connector settings, with every problem."""

    def __init__(self, problems: Sequence[SettingProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "; ".join(f"{problem.field}: {problem.message}".removeprefix(": ") for problem in self.problems)
        )


def read_settings(connector: Connector, values: Mapping[str, Any]) -> Settings:
    """Validate the settings of a connector.

    :raises InvalidSettings: with every invalid field."""
    if not _is_storable(values):
        text = "a text has a character that cannot be stored, or a number is not finite"
        raise InvalidSettings([SettingProblem("", "not_storable", text, {})])
    try:
        return connector.settings.model_validate(values)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        raise InvalidSettings(
            [
                SettingProblem(".".join(map(str, entry["loc"])), entry["type"], entry["msg"], entry.get("ctx", {}))
                for entry in errors
            ]
        ) from error


def _is_storable(value: Any) -> bool:
    """Return whether a database and a hash accept the value: no NUL, no lone surrogates, only finite numbers."""
    if isinstance(value, str):
        return replace_unstorable(value) == value
    if isinstance(value, Mapping):
        return all(_is_storable(member) for pair in value.items() for member in pair)
    if isinstance(value, list):
        return all(map(_is_storable, value))
    return not isinstance(value, float) or math.isfinite(value)
