"""A request as received by the server."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.judge_server.formats import FORMATS
from tests.judge_server.formats.protocol import WireFormat

_SCHEMA_MARK = "JSON schema: "


def wire_format(path: str) -> WireFormat | None:
    """Format whose calls have the path; ``None`` for OpenAI's."""
    return next((wire for wire in FORMATS.values() if path.endswith(wire.suffix)), None)


def chat_completion(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The request as a chat completion: model, messages, schema and tool."""
    wire = wire_format(path)
    if wire is None:
        return body
    request = wire.read_request(path, body)
    chat = {"model": request.model, "messages": [{"content": text} for text in request.texts]}
    if request.schema is not None:
        chat["response_format"] = {"type": "json_schema", "json_schema": {"schema": request.schema}}
    if request.tools:
        tools = request.tools.items()
        chat["tools"] = [{"function": {"name": tool, "parameters": parameters}} for tool, parameters in tools]
    return chat


@dataclass(frozen=True)
class ReceivedRequest:
    """One request; ``number`` counts calls to models from 1 in order of arrival."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float

    def prepare(self) -> None:
        """Compute schema and digest in advance, so that answering takes no extra time."""
        _ = self.schema, self.digest

    @cached_property
    def chat(self) -> dict[str, Any]:
        """The request as a chat completion, whatever its provider's format."""
        return chat_completion(self.path, self.body)

    @cached_property
    def text(self) -> str:
        """All message texts joined."""
        return "\n".join(str(message.get("content", "")) for message in self.chat.get("messages", []))

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The requested JSON schema, from the response format, the tool or the end of the prompt."""
        schema_json = self.chat.get("response_format", {}).get("json_schema", {}).get("schema")
        if self.response_format == "tool":
            schema_json = self.chat["tools"][0]["function"]["parameters"]
        if schema_json is None and _SCHEMA_MARK in self.text:
            schema_json = json.loads(self.text.rpartition(_SCHEMA_MARK)[2])
        return schema_json

    @property
    def response_format(self) -> str:
        """The requested response format: ``json_schema``, ``tool``, ``json_object`` or ``text``."""
        if self.chat.get("tools"):
            return "tool"
        return str(self.chat.get("response_format", {}).get("type", "text"))

    @property
    def is_preflight(self) -> bool:
        """Whether the request is a preflight call."""
        return "## connection_test" in self.text

    @property
    def block(self) -> dict[str, Any]:
        """The data blocks of the prompt by name."""
        blocks = re.finditer(r"^BEGIN (\w+) (\w+)\n(.*?)\nEND \1 \2$", self.text, re.MULTILINE | re.DOTALL)
        return {match[1]: json.loads(match[3]) for match in blocks}

    @cached_property
    def digest(self) -> bytes:
        """Hash of model and messages; equal for equal requests."""
        essential = [self.chat.get("model"), self.chat.get("messages"), self.chat.get("input")]
        return hashlib.sha256(json.dumps(essential, sort_keys=True).encode()).digest()
