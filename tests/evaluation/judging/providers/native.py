"""Calls and probes of providers with a wire format of their own, against the scripted server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.probing import ProbeResult, probe_judge
from evaluation.judging.providers.catalogue import provider_named
from evaluation.judging.providers.protocol import EndpointJudge
from evaluation.network.transport import Deadlines
from tests.evaluation.judging.samples import call
from tests.judge_server import JudgeServer, actions
from tests.judge_server.received import ReceivedRequest

KEY = "key-secret-0123456789"
PATIENT = Deadlines(connect=20, read=20, total=20)


def open_judge(provider: str, server: JudgeServer, **options: Any) -> EndpointJudge:
    defaults = {"base_url": f"{server.origin}/other", "key": KEY, "allowed_origins": [server.origin]}
    client = provider_named(provider).open(**{**defaults, "deadlines": PATIENT, **options})
    assert isinstance(client, EndpointJudge)
    return client


def send(
    provider: str, server: JudgeServer, request: JudgeCall | None = None, *scripted: actions.Action, **options: Any
) -> JudgeReply:
    """The reply to one call."""

    async def call_judge() -> JudgeReply:
        async with open_judge(provider, server, **options) as client:
            return await client.call(request or call())

    server.enqueue(*scripted)
    return asyncio.run(call_judge())


def sent(provider: str, server: JudgeServer, action: actions.Action, **changes: Any) -> ReceivedRequest:
    """The request that a call with these changes sends."""
    send(provider, server, replace(call(), **changes), action)
    return server.requests[-1]


def probe(provider: str, server: JudgeServer, preflight: actions.Action, **parameters: Any) -> ProbeResult:
    """The preflight of a judge at the server."""

    async def run_probe() -> ProbeResult:
        described = provider_named(provider)
        async with open_judge(provider, server) as client:
            return await probe_judge(
                client,
                "model-1",
                parameters,
                response_formats=described.response_formats,
                logprobs=described.logprobs,
            )

    server.preflight = preflight
    return asyncio.run(run_probe())
