"""Amazon Bedrock's Converse API."""

from __future__ import annotations

import json
from typing import Any

from evaluation.network.outcomes import Outcome
from tests.judge_server.formats.protocol import ChatRequest, ErrorResponse, WireFormat

ERROR_TYPES = {
    401: "MissingAuthenticationTokenException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
    529: "ServiceUnavailableException",
}


def read_request(path: str, body: dict[str, Any]) -> ChatRequest:
    parts = [*body.get("system", []), *(part for turn in body["messages"] for part in turn["content"])]
    structure = body.get("outputConfig", {}).get("textFormat", {}).get("structure", {})
    specs = [tool["toolSpec"] for tool in body.get("toolConfig", {}).get("tools", [])]
    return ChatRequest(
        model=path.split("/")[-2],
        texts=[part["text"] for part in parts],
        schema=json.loads(structure["jsonSchema"]["schema"]) if structure else None,
        tools={spec["name"]: spec["inputSchema"]["json"] for spec in specs},
    )


def build_reply(model: str, text: str, tool: str, ending: str) -> dict[str, Any]:
    part = {"toolUse": {"toolUseId": "t1", "name": tool, "input": json.loads(text)}} if tool else {"text": text}
    usage = {"inputTokens": 900, "outputTokens": 60, "totalTokens": 960}
    message = {"role": "assistant", "content": [part]}
    return {"output": {"message": message}, "stopReason": ending, "usage": usage, "metrics": {"latencyMs": 1}}


def error(status: int, message: str = "scripted", kind: str = "", **headers: str) -> ErrorResponse:
    name = f"{kind or ERROR_TYPES[status]}:http://internal.amazon.com/coral/com.amazon.bedrock/"
    return ErrorResponse(status, {"message": message}, {"x_amzn_ErrorType": name, **headers})


FORMAT = WireFormat(
    suffix="/converse",
    endings={"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "refused": "guardrail_intervened"},
    read_request=read_request,
    build_reply=build_reply,
    error=error,
    faults={
        "throttling": error(429, "Too many tokens, please wait before trying again."),
        "expired credentials": error(403, "The security token included is expired", "ExpiredTokenException"),
        "clock skew": error(403, "Signature expired: 1 is now earlier", "InvalidSignatureException"),
    },
    # Guardrails block; they are not the model's refusal.
    outcomes={"refusal": Outcome.FILTERED, "clock skew": Outcome.UNAUTHORISED},
    waits={"clock skew": None},
)
