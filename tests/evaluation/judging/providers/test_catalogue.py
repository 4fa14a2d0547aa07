"""The catalogue of providers, and the behaviour shared by providers with endpoints."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from aiohttp import web
from django.core.exceptions import ValidationError

from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import Bilingual
from evaluation.judges.clients import client_of, provider_of
from evaluation.judging.calls import JudgeCall, JudgeReply, ResponseFormat
from evaluation.judging.probing import NO_LOGPROBS, NO_RESPONSE_FORMAT, ProbeResult, probe_judge
from evaluation.judging.providers import catalogue
from evaluation.judging.providers.baseline import BASELINE, BaselineJudge
from evaluation.judging.providers.openai import OPENAI, OpenAIJudge
from evaluation.judging.providers.protocol import EndpointJudge, Provider, chat_messages
from evaluation.models import Endpoint, JudgeVersion
from evaluation.network.outcomes import Outcome, status_outcome
from evaluation.network.transport import HttpResponse
from tests.evaluation.judging.samples import call
from tests.judge_server import JudgeServer
from tests.judge_server.received import ReceivedRequest

KEY = "sk-secret-0123456789"


class EchoJudge(EndpointJudge):
    """Judge with plain text replies; its key goes in a custom header, the model in the path."""

    @staticmethod
    def credentials(key: str) -> dict[str, object]:
        return {"headers": {"X-Echo-Key": key}}

    def path(self, request: JudgeCall) -> str:
        return f"/models/{request.model}:judge"

    def body(self, request: JudgeCall) -> bytes:
        return json.dumps({"messages": chat_messages(request)}).encode()

    def read(self, response: HttpResponse) -> JudgeReply:
        outcome = Outcome.OK if response.status == 200 else status_outcome(response.status)
        return JudgeReply(outcome, raw=response.body.decode(), http_status=response.status)


ECHO = Provider(
    "echo", Bilingual("Echo", "메아리"), EchoJudge, response_formats=(ResponseFormat.JSON_OBJECT, ResponseFormat.TEXT)
)


def test_catalogue_names_providers_and_lists_those_with_endpoints() -> None:
    assert all(catalogue.provider_named(name).name == name for name in catalogue.PROVIDERS)
    assert set(catalogue.PROVIDERS) - {provider.name for provider in catalogue.endpoint_providers()} == {"baseline"}
    with pytest.raises(UnknownName, match="opanai"):
        catalogue.provider_named("opanai")


def test_a_judge_is_opened_by_the_provider_of_its_endpoint(settings: object) -> None:
    settings.CONCORD_JUDGE_ORIGINS = ["https://llm.example"]  # type: ignore[attr-defined]
    endpoint = Endpoint(base_url="https://llm.example", azure_api_version="2024-10-21")
    judge = JudgeVersion(endpoint=endpoint, model="m")
    client = client_of(judge)
    assert isinstance(client, OpenAIJudge)
    assert client._transport.azure == "2024-10-21"
    assert isinstance(client_of(JudgeVersion(model="lexical")), BaselineJudge)
    endpoint.provider = "gone"
    with pytest.raises(UnknownName, match="gone"):
        provider_of(judge)


@pytest.mark.parametrize(
    ("status", "outcome"), [(200, "ok"), (401, "unauthorised"), (429, "rate_limited"), (503, "overloaded")]
)
def test_provider_defines_path_key_and_parsing(judge_server: JudgeServer, status: int, outcome: str) -> None:
    received: list[tuple[str, str | None, str | None]] = []

    async def act(_: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        received.append((http.path, http.headers.get("X-Echo-Key"), http.headers.get("Authorization")))
        return web.Response(text=f"key {KEY}", status=status, headers={"Retry-After": "7"})

    async def call_judge() -> JudgeReply:
        url = f"{judge_server.origin}/other"
        async with EchoJudge(base_url=url, key=KEY, allowed_origins=[judge_server.origin]) as client:
            return await client.call(replace(call(), model="m1"))

    judge_server.enqueue(act)
    result = asyncio.run(call_judge())
    assert received == [("/other/models/m1:judge", KEY, None)]
    assert (result.outcome, result.http_status) == (outcome, status)
    assert (result.raw, result.retry_after) == ((f"key {KEY}", None) if status == 200 else ("key …", 7.0))
    assert result.elapsed_seconds > 0


@pytest.mark.parametrize("response_format", list(ResponseFormat))
def test_schema_is_in_the_prompt_if_the_server_cannot_take_it(response_format: ResponseFormat) -> None:
    prompt = chat_messages(replace(call(), response_format=response_format))[-1]["content"]
    assert ("JSON schema: {" in prompt) == (response_format in {ResponseFormat.JSON_OBJECT, ResponseFormat.TEXT})
    assert ("VERDICT:" in prompt) == (response_format is ResponseFormat.TEXT)


class ScriptedClient:
    """Replies in the supported response formats only, and records each call."""

    def __init__(self, *supported: ResponseFormat) -> None:
        self.supported, self.calls = supported, list[tuple[ResponseFormat, bool]]()

    async def call(self, request: JudgeCall) -> JudgeReply:
        self.calls.append((request.response_format, "logprobs" in request.parameters))
        verdict = json.dumps({"connection_test": {"reason": "Right.", "score": 2}})
        raw = f"VERDICT: {verdict}" if request.response_format is ResponseFormat.TEXT else verdict
        return JudgeReply(Outcome.OK, raw=raw if request.response_format in self.supported else "none", http_status=200)

    async def __aenter__(self) -> ScriptedClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None


def run_probe(client: ScriptedClient, *, require_logprobs: bool = False) -> ProbeResult:
    return asyncio.run(
        probe_judge(
            client,
            "m",
            {},
            require_logprobs=require_logprobs,
            response_formats=ECHO.response_formats,
            logprobs=ECHO.logprobs,
        )
    )


def test_preflight_tries_only_formats_of_the_provider() -> None:
    all_formats, text_only, tool_only, with_logprobs = (
        ScriptedClient(*ResponseFormat),
        ScriptedClient(ResponseFormat.TEXT),
        ScriptedClient(ResponseFormat.TOOL),
        ScriptedClient(*ResponseFormat),
    )
    assert (run_probe(all_formats).response_format, all_formats.calls) == (
        ResponseFormat.JSON_OBJECT,
        [(ResponseFormat.JSON_OBJECT, False)],
    )
    result = run_probe(text_only)
    assert (result.response_format, result.logprobs) == (ResponseFormat.TEXT, False)
    assert text_only.calls == [(ResponseFormat.JSON_OBJECT, False), (ResponseFormat.TEXT, False)]
    assert (run_probe(tool_only).outcome, len(tool_only.calls)) == (NO_RESPONSE_FORMAT, 2)
    assert (
        run_probe(with_logprobs, require_logprobs=True).outcome,
        {requested_logprobs for _, requested_logprobs in with_logprobs.calls},
    ) == (NO_LOGPROBS, {False})


@pytest.mark.parametrize("field", ["embedding_model", "azure_api_version", "batches"])
def test_an_endpoint_has_no_setting_that_its_provider_lacks(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    monkeypatch.setattr(catalogue, "PROVIDERS", {"openai": OPENAI, "echo": ECHO})
    Endpoint(name="e", provider="echo").clean()
    Endpoint(name="e", provider="openai", **{field: "2024-10-21"}).clean()
    with pytest.raises(ValidationError) as error:
        Endpoint(name="e", provider="echo", **{field: "2024-10-21"}).clean()
    assert list(error.value.message_dict) == [field]


def test_choices_follow_the_catalogue_without_a_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "PROVIDERS", {"openai": OPENAI, "echo": ECHO, "baseline": BASELINE})
    choices = Endpoint._meta.get_field("provider").choices
    assert [name for name, _ in choices or ()] == ["openai", "echo"]
