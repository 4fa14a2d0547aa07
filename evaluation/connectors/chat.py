"""Chat model behind an OpenAI-compatible endpoint, without retrieval: a baseline for systems."""

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
from evaluation.connectors.protocol import (
    AskFailed,
    Connector,
    OperatorPolicy,
    Settings,
    SystemAnswer,
    SystemCall,
    chat_turns,
)
from evaluation.network.completions import (
    FinishReason,
    classify_finish_reason,
    content_text,
    finish_outcome,
    read_server_error,
    read_usage,
    refusal_text,
)
from evaluation.network.outcomes import Outcome, replace_unstorable
from evaluation.network.transport import Exchange

_RESERVED_PARAMETERS = frozenset({"model", "messages", "stream", "stream_options"})
_ANSWER_PATH = {"answer": "choices[0].message.content"}
_USAGE_PATHS = {"tokens_in": "usage.prompt_tokens", "tokens_out": "usage.completion_tokens", "model": "model"}
_UNFINISHED_REASONS = {
    FinishReason.LENGTH: "truncated",
    FinishReason.FILTERED: "filtered",
    FinishReason.REFUSED: "model_refused",
    FinishReason.ERROR: "server_error",
}
_MESSAGE = "choices[0].message || choices[0].delta"


def checked_base_url(address: str) -> str:
    """Base URL of an endpoint, without trailing slash.

    :raises PydanticCustomError: ``address_invalid``."""
    try:
        HttpSettings(address=address, body="{question}")
        valid = not re.search(r"[?#{}]", address)
    except ValidationError:
        valid = False
    if not valid:
        raise PydanticCustomError("address_invalid", "not an http(s) address in ASCII without user name")
    return address.rstrip("/")


class ChatSettings(Settings):
    """Model and request settings."""

    base_url: str = Field(max_length=300, description="https://host/v1. Questions go to its chat/completions.")
    model: str = Field(min_length=1, max_length=200, description="Name of the model at the endpoint.")
    key_variable: str = Field(default="", max_length=100, description="Environment variable of the key, SYSTEM_….")
    system_prompt: str = Field(default="", max_length=20_000, description="System prompt.")
    parameters: dict[str, Any] = Field(default_factory=dict, description="Additional fields of the request.")
    stream: bool = Field(default=False, description="Stream the reply, which also times the first token.")

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, address: str) -> str:
        return checked_base_url(address)

    @field_validator("key_variable")
    @classmethod
    def _check_variable(cls, name: str) -> str:
        if name and not VARIABLE.fullmatch(name):
            raise PydanticCustomError("variable_refused", "{name}: variable names begin with SYSTEM_", {"name": name})
        return name

    @field_validator("parameters")
    @classmethod
    def _check_reserved(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        if reserved := sorted(_RESERVED_PARAMETERS & parameters.keys()):
            raise PydanticCustomError("parameter_refused", "{name} is set elsewhere", {"name": reserved[0]})
        return parameters

    @property
    def as_http(self) -> HttpSettings:
        """Equivalent settings of an HTTP system."""
        key = {"Authorization": f"Bearer ${{{self.key_variable}}}"} if self.key_variable else {}
        answer = {"answer": "choices[0].delta.content"} if self.stream else _ANSWER_PATH
        return HttpSettings(
            timeout_seconds=self.timeout_seconds,
            address=f"{self.base_url}/chat/completions",
            headers=key,
            body="{question}",
            stream=self.stream,
            delta="choices[0].delta.content",
            end="[DONE]" if self.stream else "",
            reply=ReplyMapping(contexts="", **answer, **_USAGE_PATHS),
        )


class ChatSystem(HttpSystem):
    """Client of a chat model."""

    def __init__(self, settings: ChatSettings, policy: OperatorPolicy) -> None:
        super().__init__(settings.as_http, policy)
        self._chat = settings

    def body(self, call: SystemCall) -> Mapping[str, Any]:
        system_messages = [{"role": "system", "content": self._chat.system_prompt}] if self._chat.system_prompt else []
        user_message = {"role": "user", "content": call.question.text}
        body = {**self._chat.parameters, "model": self._chat.model}
        body["messages"] = [*system_messages, *chat_turns(call.question.history), user_message]
        return body | ({"stream": True, "stream_options": {"include_usage": True}} if self._chat.stream else {})

    async def send_request(self, call: SystemCall) -> Exchange:
        """Send the request with the client that judges use."""
        return await self._llm.stream("/chat/completions", json.dumps(self.body(call)).encode())

    def read_answer(self, find: Find, call: SystemCall) -> SystemAnswer:
        """Read the message. A truncated, filtered or refused message is a failure, as is an unknown finish reason.

        :raises AskFailed: ``truncated``, ``filtered``, ``model_refused``, ``unknown_ending``, the outcome of an error
        object in the reply, and the failures of the mapping."""
        _check_error(find)
        _check_ending(find)
        if refusal := refusal_text(find(_MESSAGE)):
            raise AskFailed("model_refused", detail=refusal, outcome=Outcome.REFUSED)
        usage = read_usage(find("usage"))

        def text(expression: str) -> Any:
            value = find(expression)
            is_part_list = expression == self._settings.reply.answer and isinstance(value, list)
            return content_text(value) if is_part_list else value

        return replace(super().read_answer(text, call), tokens_in=usage.tokens_in, tokens_out=usage.tokens_out)

    async def __aenter__(self) -> Self:
        self._llm = self._transport.llm(self._chat.base_url)
        return self


def _check_error(find: Find) -> None:
    names = ("object", "type", "code", "message")
    error_fields = {"error": find("error || choices[0].error"), **{name: find(name) for name in names}}
    if error := read_server_error(error_fields):
        outcome = error.outcome()
        message = " ".join(map(str, filter(None, [error.status, *error.codes[:1], error.message])))
        raise AskFailed(str(outcome), detail=message, outcome=outcome)


def _check_ending(find: Find) -> None:
    reason = find("choices[0].finish_reason")
    ending = classify_finish_reason(reason)
    if ending is FinishReason.COMPLETE:
        return
    if ending is FinishReason.TOOL_CALL:
        raise AskFailed("no_answer", detail="the model called a tool")
    if ending in _UNFINISHED_REASONS:
        raise AskFailed(_UNFINISHED_REASONS[ending], outcome=finish_outcome(ending))
    raise AskFailed("unknown_ending", detail=replace_unstorable(str(reason)), outcome=Outcome.UNKNOWN_ENDING)


CHAT = Connector("chat", ChatSettings, ChatSystem)
