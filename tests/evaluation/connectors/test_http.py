"""The HTTP connector over real sockets: faults become replies with a reason, and each call sends one request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evaluation.connectors.catalogue import InvalidSettings, read_settings
from evaluation.connectors.http import HTTP
from evaluation.connectors.protocol import RETRIEVAL_ONLY, OperatorPolicy, SystemCall, SystemReply
from evaluation.core.errors import DomainError
from evaluation.core.samples import QuestionSpec
from evaluation.network.outcomes import Outcome
from examples.rag_service import RagService

CALL = SystemCall(QuestionSpec(id="q1", category="c", text="How long may a leave of absence be?"), k=3)
TOKENS = {"tokens_in": "usage.prompt_tokens", "tokens_out": "usage.completion_tokens", "model": "model"}


def ask(service: RagService, path: str = "/ask", call: SystemCall = CALL, **options: Any) -> SystemReply:
    settings = read_settings(HTTP, {"address": service.origin + path, "timeout_seconds": 0.6, **options})
    policy = OperatorPolicy(origins=[service.origin], variables={"SYSTEM_KEY": "a-secret"})

    async def send_call() -> SystemReply:
        async with HTTP.open(settings, policy) as client:
            return await client.call(call)

    return asyncio.run(send_call())


def test_reply_becomes_answer_with_passages_tokens_and_latency(service: RagService) -> None:
    reply = ask(service, reply=TOKENS)
    assert (reply.outcome, reply.reason, reply.http_status) == (Outcome.OK, "", 200)
    assert reply.content is not None
    answer = reply.content.answer
    assert answer.text
    assert answer.contexts is not None
    assert len(answer.contexts) == 3
    assert answer.contexts[0].chunk_id
    assert answer.contexts[0].score is not None
    assert answer.latency_seconds == pytest.approx(reply.elapsed_seconds)
    assert (reply.content.model, reply.tokens_in is not None) == ("toy-1", True)
    assert service.bodies == [{"question": CALL.question.text, "k": 3}]


def test_address_carries_the_escaped_question(service: RagService) -> None:
    call_with_symbols = SystemCall(QuestionSpec(id="q", category="c", text="a&k=1#b/ü 휴학"), k=2)
    reply = ask(service, "/ask?q={question}&k={k}", call_with_symbols, method="GET")
    assert reply.outcome is Outcome.OK
    assert list(service.asked) == ["a&k=1#b/ü 휴학"]
    assert reply.content is not None
    assert len(reply.content.answer.contexts or ()) == 2


def test_secret_is_sent_by_variable_name_and_never_described(service: RagService) -> None:
    headers = {"Authorization": "Bearer ${SYSTEM_KEY}"}
    ask(service, headers=headers)
    assert service.headers_seen[0]["Authorization"] == "Bearer a-secret"
    settings = read_settings(HTTP, {"address": service.origin, "headers": headers})
    client = HTTP.open(settings, OperatorPolicy([service.origin], {"SYSTEM_KEY": "a-secret"}))
    assert "a-secret" not in str(client.describe(CALL))
    with pytest.raises(DomainError, match="variable_missing"):
        HTTP.open(settings, OperatorPolicy([service.origin]))


@pytest.mark.parametrize(("path", "key"), [("/fault/unauthorised", "who are you?"), ("/fault/html", "Please sign in")])
@pytest.mark.parametrize("stream", [False, True])
def test_secret_repeated_by_a_system_is_not_stored(service: RagService, path: str, key: str, *, stream: bool) -> None:
    options = {"address": service.origin + path, "headers": {"Authorization": "${SYSTEM_KEY}"}, "stream": stream}
    policy = OperatorPolicy(origins=[service.origin], variables={"SYSTEM_KEY": key})

    async def send_call() -> SystemReply:
        async with HTTP.open(read_settings(HTTP, options), policy) as client:
            return await client.call(CALL)

    reply = asyncio.run(send_call())
    assert ("…" in reply.raw, key in reply.raw) == (True, False), reply


def test_earlier_turns_are_sent_as_messages(service: RagService) -> None:
    question = QuestionSpec(
        id="q", category="c", text="And then?", history=("How long?", "Two terms.", "system: brief")
    )
    ask(service, call=SystemCall(question), body={"question": "{question}", "turns": "{history}", "as": "{k} of {id}"})
    assert service.bodies[0]["turns"] == [
        {"role": "user", "content": "How long?"},
        {"role": "assistant", "content": "Two terms."},
        {"role": "system", "content": "brief"},
    ]
    assert service.bodies[0]["as"] == "5 of q"


def test_question_text_is_not_read_as_a_slot(service: RagService) -> None:
    ask(service, call=SystemCall(QuestionSpec(id="q", category="c", text="{k} ${SYSTEM_KEY}")))
    assert service.bodies[0]["question"] == "{k} ${SYSTEM_KEY}"


@pytest.mark.parametrize(
    ("fault", "outcome", "reason"),
    [
        ("hang", Outcome.TIMEOUT, "timeout"),
        ("drip", Outcome.TIMEOUT, "timeout"),
        ("error", Outcome.SERVER_ERROR, "server_error: HTTP 500"),
        ("unauthorised", Outcome.UNAUTHORISED, "unauthorised: HTTP 401"),
        ("missing", Outcome.NOT_FOUND, "not_found: HTTP 404"),
        ("text", Outcome.WRONG_CONTENT, "wrong_content: not valid JSON, content type text/plain"),
        ("html", Outcome.WRONG_CONTENT, "wrong_content: not valid JSON, content type text/html"),
        ("no_json", Outcome.WRONG_CONTENT, "wrong_content: not valid JSON, content type application/json"),
        ("huge", Outcome.TOO_LARGE, "too_large"),
        ("redirect", Outcome.REDIRECT, "redirect: HTTP 307"),
        ("disconnect", Outcome.WRONG_CONTENT, "wrong_content"),
        ("limit", Outcome.RATE_LIMITED, "rate_limited: HTTP 429"),
        ("no_answer", Outcome.WRONG_CONTENT, "no_answer: “answer” is missing"),
        ("empty", Outcome.WRONG_CONTENT, "empty: at “answer”"),
        ("number", Outcome.WRONG_CONTENT, "wrong_content: “answer” is not a text"),
    ],
)
def test_faulty_service_gives_a_reason_and_no_answer(
    service: RagService, fault: str, outcome: Outcome, reason: str
) -> None:
    reply = ask(service, f"/fault/{fault}")
    assert reply.outcome in {outcome, Outcome.CONNECTION} if fault == "disconnect" else reply.outcome is outcome
    assert reply.content is None
    assert reply.reason.startswith(reason) or fault == "disconnect"
    assert sum(service.asked.values()) == 1
    assert reply.elapsed_seconds < 1.5


def test_requested_wait_is_returned(service: RagService) -> None:
    assert ask(service, "/fault/limit").retry_after == 0.2


def test_an_error_in_the_reply_is_the_reason(service: RagService) -> None:
    reply = ask(service, "/fault/reported", reply={"error": "error"})
    assert reply.reason == "system_error: the index is being built"


def test_stream_is_read_with_the_time_of_its_first_token(service: RagService) -> None:
    reply = ask(service, "/stream", stream=True, end="[DONE]", reply=TOKENS)
    assert reply.content is not None
    plain_reply = ask(service)
    assert plain_reply.content is not None
    assert reply.content.answer.text.strip() == plain_reply.content.answer.text
    assert reply.content.answer.contexts == plain_reply.content.answer.contexts
    assert reply.content.first_token_seconds is not None
    assert 0 < reply.content.first_token_seconds <= (reply.content.answer.latency_seconds or 0)
    assert reply.content.metadata["first_token_seconds"] == pytest.approx(reply.content.first_token_seconds, abs=1e-4)
    assert reply.tokens_out is not None


def test_interrupted_stream_is_no_answer(service: RagService) -> None:
    reply = ask(service, "/fault/disconnect", stream=True)
    assert (reply.outcome, reply.content) == (Outcome.CONNECTION, None)
    unterminated = ask(service, "/stream", stream=True, end="[NEVER]")
    assert (unterminated.outcome, unterminated.reason) == (Outcome.CONNECTION, "connection: the stream ended early")


def test_retriever_needs_no_answer(service: RagService) -> None:
    retrieval = SystemCall(CALL.question, evaluation_type=RETRIEVAL_ONLY)
    reply = ask(service, call=retrieval, reply={"answer": ""})
    assert reply.content is not None
    assert reply.content.answer.text == ""
    assert reply.content.answer.contexts
    assert ask(service, "/fault/reported", call=retrieval).reason.startswith("no_passages")


@pytest.mark.parametrize(
    ("field", "code", "given"),
    [
        ("address", "address_invalid", {"address": "ftp://host/"}),
        ("address", "address_invalid", {"address": "https://me@host/"}),
        ("address", "address_invalid", {"address": "https://{id}.example/"}),
        ("address", "slot_unknown", {"address": "https://host/{quesion}"}),
        ("body", "slot_unknown", {"body": {"q": ["{question}", {"x": "{nothing}"}]}}),
        ("headers", "header_refused", {"headers": {"Host": "inner"}}),
        ("headers", "header_value", {"headers": {"X-A": "a\r\nX-B: b"}}),
        ("headers", "secret_written", {"headers": {"X-Api-Key": "abc"}}),
        ("headers", "variable_refused", {"headers": {"X-Api-Key": "${SECRET_KEY}"}}),
        ("reply.answer", "expression_invalid", {"reply": {"answer": "a.["}}),
        ("", "no_question", {"body": {"q": "always the same"}}),
        ("timeout_seconds", "greater_than_equal", {"timeout_seconds": 0}),
        ("adress", "extra_forbidden", {"adress": "x"}),
        ("", "not_storable", {"body": {"q": ["{question}", "\ud800"]}}),
        ("", "not_storable", {"body": {"q": ["{question}", float("nan")]}}),
    ],
)
def test_invalid_settings_are_refused_by_field(field: str, code: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings) as error:
        read_settings(HTTP, {"address": "https://host/ask", **given})
    assert [(problem.field, problem.code) for problem in error.value.problems] == [(field, code)]


@pytest.mark.parametrize("origins", [[], ["http://169.254.169.254"], ["http://127.0.0.1:1"]])
def test_only_listed_origins_are_called(service: RagService, origins: list[str]) -> None:
    settings = read_settings(HTTP, {"address": f"{service.origin}/ask"})
    with pytest.raises(DomainError, match="origin_not_allowed"):
        HTTP.open(settings, OperatorPolicy(origins=origins))
    assert not service.asked
