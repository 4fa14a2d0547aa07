"""A chat model behind an OpenAI-compatible endpoint, without retrieval: what a system has to be better than."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from evaluation.connectors.http import VARIABLE, HttpSettings, HttpSystem
from evaluation.connectors.mapping import Find, ReplyMapping
from evaluation.connectors.protocol import AskFailed, Connector, Settings, Surroundings, SystemCall, Told, turns
from evaluation.network.completions import (
    Ending,
    content_text,
    outcome_of_ending,
    read_ending,
    read_server_error,
    read_usage,
    refusal_text,
)
from evaluation.network.outcomes import Outcome, storable
from evaluation.network.transport import Exchange

_OURS = frozenset({"model", "messages", "stream", "stream_options"})
_PLAIN = {"answer": "choices[0].message.content"}
_COUNTS = {"tokens_in": "usage.prompt_tokens", "tokens_out": "usage.completion_tokens", "model": "model"}
_UNFINISHED = {
    Ending.LENGTH: "truncated",
    Ending.FILTERED: "filtered",
    Ending.REFUSED: "model_refused",
    Ending.ERROR: "server_error",
}
_MESSAGE = "choices[0].message || choices[0].delta"


def plain_address(address: str) -> str:
    """The base URL of an endpoint, without a slash at its end.

    :raises PydanticCustomError: ``address_invalid``.
    """
    try:
        HttpSettings(address=address, body="{question}")
        fits = not re.search(r"[?#{}]", address)
    except ValidationError:
        fits = False
    if not fits:
        raise PydanticCustomError("address_invalid", "no plain http(s) address in ASCII, without user")
    return address.rstrip("/")


class ChatSettings(Settings):
    """A model and how it is asked."""

    base_url: str = Field(max_length=300, description="https://host/v1; questions go to its chat/completions.")
    model: str = Field(min_length=1, max_length=200, description="The model's name at the endpoint.")
    key_variable: str = Field(default="", max_length=100, description="Environment variable of the key, SYSTEM_….")
    system_prompt: str = Field(default="", max_length=20_000, description="What the model is told before.")
    parameters: dict[str, Any] = Field(default_factory=dict, description="Further members of the request's body.")
    stream: bool = Field(default=False, description="The reply is a stream, so that the first token is timed.")

    @field_validator("base_url")
    @classmethod
    def _plain(cls, address: str) -> str:
        return plain_address(address)

    @field_validator("key_variable")
    @classmethod
    def _allowed(cls, name: str) -> str:
        if name and not VARIABLE.fullmatch(name):
            raise PydanticCustomError("variable_refused", "{name}: variables are named SYSTEM_…", {"name": name})
        return name

    @field_validator("parameters")
    @classmethod
    def _beside(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(_OURS & parameters.keys()):
            raise PydanticCustomError("parameter_refused", "{name} is set elsewhere", {"name": taken[0]})
        return parameters

    @property
    def as_http(self) -> HttpSettings:
        """The requests it comes to."""
        key = {"Authorization": f"Bearer ${{{self.key_variable}}}"} if self.key_variable else {}
        answer = {"answer": "choices[0].delta.content"} if self.stream else _PLAIN
        return HttpSettings(
            timeout_seconds=self.timeout_seconds,
            address=f"{self.base_url}/chat/completions",
            headers=key,
            body="{question}",
            stream=self.stream,
            delta="choices[0].delta.content",
            end="[DONE]" if self.stream else "",
            reply=ReplyMapping(contexts="", **answer, **_COUNTS),
        )


class ChatSystem(HttpSystem):
    """Asks a chat model."""

    def __init__(self, settings: ChatSettings, around: Surroundings) -> None:
        super().__init__(settings.as_http, around)
        self._chat = settings

    def body(self, call: SystemCall) -> Mapping[str, Any]:
        """Model, messages and parameters."""
        told = [{"role": "system", "content": self._chat.system_prompt}] if self._chat.system_prompt else []
        asked = {"role": "user", "content": call.question.text}
        body = {**self._chat.parameters, "model": self._chat.model}
        body["messages"] = [*told, *turns(call.question.history), asked]
        return body | ({"stream": True, "stream_options": {"include_usage": True}} if self._chat.stream else {})

    async def sent(self, call: SystemCall) -> Exchange:
        """Send the request by the client that judges have."""
        return await self._llm.stream("/chat/completions", json.dumps(self.body(call)).encode())

    def told(self, find: Find, call: SystemCall) -> Told:
        """The message; one that was cut off, filtered or refused, or that ended for an unknown reason, is none.

        :raises AskFailed: ``truncated``, ``filtered``, ``model_refused``, ``unknown_ending``, the outcome of an error
            that stands in the reply, and what the mapping raises.
        """
        _check_error(find)
        _check_ending(find)
        if refusal := refusal_text(find(_MESSAGE)):
            raise AskFailed("model_refused", detail=refusal, outcome=Outcome.REFUSED)
        usage = read_usage(find("usage"))

        def text(expression: str) -> Any:
            value = find(expression)
            parts = expression == self._settings.reply.answer and isinstance(value, list)
            return content_text(value) if parts else value

        return replace(super().told(text, call), tokens_in=usage.tokens_in, tokens_out=usage.tokens_out)

    async def __aenter__(self) -> Self:
        self._llm = self._transport.llm(self._chat.base_url)
        return self


def _check_error(find: Find) -> None:
    names = ("object", "type", "code", "message")
    whole = {"error": find("error || choices[0].error"), **{name: find(name) for name in names}}
    if error := read_server_error(whole):
        outcome = error.outcome()
        words = " ".join(map(str, filter(None, [error.status, *error.codes[:1], error.message])))
        raise AskFailed(str(outcome), detail=words, outcome=outcome)


def _check_ending(find: Find) -> None:
    reason = find("choices[0].finish_reason")
    ending = read_ending(reason)
    if ending is Ending.COMPLETE:
        return
    if ending is Ending.TOOL_CALL:
        raise AskFailed("no_answer", detail="the model called a tool")
    if ending in _UNFINISHED:
        raise AskFailed(_UNFINISHED[ending], outcome=outcome_of_ending(ending))
    raise AskFailed("unknown_ending", detail=storable(str(reason)), outcome=Outcome.UNKNOWN_ENDING)


CHAT = Connector("chat", ChatSettings, ChatSystem)
