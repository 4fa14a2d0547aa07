"""One question to a system, outside every run: what was sent, what came back, and what it was mapped to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.connectors.protocol import AskFailed, SystemCall, SystemReply
from evaluation.models import SystemVersion
from evaluation.systems.services import client_of


@dataclass(frozen=True, slots=True)
class Tried:
    """What was sent (secrets by their names), and the reply with its mapping."""

    request: Mapping[str, Any]
    reply: SystemReply

    @property
    def mapping(self) -> dict[str, Any] | None:
        """The parts of the answer; ``None`` where there is none."""
        told = self.reply.told
        if told is None:
            return None
        contexts = told.answer.contexts
        return {
            "answer": told.answer.text,
            "contexts": None
            if contexts is None
            else [{"id": c.chunk_id, "score": c.score, "source": c.source, "text": c.text} for c in contexts],
            "retrieved_ids": None if told.answer.retrieved_ids is None else list(told.answer.retrieved_ids),
            "confidence": told.confidence,
            "latency_seconds": told.answer.latency_seconds,
            "first_token_seconds": told.first_token_seconds,
            "tokens_in": told.tokens_in,
            "tokens_out": told.tokens_out,
            "model": told.model,
            "metadata": dict(told.metadata),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """Everything, for programs."""
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


def try_question(version: SystemVersion, call: SystemCall) -> Tried:
    """Ask once. It counts towards no run and no limit of the system.

    :raises Refused: ``not_asked``; where the operator does not allow what the settings ask for.
    """
    client = client_of(version)

    async def asked() -> SystemReply:
        async with client:
            return await client.call(call)

    try:
        request = client.describe(call)
    except AskFailed as error:
        request = {"error": str(error)}
    return Tried(request, asyncio.run(asked()))
