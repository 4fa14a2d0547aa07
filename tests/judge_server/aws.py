"""Credentials of AWS for tests, and a server that checks signatures: botocore computes what a request must have."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from tests.judge_server.actions import Action
from tests.judge_server.received import ReceivedRequest
from tests.judge_server.wire import native_reply, respond

ACCESS_KEY, SECRET_KEY, SESSION_TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI-EXAMPLEKEY", "session-token-0123456789"
EXPIRED_TOKEN = "expired-token-0123456789"
REGION = "eu-central-1"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8}/[a-z0-9-]+/bedrock/aws4_request), SignedHeaders=([a-z0-9;-]+), "
    r"Signature=([0-9a-f]{64})"
)
_MAX_SKEW = timedelta(minutes=5)


def clear_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Remove all AWS credentials, look for profiles in the folder, and call no instance metadata."""
    pytest.importorskip("botocore", reason="the extra 'bedrock' is not installed")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


def set_credentials(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Set the credentials that the server accepts."""
    clear_environment(monkeypatch, folder)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)


def denied(name: str, message: str) -> Action:
    """A refusal of AWS with status 403."""
    return respond(403, {"message": message}, x_amzn_ErrorType=f"{name}:http://internal.amazon.com/")


def signed_only(otherwise: Action | None = None) -> Action:
    """A server that answers requests with a valid signature, as they arrived, and refuses others as AWS does."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        fault = await _signature_fault(http)
        return await (fault or otherwise or native_reply())(request, http)

    return act


async def _signature_fault(http: web.Request) -> Action | None:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    match = _AUTHORIZATION.fullmatch(http.headers.get("Authorization", ""))
    if match is None:
        return denied("MissingAuthenticationTokenException", "Missing Authentication Token")
    access_key, scope, signed_headers, signature = match.groups()
    moment = http.headers["X-Amz-Date"]
    token = http.headers.get("X-Amz-Security-Token")
    request = AWSRequest(
        method=http.method,
        url=f"{http.scheme}://{http.host}{http.raw_path}",
        data=await http.read(),
        headers={name: http.headers[name] for name in signed_headers.split(";")},
    )
    request.context["timestamp"] = moment
    signer = SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY, token), "bedrock", REGION)
    canonical = signer.canonical_request(request)
    expected = signer.signature(signer.string_to_sign(request, canonical), request)
    if token == EXPIRED_TOKEN:
        return denied("ExpiredTokenException", "The security token included in the request is expired")
    if access_key != ACCESS_KEY or scope != signer.credential_scope(request):
        return denied("UnrecognizedClientException", "The security token included in the request is invalid.")
    if signature != expected or not {"host", "x-amz-date", "content-type"} <= set(signed_headers.split(";")):
        message = (
            f"The request signature we calculated does not match. The Canonical String should have been {canonical}"
        )
        return denied("InvalidSignatureException", message)
    signed_at = datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if abs(datetime.now(UTC) - signed_at) > _MAX_SKEW:
        return denied("InvalidSignatureException", f"Signature expired: {moment} is now earlier than it may be")
    return None
