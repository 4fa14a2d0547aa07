"""Google Gemini's ``generateContent``."""

from __future__ import annotations

import json
from typing import Any

from evaluation.network.outcomes import Outcome
from tests.judge_server.formats.protocol import ChatRequest, ErrorResponse, WireFormat

ERROR_STATUSES = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    529: "UNAVAILABLE",
}
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
INVALID_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


def read_request(path: str, body: dict[str, Any]) -> ChatRequest:
    turns = [body.get("systemInstruction", {"parts": []}), *body["contents"]]
    declarations = [entry for tool in body.get("tools", []) for entry in tool["functionDeclarations"]]
    return ChatRequest(
        model=path.rpartition("/")[2].removesuffix(":generateContent"),
        texts=[part["text"] for turn in turns for part in turn["parts"]],
        schema=body.get("generationConfig", {}).get("responseJsonSchema"),
        tools={entry["name"]: entry["parametersJsonSchema"] for entry in declarations},
    )


def build_reply(model: str, text: str, tool: str, ending: str) -> dict[str, Any]:
    part = {"functionCall": {"name": tool, "args": json.loads(text)}} if tool else {"text": text}
    usage = {"promptTokenCount": 900, "candidatesTokenCount": 60, "totalTokenCount": 960}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": ending}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def error(status: int, message: str = "scripted", kind: str = "", details: Any = (), **headers: str) -> ErrorResponse:
    fault = {"code": status, "message": message, "status": kind or ERROR_STATUSES[status], "details": list(details)}
    return ErrorResponse(status, {"error": fault}, headers)


FORMAT = WireFormat(
    suffix=":generateContent",
    endings={"stop": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"},
    read_request=read_request,
    build_reply=build_reply,
    error=error,
    faults={
        "throttling": error(429, details=[RETRY_INFO]),
        "expired credentials": error(400, "API key expired.", "INVALID_ARGUMENT", [INVALID_KEY]),
    },
    # Safety filters block; they are not the model's refusal.
    outcomes={"refusal": Outcome.FILTERED},
    waits={"throttling": 7.0},
)
