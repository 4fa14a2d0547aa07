"""The OpenAI client against real sockets: one request per call, and every fault is a reply."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from evaluation.core.errors import DomainError
from evaluation.core.samples import Status
from evaluation.judging.calls import JudgeReply
from evaluation.judging.providers.openai import OpenAIJudge
from evaluation.network.outcomes import Outcome, status_outcome
from evaluation.network.transport import Deadlines, GuardedTransport, HttpResponse, TransportFault
from tests.evaluation.judging.samples import ALL, EN, call, parse_scores_reply, read_reply
from tests.judge_server import JudgeServer, actions
from tests.judge_server.certificate import self_signed
from tests.judge_server.received import ReceivedRequest

QUICK = Deadlines(connect=1.0, read=0.3, total=0.6)
# For handshakes: a busy machine may delay them for seconds. No test waits this long.
PATIENT = Deadlines(connect=60.0, read=60.0, total=60.0)
KEY = "sk-secret-0123456789"


def call_judge(server: JudgeServer, *scripted: actions.Action, times: int = 1, **options: Any) -> JudgeReply:
    """The reply to the last of ``times`` calls over one connection pool."""

    async def call_repeatedly() -> JudgeReply:
        async with judge(server, **options) as client:
            for _ in range(times - 1):
                await client.call(call())
            return await client.call(call())

    server.enqueue(*scripted)
    return asyncio.run(call_repeatedly())


def judge(server: JudgeServer, **options: Any) -> OpenAIJudge:
    return OpenAIJudge(
        **{"base_url": server.base_url, "key": KEY, "allowed_origins": [server.origin], "deadlines": QUICK, **options}
    )


def test_successful_call_is_one_request_with_parsed_scores(judge_server: JudgeServer) -> None:
    reply = call_judge(judge_server, actions.verdicts(correctness=4, faithfulness=5, completeness=3))
    assert (reply.outcome, reply.http_status, reply.model_returned) == (Outcome.OK, 200, "judge-1")
    assert (reply.tokens_in, reply.tokens_out) == (900, 60)
    assert {n: r.value for n, r in read_reply(reply, EN, ALL).items()} == {
        "correctness": 4.0,
        "faithfulness": 5.0,
        "completeness": 3.0,
    }
    assert judge_server.calls == 1
    assert 0 < reply.elapsed_seconds < 1


def test_environment_variables_do_not_change_headers_or_address(
    judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "from-the-environment")
    custom = "X-Leak: from-the-environment\nAuthorization: from-the-environment\nContent-Encoding: gzip"
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", custom)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert call_judge(judge_server).outcome is Outcome.OK
    assert call_judge(judge_server, key="").outcome is Outcome.OK
    with_key, without_key = (request.headers for request in judge_server.requests)
    assert with_key["Authorization"] == f"Bearer {KEY}"
    assert "Authorization" not in without_key
    assert set(without_key) == {"Host", "Accept", "Accept-Encoding", "Content-Type", "Content-Length", "User-Agent"}
    assert "from-the-environment" not in str([with_key, without_key])


def test_azure_calls_use_the_deployment_path_and_api_key_header(judge_server: JudgeServer) -> None:
    received: list[tuple[str, str | None, str | None]] = []

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        received.append((http.raw_path, http.headers.get("api-key"), http.headers.get("Authorization")))
        return await actions.valid_reply()(request, http)

    async def with_key(key: str, model: str) -> Outcome:
        judge_server.enqueue(act)
        async with judge(judge_server, base_url=judge_server.origin, azure_api_version="2024-10-21", key=key) as client:
            return (await client.call(replace(call(), model=model))).outcome

    assert asyncio.run(with_key(KEY, "mini")) is Outcome.OK
    assert asyncio.run(with_key("", "a/b?c")) is Outcome.OK
    assert received == [
        ("/openai/deployments/mini/chat/completions?api-version=2024-10-21", KEY, None),
        ("/openai/deployments/a%2Fb%3Fc/chat/completions?api-version=2024-10-21", None, None),
    ]


def test_cookies_of_an_endpoint_are_not_sent_back(judge_server: JudgeServer) -> None:
    raw = b"HTTP/1.1 429 Slow\r\nSet-Cookie: a=b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    assert call_judge(judge_server, actions.raw(raw), times=2).outcome is Outcome.OK
    assert "Cookie" not in judge_server.requests[1].headers


@pytest.mark.parametrize("code", [200, 202, 307, 400, 418, 500, 600, 999])
@pytest.mark.parametrize("charset", ["utf-16", "hex", "idna", "undefined", "nonsense", "\xff"])
@pytest.mark.parametrize(
    "body", [b"\xff\x00{", b'{"error": [[]]}', b'{"error": {"code": {}, "message": 1}}', b"[" * 9_000]
)
def test_malformed_responses_become_replies(judge_server: JudgeServer, code: int, charset: str, body: bytes) -> None:
    head = f"HTTP/1.1 {code} So\r\nContent-Type: application/json; charset={charset}\r\nLocation: :\r\n"
    repeated_headers = "Content-Encoding: identity\r\nContent-Encoding: gzip\r\nSet-Cookie: a\r\n"
    length = f"Content-Length: {len(body)}\r\n\r\n"
    reply = call_judge(judge_server, actions.raw((head + repeated_headers + length).encode("latin-1") + body))
    expected = {Outcome.WRONG_CONTENT, Outcome.SERVER_ERROR} if code == 200 else {status_outcome(code)}
    assert reply.outcome in expected
    assert judge_server.calls == 1


def test_request_and_response_bodies_are_transferred_unchanged(judge_server: JudgeServer) -> None:
    async def post() -> HttpResponse:
        url, origins = judge_server.base_url, [judge_server.origin]
        async with aclosing(GuardedTransport(url, allowed_origins=origins, max_bytes=1_000)) as transport:
            return await transport.llm(url).post("/chat/completions", body)

    body = '{ "model":"m",  "messages":[] , "x": "\\u00e9é" }'.encode()
    bodies: list[bytes] = []

    async def act(_: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        bodies.append(await http.read())
        return web.Response(body=b"\xff\r\n\x00 ", content_type="text/plain")

    judge_server.enqueue(act)
    assert asyncio.run(post()).body == b"\xff\r\n\x00 "
    assert bodies == [body]


def test_transport_refuses_another_origin(judge_server: JudgeServer) -> None:
    other_origin = judge_server.origin.replace("127.0.0.1", "127.0.0.2")

    async def post() -> None:
        origins = [judge_server.origin, other_origin]
        async with aclosing(GuardedTransport(judge_server.base_url, allowed_origins=origins, max_bytes=9)) as transport:
            await transport.open("POST", f"{other_origin}/v1/chat/completions", b"{}")

    with pytest.raises(TransportFault, match="not the origin") as error:
        asyncio.run(post())
    assert error.value.outcome is Outcome.BLOCKED
    assert judge_server.calls == 0


@pytest.mark.slow
def test_openai_package_is_not_imported_before_a_client_is_opened() -> None:
    """The import takes most of a second, so commands, pages and checks without calls skip it."""
    program = (
        "import os, sys, django; os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'config.settings'); django.setup();"
        "from django.core.management import call_command; call_command('check');"
        "from evaluation.judging.providers.openai import OpenAIJudge; from evaluation.runs import execution;"
        "judge = OpenAIJudge(base_url='http://127.0.0.1:9/v1', allowed_origins=['http://127.0.0.1:9']);"
        "print([name for name in ('openai', 'httpx2') if name in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == "[]"


def in_a_minute() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [("1", 1, 1), ("300", 300, 300), (in_a_minute, 50, 60), ("soon", None, None), (None, None, None)],
)
def test_rate_limit_reports_retry_after_of_the_server(
    judge_server: JudgeServer, header: str | Callable[[], str] | None, low: float | None, high: float | None
) -> None:
    reply = call_judge(judge_server, actions.status(429, retry_after=header() if callable(header) else header))
    assert reply.outcome is Outcome.RATE_LIMITED
    assert judge_server.calls == 1
    if low is None or high is None:
        assert reply.retry_after is None
    else:
        assert reply.retry_after is not None
        assert low <= reply.retry_after <= high


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (actions.hang(), Outcome.TIMEOUT),
        (actions.drip(), Outcome.TIMEOUT),
        (actions.html(), Outcome.WRONG_CONTENT),
        (actions.html(502), Outcome.SERVER_ERROR),
        (actions.disconnect(), Outcome.CONNECTION),
        (actions.raw(b"SSH-2.0-OpenSSH_9.2\r\n"), Outcome.CONNECTION),
        (actions.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), Outcome.CONNECTION),
        (actions.raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000), Outcome.CONNECTION),
        (
            actions.raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"),
            Outcome.WRONG_CONTENT,
        ),
    ],
)
def test_misbehaving_server_yields_a_timely_reply_with_its_outcome(
    judge_server: JudgeServer, action: actions.Action, outcome: Outcome
) -> None:
    reply = call_judge(judge_server, action)
    assert reply.outcome is outcome
    assert judge_server.calls == 1
    assert reply.elapsed_seconds < 1.5
    assert {r.status for r in read_reply(reply, EN, ALL).values()} == {Status.FAILED}


def test_timeout_is_described_in_the_detail(judge_server: JudgeServer) -> None:
    assert call_judge(judge_server, actions.hang()).detail == "no answer in time"


def test_an_address_may_end_with_a_slash(judge_server: JudgeServer) -> None:
    assert call_judge(judge_server, base_url=f"{judge_server.base_url}/").outcome is Outcome.OK
    assert (
        judge_server.requests[0].path == f"{judge_server.base_url.removeprefix(judge_server.origin)}/chat/completions"
    )


def test_closed_client_can_be_closed_again_and_reused(judge_server: JudgeServer) -> None:
    async def call_twice() -> Outcome:
        client = judge(judge_server)
        for _ in range(2):
            async with client:
                reply = await client.call(call())
        async with client:
            pass
        return reply.outcome

    assert asyncio.run(call_twice()) is Outcome.OK


def test_default_deadline_of_a_call_is_two_minutes() -> None:
    assert Deadlines() == Deadlines(connect=5.0, read=60.0, total=120.0)


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("code", [200, 500])
def test_body_of_50_megabytes_is_dropped_at_the_cap(
    judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch, announced: bool, code: int
) -> None:
    monkeypatch.setattr(OpenAIJudge, "most_bytes", 1_000_000)
    reply = call_judge(judge_server, actions.huge(50, announced=announced, code=code))
    assert reply.outcome is Outcome.TOO_LARGE
    assert reply.raw == ""


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirect_is_refused_without_a_second_request(judge_server: JudgeServer, code: int) -> None:
    with JudgeServer() as other_server:
        reply = call_judge(
            judge_server,
            actions.redirect(f"{other_server.base_url}/chat/completions", code),
            allowed_origins=[judge_server.origin, other_server.origin],
        )
        assert reply.outcome is Outcome.REDIRECT
        assert (judge_server.calls, other_server.calls) == (1, 0)


@pytest.mark.parametrize(
    ("code", "outcome"), [(401, Outcome.UNAUTHORISED), (403, Outcome.FORBIDDEN), (404, Outcome.NOT_FOUND)]
)
def test_refused_key_and_missing_model_have_distinct_outcomes(
    judge_server: JudgeServer, code: int, outcome: Outcome
) -> None:
    assert call_judge(judge_server, actions.status(code)).outcome is outcome
    assert judge_server.calls == 1


def test_unsupported_schema_is_a_bad_request_with_the_server_text(judge_server: JudgeServer) -> None:
    reply = call_judge(judge_server, actions.status(400, error_code="unsupported_schema"))
    assert reply.outcome is Outcome.BAD_REQUEST
    assert "unsupported_schema" in reply.raw


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": -5, "completion_tokens": 10**12}])
def test_invalid_usage_is_unknown_and_scores_remain(judge_server: JudgeServer, usage: Any) -> None:
    reply = call_judge(judge_server, actions.valid_reply(usage=usage))
    assert reply.outcome is Outcome.OK
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached, reply.tokens_reasoning) == (None,) * 4
    assert all(r.status is Status.SCORED for r in read_reply(reply, EN, ALL).values())


def test_returned_model_is_reported_as_the_server_names_it(judge_server: JudgeServer) -> None:
    assert call_judge(judge_server, actions.valid_reply(model="judge-1-cheap")).model_returned == "judge-1-cheap"


def test_self_signed_certificate_is_refused_before_any_request() -> None:
    with JudgeServer(tls=self_signed()) as server:
        assert call_judge(server, deadlines=PATIENT).outcome is Outcome.TLS
        assert server.calls == 0


def test_plain_http_server_behind_an_https_address_is_refused(judge_server: JudgeServer) -> None:
    origin = judge_server.origin.replace("http:", "https:")
    reply = call_judge(judge_server, base_url=f"{origin}/v1", allowed_origins=[origin], deadlines=PATIENT)
    assert reply.outcome is Outcome.TLS


@pytest.fixture
def resolved_names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Host addresses set by the test; other ``.example`` names do not resolve."""
    addresses: dict[str, str] = {}
    original_getaddrinfo = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        if host in addresses:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (addresses[host], port))]
        if host.endswith(".example"):
            raise socket.gaierror(socket.EAI_NONAME, "unknown name")
        return original_getaddrinfo(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return addresses


def options_for_host(server: JudgeServer, host: str, *other_origins: str) -> dict[str, Any]:
    origin = f"http://{host}:{server.port}"
    return {"base_url": f"{origin}/v1", "allowed_origins": [origin, *other_origins]}


def test_unresolvable_name_has_its_own_outcome(judge_server: JudgeServer, resolved_names: dict[str, str]) -> None:
    assert call_judge(judge_server, **options_for_host(judge_server, "gone.example")).outcome is Outcome.NAME_UNKNOWN


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254"])
def test_public_name_resolving_to_inner_address_is_refused_at_connect(
    judge_server: JudgeServer, resolved_names: dict[str, str], address: str
) -> None:
    resolved_names["llm.example"] = address
    reply = call_judge(judge_server, **options_for_host(judge_server, "llm.example"))
    assert reply.outcome is Outcome.BLOCKED
    assert judge_server.calls == 0


def test_name_rebound_between_connections_is_refused_at_the_second(
    judge_server: JudgeServer, resolved_names: dict[str, str]
) -> None:
    options = options_for_host(judge_server, "llm.example", "127.0.0.1")
    resolved_names["llm.example"] = "127.0.0.1"
    assert call_judge(judge_server, **options).outcome is Outcome.OK
    resolved_names["llm.example"] = "127.0.0.2"
    assert call_judge(judge_server, **options).outcome is Outcome.BLOCKED
    assert judge_server.calls == 1


def test_refused_connection_has_its_own_outcome() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        origin = f"http://127.0.0.1:{unused.getsockname()[1]}"

        async def call_unused_port() -> JudgeReply:
            async with OpenAIJudge(base_url=f"{origin}/v1", allowed_origins=[origin]) as client:
                return await client.call(call())

        assert asyncio.run(call_unused_port()).outcome is Outcome.UNREACHED


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/v1", "http://[::1]:8000/v1", "http://2130706433/v1", "http://me@127.0.0.1/v1"]
)
def test_client_is_not_created_for_a_disallowed_address(url: str) -> None:
    with pytest.raises(DomainError):
        OpenAIJudge(base_url=url, allowed_origins=["http://127.0.0.1:8000", "http://169.254.169.254"])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("prose", "parse"),
        ("two_objects", "parse"),
        ("truncated", "truncated"),
        ("refused", "refused"),
        ("filtered", "filtered"),
    ],
)
def test_reply_without_a_verdict_fails_with_its_reason_and_text(
    judge_server: JudgeServer, fault: str, reason: str
) -> None:
    reply = call_judge(judge_server, actions.FAULTS[fault])
    results = read_reply(reply, EN, ALL)
    assert {(r.status, r.reason) for r in results.values()} == {(Status.FAILED, reason)}
    assert parse_scores_reply(reply).outcome == Outcome(reason)
    assert reply.raw or fault == "filtered"


@pytest.mark.parametrize("fault", sorted(actions.FAULTS))
def test_key_never_appears_in_reply_log_or_repr(
    judge_server: JudgeServer, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    reply = call_judge(judge_server, actions.FAULTS[fault])
    assert KEY not in repr(reply) + repr(judge(judge_server)) + caplog.text


def test_cancelled_call_ends_at_once_and_closes_its_connection(judge_server: JudgeServer) -> None:
    async def cancel_call() -> float:
        async with judge(judge_server, deadlines=Deadlines()) as client:
            task = asyncio.create_task(client.call(call()))
            while not judge_server.in_flight:  # the server lives in another thread
                assert not task.done(), task
                await asyncio.sleep(0.001)
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return time.monotonic() - started

    judge_server.enqueue(actions.hang())
    assert asyncio.run(cancel_call()) < 1
    deadline = time.monotonic() + 2
    while judge_server.in_flight and time.monotonic() < deadline:
        time.sleep(0.01)
    assert judge_server.in_flight == 0


def test_one_client_runs_calls_concurrently(judge_server: JudgeServer) -> None:
    judge_server.latency = 0.2

    async def call_concurrently() -> list[JudgeReply]:
        async with judge(judge_server, deadlines=Deadlines()) as client:
            return await asyncio.gather(*(client.call(call()) for _ in range(16)))

    replies = asyncio.run(call_concurrently())
    assert {reply.outcome for reply in replies} == {Outcome.OK}
    assert (judge_server.calls, judge_server.peak) == (16, 16)
