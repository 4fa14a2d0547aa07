"""Parsing of chat completions in OpenAI's format, as different servers send them.

Covers finish reasons, errors, message texts and billed tokens, for judges and systems under test. Pure, no network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evaluation.network.outcomes import MAX_TOKENS, Outcome, read_count, read_json, replace_unstorable, status_outcome


class FinishReason(StrEnum):
    """Families of finish reasons; servers use different words for each."""

    COMPLETE = "complete"
    # Complete if the request offers a tool, otherwise unfinished.
    TOOL_CALL = "tool_call"
    LENGTH = "length"
    FILTERED = "filtered"
    REFUSED = "refused"
    # The model wrote a tool call that cannot be parsed.
    MALFORMED = "malformed"
    ERROR = "error"
    UNKNOWN = "unknown"


_FINISH_WORDS: Mapping[FinishReason, str] = {
    FinishReason.COMPLETE: "stop stopped stop_sequence stop_token end_turn end_of_turn end eos eos_token eot "
    "complete completed done finish finished success normal",
    FinishReason.TOOL_CALL: "tool_calls tool_call tool_use function_call function_calls",
    FinishReason.LENGTH: "length max_length model_length max_tokens max_token max_output_tokens max_completion_tokens "
    "max_new_tokens max_tokens_reached token_limit token_limit_reached output_limit incomplete truncated error_limit "
    "context_length context_length_exceeded context_window_exceeded model_context_window_exceeded",
    FinishReason.FILTERED: "content_filter content_filtered content_filtering filtered filter safety recitation "
    "blocklist model_armor "
    "prohibited_content spii image_safety sensitive moderation moderated content_policy content_policy_violation "
    "guardrail_intervened guardrail guardrails blocked flagged error_toxic",
    FinishReason.REFUSED: "refusal refused",
    FinishReason.MALFORMED: "malformed_function_call malformed_tool_call unexpected_tool_call invalid_tool_call "
    "malformed_tool_use malformed_model_output malformed_response too_many_tool_calls",
    FinishReason.ERROR: "error errored failed failure server_error internal_error network_error abort aborted "
    "cancelled canceled timeout time_limit insufficient_system_resource user_cancel",
}
_REASON_BY_WORD = {reason: ending for ending, reasons in _FINISH_WORDS.items() for reason in reasons.split()}
_OUTCOME_BY_REASON = {
    FinishReason.COMPLETE: Outcome.OK,
    FinishReason.TOOL_CALL: Outcome.OK,
    FinishReason.LENGTH: Outcome.TRUNCATED,
    FinishReason.FILTERED: Outcome.FILTERED,
    FinishReason.REFUSED: Outcome.REFUSED,
    FinishReason.MALFORMED: Outcome.PARSE,
    FinishReason.ERROR: Outcome.SERVER_ERROR,
    FinishReason.UNKNOWN: Outcome.UNKNOWN_ENDING,
}
_WORD_GAP = re.compile(r"[\s./:-]+")


def classify_finish_reason(finish_reason: Any) -> FinishReason:
    """Classify a server's finish reason, ignoring case and separators.

    A missing reason counts as complete; an unlisted one is unknown, which is not a success."""
    if finish_reason is None or finish_reason == "":
        return FinishReason.COMPLETE
    if not isinstance(finish_reason, str):
        return FinishReason.UNKNOWN
    word = _WORD_GAP.sub("_", finish_reason.strip().casefold())
    for prefix in ("finishreason_", "finish_reason_", "stopreason_", "stop_reason_"):
        word = word.removeprefix(prefix)
    return _REASON_BY_WORD.get(word, FinishReason.UNKNOWN)


def finish_outcome(reason: FinishReason) -> Outcome:
    return _OUTCOME_BY_REASON[reason]


# Codes that are more specific than any HTTP status.
_EXACT_CODES: Mapping[Outcome, str] = {
    Outcome.NO_CREDIT: "insufficient_quota billing_hard_limit_reached insufficient_credits insufficient_balance "
    "payment_required credit_balance_too_low billing_not_active billing_error",
    Outcome.NOT_FOUND: "model_not_found deploymentnotfound deployment_not_found",
    Outcome.FILTERED: "content_filter content_policy_violation responsibleaipolicyviolation data_inspection_failed",
    Outcome.PARSE: "json_validate_failed json_validation_failed json_generation_failed json_parse_failed "
    "json_decode_failed json_schema_validation_failed output_parse_failed output_parsing_failed tool_use_failed "
    "tool_call_failed invalid_model_output invalid_json_output malformed_function_call model_output_invalid",
}
# Codes equivalent to an HTTP status; used when the status is 200.
_STATUS_LIKE_CODES: Mapping[Outcome, str] = {
    Outcome.RATE_LIMITED: "rate_limit_exceeded rate_limit_error rate_limited rate_limit too_many_requests "
    "resource_exhausted requests_limit_reached throttled throttling throttlingexception",
    Outcome.OVERLOADED: "overloaded overloaded_error engine_overloaded server_overloaded service_unavailable "
    "service_unavailable_error serviceunavailableerror unavailable capacity_exceeded",
    Outcome.TIMEOUT: "timeout timeout_error request_timeout gateway_timeout deadline_exceeded",
    Outcome.UNAUTHORISED: "invalid_api_key authentication_error unauthorized unauthenticated invalid_token",
    Outcome.FORBIDDEN: "permission_denied permission_error forbidden access_denied permissiondeniederror",
    Outcome.NOT_FOUND: "not_found not_found_error notfounderror model_not_available",
    Outcome.BAD_REQUEST: "invalid_request_error bad_request badrequesterror invalid_argument invalid_value "
    "context_length_exceeded unsupported_parameter unsupported_value unprocessable_entity validation_error",
    Outcome.SERVER_ERROR: "server_error internal_server_error internal_error internalservererror api_error "
    "upstream_error provider_error bad_gateway error",
}
_OUTCOME_BY_EXACT_CODE = {code: outcome for outcome, codes in _EXACT_CODES.items() for code in codes.split()}
_OUTCOME_BY_CODE = {
    code: outcome for outcome, codes in _STATUS_LIKE_CODES.items() for code in codes.split()
} | _OUTCOME_BY_EXACT_CODE
_NO_JSON_WRITTEN = re.compile(
    r"failed to (generate|validate)( valid)? JSON|did(n't| not) (generate|output|produce|return)( a)? valid JSON",
    re.IGNORECASE,
)
_STATUS = re.compile(r"[45]\d\d")


@dataclass(frozen=True, slots=True)
class ServerError:
    """A server's error: ``codes`` are its own error codes, ``status`` the HTTP status among them, ``message`` the
    text."""

    codes: tuple[str, ...] = ()
    status: int | None = None
    message: str = ""
    wrote_no_json: bool = False

    def outcome(self, status: int | None = None) -> Outcome:
        """Outcome of the call.

        Specific codes take precedence over the response status. In a response with status 200 (``status=None``) the
        codes decide; an error without a code counts as a transient server error."""
        exact = next((_OUTCOME_BY_EXACT_CODE[code] for code in self.codes if code in _OUTCOME_BY_EXACT_CODE), None)
        if exact is None and self.wrote_no_json and (status or self.status or 400) < 500:
            exact = Outcome.PARSE
        if exact is not None:
            return exact
        if status is not None or self.status is not None:
            return status_outcome(status or self.status or 0)
        return next((_OUTCOME_BY_CODE[code] for code in self.codes if code in _OUTCOME_BY_CODE), Outcome.SERVER_ERROR)


def read_server_error(value: Any) -> ServerError | None:
    """Return the error in a response's JSON or in one of its choices, or ``None``.

    It is under ``error`` as an object or text, or is the body itself (``{"object": "error"}``), possibly in a list of
    one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping):
        return None
    error = value if value.get("object") == "error" or value.get("type") == "error" else value.get("error")
    if isinstance(error, Mapping) and isinstance(error.get("error"), Mapping):
        error = error["error"]
    if isinstance(error, str) and error.strip():
        return ServerError(message=replace_unstorable(error), wrote_no_json=bool(_NO_JSON_WRITTEN.search(error)))
    if not isinstance(error, Mapping) or not error:
        return None
    raw_codes = [error.get(name) for name in ("code", "status", "status_code", "type", "http_code")]
    inner_error = error.get("innererror")
    raw_codes += [inner_error.get("code")] if isinstance(inner_error, Mapping) else []
    words = [
        str(raw_code).strip()
        for raw_code in raw_codes
        if isinstance(raw_code, str | int) and not isinstance(raw_code, bool)
    ]
    status = next((int(word) for word in words if _STATUS.fullmatch(word)), None)
    codes = tuple(_WORD_GAP.sub("_", word.casefold())[:80] for word in words if word and not word.isdigit())
    message = error.get("message")
    message = message if isinstance(message, str) else ""
    wrote_no_json = "failed_generation" in error or bool(_NO_JSON_WRITTEN.search(message))
    return ServerError(codes, status, replace_unstorable(message), wrote_no_json)


_TEXT_PARTS = frozenset({"text", "output_text", ""})
_NON_TEXT_PARTS = frozenset({"thinking", "reasoning", "reasoning_content", "redacted_thinking", "reference"})


def content_text(content: Any) -> str | None:
    """Text of a message's content or of a tool's arguments, in any JSON type; ``None`` if it is ambiguous.

    Text parts of a list are joined without reasoning parts. An object that is no part is taken as JSON written by the
    model."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        texts = [_part_text(part) for part in content]
        return None if any(text is None for text in texts) else "".join(text for text in texts if text)
    if not isinstance(content, Mapping):
        return None
    if isinstance(content.get("type", ""), str) and content.keys() <= {"type", "text", "annotations"} and content:
        return _part_text(content)
    return json.dumps(content, ensure_ascii=False)


def _part_text(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return None
    kind = part.get("type", "")
    if kind in _NON_TEXT_PARTS or part.get("thought") is True:
        return ""
    text = part.get("text")
    # The form of messages in the Assistants API.
    if isinstance(text, Mapping):
        text = text.get("value")
    return text if kind in _TEXT_PARTS and isinstance(text, str) else None


def has_duplicate_keys(body: bytes) -> bool:
    """Return whether an object in the JSON repeats a key, so that its value is ambiguous."""

    def refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key is there twice")
        return {}

    try:
        json.loads(body, object_pairs_hook=refuse_duplicates)
    except (ValueError, RecursionError):
        return True
    return False


def refusal_text(message: Any) -> str:
    """Text of a model's refusal; empty if it did not refuse."""
    if not isinstance(message, Mapping):
        return ""
    content = message.get("content")
    parts: Iterable[Any] = content if isinstance(content, list) else ()
    refusals = [message.get("refusal"), *(part.get("refusal") for part in parts if isinstance(part, Mapping))]
    return next((text.strip() for text in refusals if isinstance(text, str) and text.strip()), "")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call; ``None`` if the server's number is missing or impossible."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int | None = None
    reasoning: int | None = None


def read_usage(usage: Any) -> Usage:
    """Read the billed tokens; contradictory counts are unknown.

    If the total exceeds prompt plus completion, as on servers that count reasoning separately, the output is the total
    without the prompt."""
    counts = usage if isinstance(usage, Mapping) else {}
    tokens_in = read_count(counts.get("prompt_tokens"), MAX_TOKENS)
    tokens_out = read_count(counts.get("completion_tokens"), MAX_TOKENS)
    reasoning = _detail(counts, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    cached = _detail(counts, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    total = counts.get("total_tokens")
    if total is not None and tokens_in is not None and tokens_out is not None:
        total_count = read_count(total, MAX_TOKENS)
        tokens_out = (
            total_count - tokens_in if total_count is not None and total_count >= tokens_in + tokens_out else None
        )
    reasoning_count = read_count(reasoning, MAX_TOKENS)
    if tokens_out is not None and reasoning_count is not None and reasoning_count > tokens_out:
        tokens_out = None
    cached_count = read_count(cached, MAX_TOKENS)
    if cached_count is not None and cached_count > (tokens_in or 0) and tokens_out != counts.get("completion_tokens"):
        # Cached input may be counted separately, so that the remainder of the total is not all output.
        tokens_out = None
    return Usage(tokens_in, tokens_out, read_count(cached, tokens_in or 0), read_count(reasoning, tokens_out or 0))


def _detail(usage: Mapping[str, Any], names: Iterable[str], member: str) -> Any:
    details = (usage.get(name) for name in names)
    return next(
        (detail[member] for detail in details if isinstance(detail, Mapping) and member in detail), usage.get(member)
    )


# Characters of a server's message on one line.
MAX_MESSAGE_LENGTH = 240
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffd]+")


def server_message(body: str) -> str:
    """A server's error message on one line, else the first non-empty line of the body."""
    value = read_json(body.encode("utf-8", "replace"))
    error = read_server_error(value)
    text = error.message if error else ""
    if not text and isinstance(value, Mapping):
        candidates = (value.get(name) for name in ("message", "detail", "msg"))
        text = next((candidate for candidate in candidates if isinstance(candidate, str)), "")
    lines = (_CONTROL.sub(" ", line).strip() for line in (text or body).splitlines())
    line = next(filter(None, lines), "")
    return line if len(line) <= MAX_MESSAGE_LENGTH else line[: MAX_MESSAGE_LENGTH - 1] + "…"
