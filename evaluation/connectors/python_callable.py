"""System that is a Python function in this process. Only functions that the operator has named can be called.

The function takes ``question`` and optionally ``k``, ``history``, ``id`` and other slots, and returns a mapping or the
answer's text. It runs in a thread; after a time-out the result is dropped, but the thread cannot be stopped."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pydantic import Field

from evaluation.connectors.mapping import ReplyMapping, search_path
from evaluation.connectors.protocol import (
    AskFailed,
    Connector,
    OperatorPolicy,
    Settings,
    SystemCall,
    SystemClient,
    SystemReply,
    failed_reply,
)
from evaluation.connectors.slots import slot_values
from evaluation.core.errors import DomainError
from evaluation.network.outcomes import Outcome, replace_unstorable

_MAX_RAW = 4_000


class CallableSettings(Settings):
    """Name of the operator's function, and the mapping of its return value."""

    function: str = Field(min_length=1, max_length=100, description="Name of a function in CONCORD_SYSTEM_CALLABLES.")
    reply: ReplyMapping = Field(default_factory=ReplyMapping, description="JMESPath of each part of the answer.")


class CallableSystem(SystemClient):
    """Client that calls a function for each question."""

    def __init__(self, settings: CallableSettings, policy: OperatorPolicy) -> None:
        if settings.function not in policy.functions:
            raise DomainError("function_not_allowed", function=settings.function)
        self._settings = settings
        self.deadline = settings.timeout_seconds
        self._function = _import_function(policy.functions[settings.function], settings.function)
        self._parameter_names = _parameter_names(self._function)

    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        return {"function": self._settings.function, "arguments": self._arguments(call)}

    async def ask(self, call: SystemCall) -> SystemReply:
        """Call the function and map its return value."""
        try:
            return_value = await asyncio.to_thread(self._function, **self._arguments(call))
        except Exception as error:  # noqa: BLE001 -- whatever a foreign function raises is its failure to answer
            detail = replace_unstorable(f"{type(error).__name__}: {error}")
            return failed_reply(Outcome.SERVER_ERROR, "program_failed", detail)
        mapping = {"answer": return_value} if isinstance(return_value, str) else return_value
        raw = replace_unstorable(repr(return_value)[:_MAX_RAW])
        if not isinstance(mapping, dict):
            return failed_reply(
                Outcome.WRONG_CONTENT, detail=f"the function returned {type(return_value).__name__}", raw=raw
            )
        try:
            content = self._settings.reply.read(lambda expression: search_path(expression, mapping), call)
        except AskFailed as failure:
            return failed_reply(failure.outcome, failure.code, failure.detail, raw=raw)
        return SystemReply(Outcome.OK, content=content, raw=raw)

    def _arguments(self, call: SystemCall) -> dict[str, Any]:
        arguments = slot_values(call)
        return (
            arguments
            if self._parameter_names is None
            else {name: arguments[name] for name in self._parameter_names if name in arguments}
        )


def _import_function(path: str, name: str) -> Callable[..., Any]:
    """Import the function at ``package.module:name``.

    :raises DomainError: ``function_missing``."""
    module, _, function_name = path.partition(":")
    try:
        candidate = getattr(import_module(module), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise DomainError("function_missing", function=name) from error
    if not callable(candidate):
        raise DomainError("function_missing", function=name)
    function: Callable[..., Any] = candidate
    return function


def _parameter_names(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Parameter names; ``None`` if the function accepts any keyword."""
    parameters = inspect.signature(function).parameters
    accepts_any_keyword = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    return None if accepts_any_keyword else tuple(parameters)


PYTHON_CALLABLE = Connector("callable", CallableSettings, CallableSystem)
