"""Preview of one question to a system, outside of runs: the request, the reply and its mapping."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.connectors.protocol import AskFailed, SystemCall, SystemReply
from evaluation.models import SystemVersion
from evaluation.systems.services import client_of


@dataclass(frozen=True, slots=True)
class QuestionPreview:
    """The request (secrets replaced by their names), and the reply with its mapping."""

    request: Mapping[str, Any]
    reply: SystemReply

    @property
    def mapping(self) -> dict[str, Any] | None:
        """The answer's fields as read from the reply; ``None`` if the reply has no answer."""
        trace = self.reply.content
        if trace is None:
            return None
        contexts = trace.answer.contexts
        return {
            "answer": trace.answer.text,
            "contexts": None
            if contexts is None
            else [{"id": c.chunk_id, "score": c.score, "source": c.source, "text": c.text} for c in contexts],
            "retrieved_ids": None if trace.answer.retrieved_ids is None else list(trace.answer.retrieved_ids),
            "confidence": trace.confidence,
            "latency_seconds": trace.answer.latency_seconds,
            "first_token_seconds": trace.first_token_seconds,
            "tokens_in": trace.tokens_in,
            "tokens_out": trace.tokens_out,
            "model": trace.model,
            "metadata": dict(trace.metadata),
        }

    @property
    def as_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        reply = self.reply
        return {
            "request": dict(self.request),
            "reply": {
                "outcome": str(reply.outcome),
                "reason": reply.reason,
                "http_status": reply.http_status,
                "elapsed_seconds": reply.elapsed_seconds,
                "raw": reply.raw,
            },
            "mapping": self.mapping,
        }


def preview_question(version: SystemVersion, call: SystemCall) -> QuestionPreview:
    """Send one question. It counts towards no run and no limit of the system.

    :raises DomainError: ``not_asked``, or if the operator does not allow the settings."""
    client = client_of(version)

    async def send_question() -> SystemReply:
        async with client:
            return await client.call(call)

    try:
        request = client.describe(call)
    except AskFailed as error:
        request = {"error": str(error)}
    return QuestionPreview(request, asyncio.run(send_question()))
