"""A request as the server got it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_SCHEMA_MARK = "JSON schema: "


@dataclass(frozen=True)
class Received:
    """One request; ``number`` counts the calls to models from 1 in the order they came."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float

    def prepare(self) -> None:
        """Read what an answer is made of, so that answering takes no time later."""
        _ = self.schema, self.digest

    @cached_property
    def text(self) -> str:
        """All message texts in one."""
        return "\n".join(str(message.get("content", "")) for message in self.body.get("messages", []))

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema asked for, as response format or at the end of the prompt."""
        wanted = self.body.get("response_format", {}).get("json_schema", {}).get("schema")
        if self.rung == "tool":
            wanted = self.body["tools"][0]["function"]["parameters"]
        if wanted is None and _SCHEMA_MARK in self.text:
            wanted = json.loads(self.text.rpartition(_SCHEMA_MARK)[2])
        return wanted

    @property
    def rung(self) -> str:
        """How the verdict is asked for: ``json_schema``, ``tool``, ``json_object`` or ``text``."""
        if self.body.get("tools"):
            return "tool"
        return str(self.body.get("response_format", {}).get("type", "text"))

    @property
    def is_preflight(self) -> bool:
        """Whether this is one of the small calls before a run."""
        return "## connection_test" in self.text

    @property
    def block(self) -> dict[str, Any]:
        """The data blocks of the prompt by name."""
        found = re.finditer(r"^BEGIN (\w+) (\w+)\n(.*?)\nEND \1 \2$", self.text, re.MULTILINE | re.DOTALL)
        return {match[1]: json.loads(match[3]) for match in found}

    @cached_property
    def digest(self) -> bytes:
        """Hash of model and messages: the same request has the same one."""
        essential = [self.body.get("model"), self.body.get("messages"), self.body.get("input")]
        return hashlib.sha256(json.dumps(essential, sort_keys=True).encode()).digest()
