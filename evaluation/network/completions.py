"""Vocabularies and shapes of chat completions, as servers that speak OpenAI's format send them: why a reply ended,
what an error means, where a message's text stands, how many tokens are billed. Judges and systems under test are read
by the same tables. Pure, no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evaluation.network.outcomes import MOST_TOKENS, Outcome, outcome_of_status, read_count, read_json, storable


class Ending(StrEnum):
    """Families of finish reasons. Servers of one family use many words for the same end of a reply."""

    COMPLETE = "complete"
    TOOL_CALL = "tool_call"  # complete where a tool was to be called, unfinished elsewhere
    LENGTH = "length"
    FILTERED = "filtered"
    REFUSED = "refused"
    MALFORMED = "malformed"  # the model wrote a call that cannot be read
    ERROR = "error"
    UNKNOWN = "unknown"


_ENDINGS: Mapping[Ending, str] = {
    Ending.COMPLETE: "stop stopped stop_sequence stop_token end_turn end_of_turn end eos eos_token eot "
    "complete completed done finish finished success normal",
    Ending.TOOL_CALL: "tool_calls tool_call tool_use function_call function_calls",
    Ending.LENGTH: "length max_length model_length max_tokens max_token max_output_tokens max_completion_tokens "
    "max_new_tokens max_tokens_reached token_limit token_limit_reached output_limit incomplete truncated error_limit "
    "context_length context_length_exceeded context_window_exceeded model_context_window_exceeded",
    Ending.FILTERED: "content_filter content_filtered content_filtering filtered filter safety recitation blocklist "
    "prohibited_content spii image_safety sensitive moderation moderated content_policy content_policy_violation "
    "guardrail_intervened guardrail guardrails blocked flagged error_toxic",
    Ending.REFUSED: "refusal refused",
    Ending.MALFORMED: "malformed_function_call malformed_tool_call unexpected_tool_call invalid_tool_call",
    Ending.ERROR: "error errored failed failure server_error internal_error network_error abort aborted cancelled "
    "canceled timeout time_limit insufficient_system_resource user_cancel",
}
_BY_REASON = {reason: ending for ending, reasons in _ENDINGS.items() for reason in reasons.split()}
_OUTCOME_OF_ENDING = {
    Ending.COMPLETE: Outcome.OK,
    Ending.TOOL_CALL: Outcome.OK,
    Ending.LENGTH: Outcome.TRUNCATED,
    Ending.FILTERED: Outcome.FILTERED,
    Ending.REFUSED: Outcome.REFUSED,
    Ending.MALFORMED: Outcome.PARSE,
    Ending.ERROR: Outcome.SERVER_ERROR,
    Ending.UNKNOWN: Outcome.UNKNOWN_ENDING,
}
_WORD_GAP = re.compile(r"[\s./:-]+")


def read_ending(finish_reason: Any) -> Ending:
    """The family of a finish reason, whatever its case and separators. A server that sends none said nothing, which is
    no reason to doubt the reply; a reason that is in no family is unknown, which is no success."""
    if finish_reason is None or finish_reason == "":
        return Ending.COMPLETE
    if not isinstance(finish_reason, str):
        return Ending.UNKNOWN
    word = _WORD_GAP.sub("_", finish_reason.strip().casefold())
    for prefix in ("finishreason_", "finish_reason_", "stopreason_", "stop_reason_"):
        word = word.removeprefix(prefix)
    return _BY_REASON.get(word, Ending.UNKNOWN)


def outcome_of_ending(ending: Ending) -> Outcome:
    """How a call ended whose reply ended so."""
    return _OUTCOME_OF_ENDING[ending]


# Codes that say more than any HTTP status they come with.
_EXACT: Mapping[Outcome, str] = {
    Outcome.NO_CREDIT: "insufficient_quota billing_hard_limit_reached insufficient_credits insufficient_balance "
    "payment_required credit_balance_too_low billing_not_active",
    Outcome.NOT_FOUND: "model_not_found deploymentnotfound deployment_not_found",
    Outcome.FILTERED: "content_filter content_policy_violation responsibleaipolicyviolation data_inspection_failed",
    Outcome.PARSE: "json_validate_failed json_validation_failed json_generation_failed json_parse_failed "
    "json_decode_failed json_schema_validation_failed output_parse_failed output_parsing_failed tool_use_failed "
    "tool_call_failed invalid_model_output invalid_json_output malformed_function_call model_output_invalid",
}
# Codes that say what a status says; they count where the status is 200.
_LIKE_STATUS: Mapping[Outcome, str] = {
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
_BY_EXACT_CODE = {code: outcome for outcome, codes in _EXACT.items() for code in codes.split()}
_BY_CODE = {code: outcome for outcome, codes in _LIKE_STATUS.items() for code in codes.split()} | _BY_EXACT_CODE
_NO_JSON_WRITTEN = re.compile(
    r"failed to (generate|validate)( valid)? JSON|did(n't| not) (generate|output|produce|return)( a)? valid JSON",
    re.IGNORECASE,
)
_STATUS = re.compile(r"[45]\d\d")


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error as a server tells it: ``codes`` are its own words for its kind, ``status`` the HTTP status among them,
    ``message`` what it says to people."""

    codes: tuple[str, ...] = ()
    status: int | None = None
    message: str = ""
    wrote_no_json: bool = False

    def outcome(self, status: int | None = None) -> Outcome:
        """How the call ended. A code is more exact than the status of the response; inside a 200 (``status`` is
        ``None``) the codes stand for it, and an error without any is taken for a passing one of the server."""
        exact = next((_BY_EXACT_CODE[code] for code in self.codes if code in _BY_EXACT_CODE), None)
        if exact is None and self.wrote_no_json and (status or self.status or 400) < 500:
            exact = Outcome.PARSE
        if exact is not None:
            return exact
        if status is not None or self.status is not None:
            return outcome_of_status(status or self.status or 0)
        return next((_BY_CODE[code] for code in self.codes if code in _BY_CODE), Outcome.SERVER_ERROR)


def read_server_error(value: Any) -> ServerError | None:
    """The error that a response's JSON or one of its choices reports; ``None`` where it reports none. It stands under
    ``error``, as an object or a text, or is the body itself (``{"object": "error"}``); some wrap it in a list."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping):
        return None
    error = value if value.get("object") == "error" or value.get("type") == "error" else value.get("error")
    if isinstance(error, Mapping) and isinstance(error.get("error"), Mapping):
        error = error["error"]
    if isinstance(error, str) and error.strip():
        return ServerError(message=storable(error), wrote_no_json=bool(_NO_JSON_WRITTEN.search(error)))
    if not isinstance(error, Mapping) or not error:
        return None
    told = [error.get(name) for name in ("code", "status", "status_code", "type", "http_code")]
    inner = error.get("innererror")
    told += [inner.get("code")] if isinstance(inner, Mapping) else []
    words = [str(one).strip() for one in told if isinstance(one, str | int) and not isinstance(one, bool)]
    status = next((int(word) for word in words if _STATUS.fullmatch(word)), None)
    codes = tuple(_WORD_GAP.sub("_", word.casefold())[:80] for word in words if word and not word.isdigit())
    message = error.get("message")
    message = message if isinstance(message, str) else ""
    failed = "failed_generation" in error or bool(_NO_JSON_WRITTEN.search(message))
    return ServerError(codes, status, storable(message), failed)


_TEXT_PARTS = frozenset({"text", "output_text", ""})
_SILENT_PARTS = frozenset({"thinking", "reasoning", "reasoning_content", "redacted_thinking", "reference"})


def content_text(content: Any) -> str | None:
    """The text of a message's content or of a tool's arguments, in whatever JSON type it came; ``None`` where it is
    ambiguous. Text parts of a list are joined and thinking is left out; an object that is not a part stands for the
    JSON that the model wrote."""
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
    if kind in _SILENT_PARTS or part.get("thought") is True:
        return ""
    text = part.get("text")
    if isinstance(text, Mapping):  # as assistants' messages have it
        text = text.get("value")
    return text if kind in _TEXT_PARTS and isinstance(text, str) else None


def repeats_key(body: bytes) -> bool:
    """Whether an object in the JSON has a key twice, so that nobody can tell which of its values counts."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key is there twice")
        return {}

    try:
        json.loads(body, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        return True
    return False


def refusal_text(message: Any) -> str:
    """What a model said instead of a reply; empty where it refused nothing."""
    if not isinstance(message, Mapping):
        return ""
    content = message.get("content")
    parts: Iterable[Any] = content if isinstance(content, list) else ()
    refusals = [message.get("refusal"), *(part.get("refusal") for part in parts if isinstance(part, Mapping))]
    return next((text.strip() for text in refusals if isinstance(text, str) and text.strip()), "")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call; ``None`` where the server did not say, or said what cannot be true."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int | None = None
    reasoning: int | None = None


def read_usage(usage: Any) -> Usage:
    """The tokens that are billed. Where the total says more than prompt and completion together, as with servers that
    count reasoning apart, the output is the total without the prompt. Counts that contradict each other are unknown."""
    told = usage if isinstance(usage, Mapping) else {}
    tokens_in = read_count(told.get("prompt_tokens"), MOST_TOKENS)
    tokens_out = read_count(told.get("completion_tokens"), MOST_TOKENS)
    reasoning = _detail(told, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    cached = _detail(told, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    total = told.get("total_tokens")
    if total is not None and tokens_in is not None and tokens_out is not None:
        whole = read_count(total, MOST_TOKENS)
        tokens_out = whole - tokens_in if whole is not None and whole >= tokens_in + tokens_out else None
    thought = read_count(reasoning, MOST_TOKENS)
    if tokens_out is not None and thought is not None and thought > tokens_out:
        tokens_out = None
    from_cache = read_count(cached, MOST_TOKENS)
    if from_cache is not None and from_cache > (tokens_in or 0) and tokens_out != told.get("completion_tokens"):
        tokens_out = None  # cached input may be counted apart, so that the rest of the total is no output
    return Usage(tokens_in, tokens_out, read_count(cached, tokens_in or 0), read_count(reasoning, tokens_out or 0))


def _detail(usage: Mapping[str, Any], names: Iterable[str], member: str) -> Any:
    details = (usage.get(name) for name in names)
    return next((one[member] for one in details if isinstance(one, Mapping) and member in one), usage.get(member))


LONGEST_WORDS = 240  # characters of what a server says, as one line
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffd]+")


def server_words(body: str) -> str:
    """What a server says in one line: the message of its error, else the first line of the body that says something."""
    value = read_json(body.encode("utf-8", "replace"))
    error = read_server_error(value)
    text = error.message if error else ""
    if not text and isinstance(value, Mapping):
        told = (value.get(name) for name in ("message", "detail", "msg"))
        text = next((one for one in told if isinstance(one, str)), "")
    lines = (_CONTROL.sub(" ", line).strip() for line in (text or body).splitlines())
    line = next(filter(None, lines), "")
    return line if len(line) <= LONGEST_WORDS else line[: LONGEST_WORDS - 1] + "…"
