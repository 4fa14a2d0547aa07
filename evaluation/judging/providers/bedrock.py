"""Amazon Bedrock: build requests of the Converse API for any of its models, sign them and validate responses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Unpack
from urllib.parse import quote

import orjson

from evaluation.core.metric_specs import Bilingual
from evaluation.judging.calls import JudgeCall, JudgeReply, ResponseFormat
from evaluation.judging.providers.protocol import (
    Connection,
    EndpointJudge,
    Provider,
    build_reply,
    cached_usage,
    member,
    members,
    rename_parameters,
    split_messages,
)
from evaluation.network.aws import AwsSigner
from evaluation.network.outcomes import Outcome, excerpt, read_json, replace_unstorable, status_outcome
from evaluation.network.transport import HttpResponse

_OK = 200
_INFERENCE_PARAMETERS = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}
# Names of the API itself. Fields of one model, such as top_k or thinking, go into the first.
_REQUEST_PARAMETERS = {
    name: name for name in ("additionalModelRequestFields", "guardrailConfig", "performanceConfig", "serviceTier")
}
# Errors whose HTTP status says something else or less.
_OUTCOME_BY_ERROR = {
    "ExpiredTokenException": Outcome.UNAUTHORISED,
    "ExpiredToken": Outcome.UNAUTHORISED,
    "UnrecognizedClientException": Outcome.UNAUTHORISED,
    "InvalidClientTokenId": Outcome.UNAUTHORISED,
    # Also a clock that is wrong by more than five minutes.
    "InvalidSignatureException": Outcome.UNAUTHORISED,
    "SignatureDoesNotMatch": Outcome.UNAUTHORISED,
    "RequestExpired": Outcome.UNAUTHORISED,
    "IncompleteSignature": Outcome.UNAUTHORISED,
    "MissingAuthenticationTokenException": Outcome.UNAUTHORISED,
    "ThrottlingException": Outcome.RATE_LIMITED,
    "ModelErrorException": Outcome.SERVER_ERROR,
    "ModelNotReadyException": Outcome.OVERLOADED,
}


class BedrockJudge(EndpointJudge):
    """Call ``POST {base_url}/model/{model}/converse``, with a Bedrock API key or, without a key, a signature.

    :raises DomainError: for the signature: ``bedrock_not_installed``, ``aws_region_missing``,
        ``aws_credentials_missing``."""

    def __init__(self, **connection: Unpack[Connection]) -> None:
        super().__init__(**connection)
        self._signer = None if self._key else AwsSigner(self._base_url, "bedrock")

    def path(self, request: JudgeCall) -> str:
        return f"/model/{quote(request.model, safe='')}/converse"

    def body(self, request: JudgeCall) -> bytes:
        return orjson.dumps(request_body(request))

    async def headers(self, url: str, body: bytes) -> Mapping[str, str]:
        return await self._signer.headers("POST", url, body, "application/json") if self._signer else {}

    def secrets(self) -> Iterable[str]:
        return self._signer.secrets if self._signer else (self._key,)

    def read(self, response: HttpResponse) -> JudgeReply:
        if response.status == _OK:
            return read_converse(response.body)
        return read_error(response.status, response.headers.get("x-amzn-errortype", ""), response.body)


def request_body(call: JudgeCall) -> dict[str, Any]:
    """Body of ``Converse``."""
    system, turns = split_messages(call)
    body: dict[str, Any] = rename_parameters(call.parameters, _REQUEST_PARAMETERS)
    body["messages"] = [{"role": turn["role"], "content": [{"text": turn["content"]}]} for turn in turns]
    if system:
        body["system"] = [{"text": system}]
    if inference := rename_parameters(call.parameters, _INFERENCE_PARAMETERS):
        body["inferenceConfig"] = inference
    schema, name = dict(call.rendered.schema), call.schema_name
    if call.response_format is ResponseFormat.JSON_SCHEMA:
        structure = {"jsonSchema": {"name": name, "schema": json.dumps(schema, ensure_ascii=False)}}
        body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": structure}}
    if call.response_format is ResponseFormat.TOOL:
        tool = {"toolSpec": {"name": name, "inputSchema": {"json": schema}}}
        body["toolConfig"] = {"tools": [tool], "toolChoice": {"tool": {"name": name}}}
    return body


def read_converse(body: bytes) -> JudgeReply:
    """Convert a 200 response to a reply: text or tool input, stop reason and usage. It does not name the model."""
    value = read_json(body)
    parts = members(member(member(value, "output"), "message"), "content")
    usage = member(value, "usage")
    return build_reply(
        body,
        texts=None if parts is None else [part["text"] for part in parts if "text" in part],
        arguments=[member(part["toolUse"], "input") for part in parts or () if "toolUse" in part],
        finish_reason=member(value, "stopReason"),
        model=None,
        usage=cached_usage(
            tokens_in=member(usage, "inputTokens"),
            tokens_out=member(usage, "outputTokens"),
            cache_read=member(usage, "cacheReadInputTokens"),
            cache_written=member(usage, "cacheWriteInputTokens"),
        ),
    )


def read_error(status: int, error_type: str, body: bytes) -> JudgeReply:
    """Convert a non-200 response. ``error_type`` is the header ``x-amzn-ErrorType``, such as
    ``ThrottlingException:http://…``; gateways send the name as ``__type`` of the body."""
    value = read_json(body)
    name = error_type.partition(":")[0] or str(member(value, "__type") or "").rpartition("#")[2]
    outcome = _OUTCOME_BY_ERROR.get(name, status_outcome(status))
    if name == "ValidationException" and "model identifier" in str(member(value, "message")):
        outcome = Outcome.NOT_FOUND
    return JudgeReply(
        outcome,
        raw=excerpt(body),
        http_status=status,
        detail=f"HTTP {status} {replace_unstorable(name)[:80]}".strip(),
    )


BEDROCK = Provider(
    name="bedrock",
    title=Bilingual("Amazon Bedrock", "Amazon Bedrock"),
    open=BedrockJudge,
    address="https://bedrock-runtime.us-east-1.amazonaws.com",
    parameters=(*_INFERENCE_PARAMETERS, *_REQUEST_PARAMETERS),
    response_formats=(ResponseFormat.JSON_SCHEMA, ResponseFormat.TOOL, ResponseFormat.TEXT),
)
