"""The Bedrock client: signed requests of the Converse API, replies, errors, and credentials of the standard chain."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from evaluation.judging.calls import JudgeReply, ResponseFormat
from evaluation.judging.providers.bedrock import BEDROCK, BedrockJudge, read_converse, read_error, request_body
from evaluation.network.completions import FinishReason, classify_finish_reason
from evaluation.network.outcomes import Outcome, replace_unstorable
from tests.evaluation.judging.providers.native import KEY, probe, send, sent
from tests.evaluation.judging.samples import EN, call, read_reply
from tests.judge_server import JudgeServer, aws
from tests.judge_server.wire import native_reply, respond

PROFILE = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.fixture
def aws_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No credentials but those that a test sets."""
    aws.clear_environment(monkeypatch, tmp_path)
    return monkeypatch


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Credentials of the environment."""
    aws.set_credentials(monkeypatch, tmp_path)
    return monkeypatch


def send_signed(server: JudgeServer, model: str = PROFILE) -> JudgeReply:
    return send("bedrock", server, replace(call(), model=model), aws.signed_only(), key="")


@pytest.mark.parametrize(
    "model", [PROFILE, "anthropic.claude-3-haiku-20240307-v1:0", "us.amazon.nova-pro-v1:0", "한국/모델 1"]
)
@pytest.mark.usefixtures("keys")
def test_request_is_signed_as_it_arrives(judge_server: JudgeServer, model: str) -> None:
    reply = send_signed(judge_server, model)
    assert (reply.outcome, reply.raw[:1]) == (Outcome.OK, "{"), reply
    assert judge_server.calls == 1
    assert set(read_reply(reply)) == {"correctness", "faithfulness", "completeness"}


@pytest.mark.usefixtures("keys")
def test_model_id_is_sent_as_aws_encodes_it(judge_server: JudgeServer) -> None:
    paths: list[str] = []

    async def act(request: Any, http: Any) -> Any:
        paths.append(http.raw_path)
        return await aws.signed_only()(request, http)

    send("bedrock", judge_server, replace(call(), model="a.claude-v1:0"), act, key="")
    send("bedrock", judge_server, replace(call(), model="arn:aws:x/y"), act, key="")
    assert paths == ["/other/model/a.claude-v1%3A0/converse", "/other/model/arn%3Aaws%3Ax%2Fy/converse"]


def test_session_token_is_signed(keys: pytest.MonkeyPatch, judge_server: JudgeServer) -> None:
    keys.setenv("AWS_SESSION_TOKEN", aws.SESSION_TOKEN)
    assert send_signed(judge_server).outcome is Outcome.OK
    assert "x-amz-security-token" in judge_server.requests[0].headers["Authorization"]


def test_wrong_secret_is_refused_and_appears_nowhere(
    keys: pytest.MonkeyPatch, judge_server: JudgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    keys.setenv("AWS_SECRET_ACCESS_KEY", "another-secret-0123456789")
    keys.setenv("AWS_SESSION_TOKEN", aws.SESSION_TOKEN)
    reply = send_signed(judge_server)
    assert (reply.outcome, reply.detail) == (Outcome.UNAUTHORISED, "HTTP 403 InvalidSignatureException")
    # The error repeats the signed headers.
    assert "x-amz-security-token:…" in reply.raw
    assert not any(secret in repr(reply) + caplog.text for secret in (aws.SESSION_TOKEN, "another-secret"))


def test_expired_session_needs_action(keys: pytest.MonkeyPatch, judge_server: JudgeServer) -> None:
    keys.setenv("AWS_SESSION_TOKEN", aws.EXPIRED_TOKEN)
    reply = send_signed(judge_server)
    assert (reply.outcome, reply.detail) == (Outcome.UNAUTHORISED, "HTTP 403 ExpiredTokenException")


@pytest.mark.parametrize("minutes", [-10, 10])
def test_clock_skew_needs_action_and_says_so(keys: pytest.MonkeyPatch, judge_server: JudgeServer, minutes: int) -> None:
    wrong_time = datetime.now(UTC) + timedelta(minutes=minutes)
    keys.setattr("botocore.auth.get_current_datetime", lambda: wrong_time)
    reply = send_signed(judge_server)
    assert reply.outcome is Outcome.UNAUTHORISED
    assert "Signature expired" in reply.raw


def test_credentials_of_a_profile(
    aws_environment: pytest.MonkeyPatch, tmp_path: Path, judge_server: JudgeServer
) -> None:
    lines = ["[judges]", f"aws_access_key_id={aws.ACCESS_KEY}", f"aws_secret_access_key={aws.SECRET_KEY}"]
    (tmp_path / "credentials").write_text("\n".join(lines))
    (tmp_path / "config").write_text(f"[profile judges]\nregion={aws.REGION}\n")
    aws_environment.delenv("AWS_DEFAULT_REGION")
    aws_environment.setenv("AWS_PROFILE", "judges")
    assert send_signed(judge_server).outcome is Outcome.OK


def test_short_lived_credentials_are_renewed(
    aws_environment: pytest.MonkeyPatch, tmp_path: Path, judge_server: JudgeServer
) -> None:
    script = tmp_path / "credentials.py"
    expiry = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    credentials = {"Version": 1, "AccessKeyId": aws.ACCESS_KEY, "SecretAccessKey": aws.SECRET_KEY, "Expiration": expiry}
    script.write_text(f"print({json.dumps(json.dumps(credentials))})")
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {sys.executable} {script}\n")
    assert send_signed(judge_server).outcome is Outcome.OK
    judge = BedrockJudge(base_url=judge_server.origin, allowed_origins=[judge_server.origin])
    script.write_text("raise SystemExit('the helper is gone')")
    assert judge._signer is not None
    judge._signer._credentials._expiry_time = datetime.now(UTC)

    async def call_judge() -> JudgeReply:
        async with judge as client:
            return await client.call(call())

    reply = asyncio.run(call_judge())
    assert (reply.outcome, judge_server.calls) == (Outcome.UNAUTHORISED, 1)
    assert reply.detail.startswith("AWS credentials: ")


@pytest.mark.parametrize(
    "lines",
    [
        "credential_process = {folder}/missing",
        "credential_process = echo not JSON",
        "credential_process = echo []",
        """credential_process = echo '{{"Version": 1, "AccessKeyId": null, "SecretAccessKey": null}}'""",
        "role_arn = arn:aws:iam::1:role/judge\nweb_identity_token_file = {folder}/missing",
    ],
)
@pytest.mark.usefixtures("aws_environment")
def test_faulty_source_of_credentials_has_a_reason(judge_server: JudgeServer, tmp_path: Path, lines: str) -> None:
    (tmp_path / "config").write_text(f"[default]\n{lines.format(folder=tmp_path)}\n")
    try:
        reason = str(send_signed(judge_server).outcome)
    except DomainError as error:
        reason = error.code
    assert reason in {"aws_credentials_missing", "unauthorised"}
    assert judge_server.calls == 0


@pytest.mark.usefixtures("keys")
def test_renewal_of_credentials_has_a_deadline(monkeypatch: pytest.MonkeyPatch, judge_server: JudgeServer) -> None:
    monkeypatch.setattr("evaluation.network.aws._RENEWAL_SECONDS", 0.05)
    monkeypatch.setattr("botocore.credentials.Credentials.get_frozen_credentials", lambda _: time.sleep(0.5))
    reply = send_signed(judge_server)
    assert (reply.outcome, judge_server.calls) == (Outcome.CONNECTION, 0)


def refusal(base_url: str = "https://bedrock.example") -> str:
    with pytest.raises(DomainError) as error:
        BedrockJudge(base_url=base_url, allowed_origins=[base_url])
    return error.value.code


def test_missing_credentials_region_and_extra_are_refused_before_any_call(aws_environment: pytest.MonkeyPatch) -> None:
    assert refusal() == "aws_credentials_missing"
    aws_environment.setenv("AWS_ACCESS_KEY_ID", aws.ACCESS_KEY)
    # Half a pair.
    assert refusal() == "aws_credentials_missing"
    aws_environment.setenv("AWS_SECRET_ACCESS_KEY", aws.SECRET_KEY)
    aws_environment.delenv("AWS_DEFAULT_REGION")
    assert refusal() == "aws_region_missing"
    aws_environment.setenv("AWS_PROFILE", "gone")
    assert refusal() == "aws_credentials_missing"
    aws_environment.setitem(sys.modules, "botocore.session", None)
    assert refusal() == "bedrock_not_installed"


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("bedrock-runtime.us-east-1.amazonaws.com", "us-east-1"),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("vpce-0a1b.bedrock-runtime.ap-northeast-2.vpce.amazonaws.com", "ap-northeast-2"),
        ("bedrock-runtime.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("gateway.example", aws.REGION),
    ],
)
@pytest.mark.usefixtures("keys")
def test_region_is_that_of_the_host(host: str, region: str) -> None:
    judge = BedrockJudge(base_url=f"https://{host}", allowed_origins=[f"https://{host}"])
    assert judge._signer is not None
    assert judge._signer._region == region


def test_api_key_is_a_bearer_token_and_needs_no_extra(
    monkeypatch: pytest.MonkeyPatch, judge_server: JudgeServer
) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", aws.ACCESS_KEY)
    reply = send("bedrock", judge_server, None, native_reply())
    headers = judge_server.requests[0].headers
    assert (reply.outcome, headers["Authorization"]) == (Outcome.OK, f"Bearer {KEY}")
    assert not any(name.lower().startswith("x-amz") for name in headers)


def test_body_in_each_format(judge_server: JudgeServer) -> None:
    parameters = {"max_tokens": 50, "stop": ["END"], "additionalModelRequestFields": {"top_k": 5}}
    strict = sent("bedrock", judge_server, native_reply(), parameters=parameters).body
    assert strict["inferenceConfig"] == {"maxTokens": 50, "stopSequences": ["END"]}
    assert strict["additionalModelRequestFields"] == {"top_k": 5}
    assert strict["system"][0]["text"].startswith(EN.instruction.split()[0])
    assert [turn["role"] for turn in strict["messages"]] == ["user"]
    schema = json.loads(strict["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])
    tool = sent("bedrock", judge_server, native_reply(), response_format=ResponseFormat.TOOL).body
    assert tool["toolConfig"]["toolChoice"] == {"tool": {"name": "answer_quality"}}
    assert tool["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"] == schema
    text = sent("bedrock", judge_server, native_reply(), response_format=ResponseFormat.TEXT).body
    assert "VERDICT:" in text["messages"][0]["content"][0]["text"]
    assert not text.keys() & {"toolConfig", "outputConfig"}


def converse(*content: Any, stop_reason: str = "end_turn", **usage: Any) -> bytes:
    counts = {"inputTokens": 9, "outputTokens": 3, "totalTokens": 12, **usage}
    message = {"role": "assistant", "content": content}
    return json.dumps({"output": {"message": message}, "stopReason": stop_reason, "usage": counts}).encode()


@pytest.mark.parametrize(
    ("body", "outcome", "raw"),
    [
        (converse({"text": "{}"}), Outcome.OK, "{}"),
        (converse({"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "{}"}), Outcome.OK, "{}"),
        (converse({"text": "So:"}, {"toolUse": {"name": "n", "input": {"a": 1}}}), Outcome.OK, '{"a": 1}'),
        (converse({"text": "{"}, stop_reason="max_tokens"), Outcome.TRUNCATED, "{"),
        (converse(stop_reason="content_filtered"), Outcome.FILTERED, ""),
        (converse(stop_reason="guardrail_intervened"), Outcome.FILTERED, ""),
        (converse(stop_reason="malformed_tool_use"), Outcome.PARSE, ""),
        (converse(stop_reason="malformed_model_output"), Outcome.PARSE, ""),
        (converse(stop_reason="somehow"), Outcome.UNKNOWN_ENDING, ""),
    ],
)
def test_reply_is_text_or_tool_input(body: bytes, outcome: Outcome, raw: str) -> None:
    reply = read_converse(body)
    assert (reply.outcome, reply.raw, reply.model_returned) == (outcome, raw, "")


def test_cached_input_is_part_of_the_input() -> None:
    reply = read_converse(converse({"text": "{}"}, cacheReadInputTokens=90))
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached) == (99, 3, 90)
    assert read_converse(converse({"text": "{}"}, cacheWriteInputTokens=90)).tokens_in is None


@pytest.mark.parametrize(
    ("status", "name", "message", "outcome"),
    [
        (424, "ModelErrorException", "", Outcome.SERVER_ERROR),
        (429, "ModelNotReadyException", "", Outcome.OVERLOADED),
        (400, "ThrottlingException", "", Outcome.RATE_LIMITED),
        (403, "UnrecognizedClientException", "", Outcome.UNAUTHORISED),
        (400, "ValidationException", "The provided model identifier is invalid.", Outcome.NOT_FOUND),
        (400, "ValidationException", "temperature: too high", Outcome.BAD_REQUEST),
        (403, "", "Forbidden", Outcome.FORBIDDEN),
    ],
)
def test_error_names_decide_where_the_status_says_less(status: int, name: str, message: str, outcome: Outcome) -> None:
    body = json.dumps({"message": message}).encode()
    assert read_error(status, f"{name}:http://internal/", body).outcome is outcome
    in_body = json.dumps({"message": message, "__type": f"com.amazon.coral#{name}"}).encode()
    assert read_error(status, "", in_body).outcome is outcome


def test_preflight_of_a_model_without_tools_ends_at_text(judge_server: JudgeServer) -> None:
    refused = respond(400, {"message": "This model doesn't support tool use."}, x_amzn_ErrorType="ValidationException:")

    async def text_only(request: Any, http: Any) -> Any:
        return await (native_reply() if request.response_format == "text" else refused)(request, http)

    result = probe("bedrock", judge_server, text_only)
    assert (result.outcome, result.response_format, result.has_usage) == ("ok", ResponseFormat.TEXT, True)
    assert probe("bedrock", judge_server, native_reply()).response_format is ResponseFormat.JSON_SCHEMA


def converse_operation() -> Any:
    """The operation as AWS describes it."""
    pytest.importorskip("botocore", reason="the extra 'bedrock' is not installed")
    from botocore.loaders import create_loader
    from botocore.model import ServiceModel

    model = create_loader().load_service_model("bedrock-runtime", "service-2")
    return ServiceModel(model, "bedrock-runtime").operation_model("Converse")


@pytest.mark.parametrize("response_format", [ResponseFormat.JSON_SCHEMA, ResponseFormat.TOOL, ResponseFormat.TEXT])
def test_request_is_the_one_that_botocore_would_send(response_format: ResponseFormat) -> None:
    operation = converse_operation()
    from botocore.serialize import create_serializer
    from botocore.validate import ParamValidator

    parameters = {
        "max_tokens": 50,
        "temperature": 0,
        "top_p": 1,
        "stop": "END",
        "additionalModelRequestFields": {"top_k": 5},
        "guardrailConfig": {"guardrailIdentifier": "abc", "guardrailVersion": "1"},
        "performanceConfig": {"latency": "optimized"},
        "serviceTier": {"type": "flex"},
    }
    assert set(parameters) == set(BEDROCK.parameters or ())
    request = replace(call(), model=PROFILE, response_format=response_format, parameters=parameters)
    arguments = {"modelId": PROFILE, **request_body(request)}
    assert not ParamValidator().validate(arguments, operation.input_shape).has_errors()
    sent_by_botocore = create_serializer("rest-json").serialize_to_request(arguments, operation)
    judge = BedrockJudge(base_url="https://b.example", key=KEY, allowed_origins=["https://b.example"])
    assert judge.path(request) == sent_by_botocore["url_path"]
    assert json.loads(judge.body(request)) == json.loads(sent_by_botocore["body"])


def test_every_stop_reason_and_error_of_the_api_is_known() -> None:
    operation = converse_operation()
    for reason in operation.output_shape.members["stopReason"].enum:
        assert classify_finish_reason(reason) is not FinishReason.UNKNOWN, reason
    outcomes = {
        error.name: read_error(error.metadata["error"]["httpStatusCode"], error.name, b"{}").outcome
        for error in operation.error_shapes
    }
    assert outcomes == {
        "AccessDeniedException": "forbidden",
        "ResourceNotFoundException": "not_found",
        "ThrottlingException": "rate_limited",
        "ModelTimeoutException": "timeout",
        "InternalServerException": "server_error",
        "ServiceUnavailableException": "overloaded",
        "ValidationException": "bad_request",
        "ModelNotReadyException": "overloaded",
        "ModelErrorException": "server_error",
    }


@given(st.binary() | st.text(st.characters()).map(lambda text: json.dumps(text).encode()), st.text())
def test_no_body_raises_and_every_reply_can_be_stored(body: bytes, name: str) -> None:
    for reply in (read_converse(body), read_error(500, name, body)):
        assert replace_unstorable(reply.raw + reply.detail) == reply.raw + reply.detail
