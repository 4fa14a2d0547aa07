"""A system that is a Python function in this process. Only functions that the operator has named can be called.

The function takes ``question`` and, where it has such parameters, ``k``, ``history``, ``id`` and the like (the names of
slots), and returns what a service would answer: a mapping, or the answer's text. It runs in a thread: one that does not
come back in time is given up, yet nothing can stop it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pydantic import Field

from evaluation.connectors.mapping import ReplyMapping, searched
from evaluation.connectors.protocol import (
    AskFailed,
    Connector,
    Settings,
    Surroundings,
    SystemCall,
    SystemClient,
    SystemReply,
    failed,
)
from evaluation.connectors.slots import values
from evaluation.core.errors import Refused
from evaluation.network.outcomes import Outcome, storable

_SHOWN = 4_000


class CallableSettings(Settings):
    """Which of the operator's functions is called, and how what it returns is read."""

    function: str = Field(min_length=1, max_length=100, description="Name of a function in CONCORD_SYSTEM_CALLABLES.")
    reply: ReplyMapping = Field(default_factory=ReplyMapping, description="Where the parts of the answer stand.")


class CallableSystem(SystemClient):
    """Calls a function for each question."""

    def __init__(self, settings: CallableSettings, around: Surroundings) -> None:
        if settings.function not in around.functions:
            raise Refused("function_not_allowed", function=settings.function)
        self._settings = settings
        self.deadline = settings.timeout_seconds
        self._function = _imported(around.functions[settings.function], settings.function)
        self._takes = _parameters(self._function)

    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        """The function's name and arguments."""
        return {"function": self._settings.function, "arguments": self._arguments(call)}

    async def ask(self, call: SystemCall) -> SystemReply:
        """Call the function, and read what it returns."""
        try:
            found = await asyncio.to_thread(self._function, **self._arguments(call))
        except Exception as error:  # noqa: BLE001 -- whatever a foreign function raises is its failure to answer
            detail = storable(f"{type(error).__name__}: {error}")
            return failed(Outcome.SERVER_ERROR, "program_failed", detail)
        value = {"answer": found} if isinstance(found, str) else found
        raw = storable(repr(found)[:_SHOWN])
        if not isinstance(value, dict):
            return failed(Outcome.WRONG_CONTENT, detail=f"the function returned {type(found).__name__}", raw=raw)
        try:
            told = self._settings.reply.read(lambda expression: searched(expression, value), call)
        except AskFailed as refused:
            return failed(refused.outcome, refused.code, refused.detail, raw=raw)
        return SystemReply(Outcome.OK, told=told, raw=raw)

    def _arguments(self, call: SystemCall) -> dict[str, Any]:
        told = values(call)
        return told if self._takes is None else {name: told[name] for name in self._takes if name in told}


def _imported(path: str, name: str) -> Callable[..., Any]:
    """The function at ``package.module:name``.

    :raises Refused: ``function_missing``.
    """
    module, _, attribute = path.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise Refused("function_missing", function=name) from error
    if not callable(found):
        raise Refused("function_missing", function=name)
    function: Callable[..., Any] = found
    return function


def _parameters(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """The names it takes; ``None`` where it takes all."""
    known = inspect.signature(function).parameters
    anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values())
    return None if anything else tuple(known)


PYTHON_CALLABLE = Connector("callable", CallableSettings, CallableSystem)
