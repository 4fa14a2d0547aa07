"""Render judge requests and parse replies.

A request has the rubric as system message, then marked blocks of JSON data with question and answer, then the closing
instruction. A verdict is accepted only as one JSON object of exactly the requested schema with values on the scale;
anything else fails with a reason. Quotes are located verbatim, else in the folded text, else in the most similar
sentence."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from evaluation.core.canonical import canonical_json, canonical_texts
from evaluation.core.samples import AnswerSpec, ContextSpec, Finding, QuestionSpec
from evaluation.judging.calls import (
    JudgeCall,
    JudgeCase,
    JudgeReply,
    JudgeRequest,
    ParsedReply,
    RenderedRequest,
    ResponseFormat,
)
from evaluation.judging.lexical import content_words, coverage
from evaluation.judging.logprobs import level_probabilities
from evaluation.judging.rubric import Rubric, conforms
from evaluation.judging.verdict_text import find_verdict
from evaluation.metrics.normalise import fold, fold_with_lines, sentences
from evaluation.network.outcomes import Outcome, replace_unstorable
from evaluation.network.retrying import REPAIRABLE

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Invisible format characters and separators; escaped, so that they cannot hide words from the judge.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_MAX_OUTPUT_TOKENS = 32_000
# Stands in for an unreadable reply in the repair request.
_UNREADABLE_REPLY = "…"


def render(rubric: Rubric, request: JudgeRequest) -> RenderedRequest:
    """Render a request; only its own blocks are shown.

    :raises UnknownName: for a metric or step that the rubric does not contain."""
    blocks = {name: _encode_block(value) for name, value in request.blocks.items()}
    marker = _block_marker(rubric, blocks)
    data = "\n\n".join(f"BEGIN {name} {marker}\n{text}\nEND {name} {marker}" for name, text in blocks.items())
    system, closing = _system_and_closing(rubric, request.names, request.step)
    messages = ({"role": "system", "content": system}, {"role": "user", "content": f"{data}\n\n{closing}"})
    material = {"rubric": rubric.prompt_hash, "messages": [dict(m) for m in messages], "schema": request.schema}
    return RenderedRequest(messages, request.schema, material)


@lru_cache(maxsize=512)
def _system_and_closing(rubric: Rubric, names: tuple[str, ...], step: str) -> tuple[str, str]:
    """System message and closing, cached because they are equal for every answer."""
    if step:
        rubric_step = rubric.step(step)
        return rubric.step_text(rubric_step.name), rubric_step.closing.strip()
    metric_names = [rubric.metric(name).name for name in names]
    return rubric.system_text(metric_names), rubric.closing.strip().replace("{metrics}", ", ".join(metric_names))


def judge_call(
    rubric: Rubric,
    question: QuestionSpec,
    answer: AnswerSpec,
    request: JudgeRequest,
    *,
    model: str,
    parameters: Mapping[str, Any],
    response_format: ResponseFormat = ResponseFormat.JSON_SCHEMA,
) -> JudgeCall:
    return JudgeCall(rubric, question, answer, request, render(rubric, request), model, parameters, response_format)


def request_hash(call: JudgeCall, *, repeat: int = 0) -> str:
    """SHA-256 of everything that determines a reply: content, model, parameters, response format and repeat number."""
    # Equals the content hash of [material, model, parameters, format, repeat], built from cached canonical JSON.
    material = ",".join(
        f'"{key}":{canonical_texts(part)}' for key, part in sorted(call.rendered.request_hash_material.items())
    )
    call_json = canonical_json([call.model, dict(call.parameters), str(call.response_format), repeat])
    return hashlib.sha256(f"[{{{material}}},{call_json[1:]}".encode()).hexdigest()


def repair_call(call: JudgeCall, outcome: Outcome) -> JudgeCall:
    """Request of the single repair attempt: a reminder after an unreadable reply, twice the output budget after a
    truncated one.

    The unreadable reply is not repeated. A placeholder turn of the judge separates the user turns, because many chat
    templates reject two in a row."""
    if outcome is Outcome.TRUNCATED:
        budgets = call.parameters.keys() & {"max_tokens", "max_completion_tokens"}
        budget = {name: min(call.parameters[name] * 2, _MAX_OUTPUT_TOKENS) for name in budgets}
        return replace(call, parameters={**call.parameters, **budget})
    reminder = {"role": "user", "content": call.rubric.repair.strip()}
    messages = (*call.rendered.messages, {"role": "assistant", "content": _UNREADABLE_REPLY}, reminder)
    material = {**call.rendered.request_hash_material, "messages": [dict(m) for m in messages]}
    return replace(call, rendered=replace(call.rendered, messages=messages, request_hash_material=material))


_MODEL_OUTCOMES = frozenset(map(Outcome, ("ok", "parse", "truncated", "refused", "filtered", "unknown_ending")))


def with_first_failure(reply: ParsedReply, earlier: Iterable[Outcome]) -> ParsedReply:
    """Replace a failure of the repair call, such as a rejected request, by the failure that it was meant to repair."""
    first_failure = next((outcome for outcome in earlier if outcome in REPAIRABLE), None)
    if first_failure is None or reply.outcome in _MODEL_OUTCOMES:
        return reply
    return replace(reply, outcome=first_failure)


def _encode_block(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # ASCII text contains none of the characters escaped below.
    if text.isascii():
        return text
    return _INVISIBLE.sub(lambda match: json.dumps(match[0])[1:-1], _LONE_SURROGATE.sub("\ufffd", text))


def _block_marker(rubric: Rubric, blocks: Mapping[str, str]) -> str:
    """Hash of the content as block marker. Equal requests have equal markers, and no text can contain its own
    marker."""
    digest = hashlib.sha256(rubric.prompt_hash.encode())
    for name, text in blocks.items():
        digest.update(f"\0{name}\0{text}".encode())
    return digest.hexdigest()[:24]


def data_blocks(question: QuestionSpec, answer: AnswerSpec, inputs: Collection[str]) -> dict[str, Any]:
    """Data blocks of a plain request, the answer last. ``inputs`` are those that the metrics declare. Expected keywords
    replace a missing reference."""
    blocks: dict[str, Any] = {
        "persona": question.persona,
        "history": list(question.history),
        "question": question.text,
        **(reference_block(question) if "reference" in inputs else {}),
        "required_info": list(question.required_info),
        "clarification_ok": question.clarification_ok,
    }
    optional = {"persona", "history", "required_info", "clarification_ok"}
    blocks = {name: content for name, content in blocks.items() if name not in optional or (name in inputs and content)}
    if "contexts" in inputs and answer.contexts is not None:
        blocks["contexts"] = [context.text for context in answer.contexts]
    if "passages" in inputs and answer.contexts is not None:
        blocks["contexts"] = numbered_passages(answer.contexts)
    return {**blocks, "answer": answer.text}


def reference_block(question: QuestionSpec) -> dict[str, Any]:
    """References, else the expected keywords as required points, else nothing."""
    if question.references:
        return {"reference": list(question.references)}
    if question.keywords:
        return {"required_points": [list(alternatives) for alternatives in question.keywords]}
    return {}


def numbered_passages(contexts: Collection[ContextSpec], first: int = 1) -> list[dict[str, Any]]:
    """Passages with the number by which a judge refers to them, and their source."""
    return [
        {"number": number, **({"source": source} if (source := passage_source(context)) else {}), "text": context.text}
        for number, context in enumerate(contexts, start=first)
    ]


def passage_source(context: ContextSpec) -> str:
    """Source of a passage: its ``source``, else regulation and article, else title."""
    metadata = context.metadata
    regulation = " ".join(str(metadata[key]) for key in ("regulation", "article") if metadata.get(key))
    return context.source or regulation or str(metadata.get("title") or "")


def declared_inputs(case: JudgeCase) -> frozenset[str]:
    """Inputs that the case's metrics require or optionally show."""
    return frozenset(name for spec in case.specs for name in (*spec.inputs, *spec.optional_inputs))


# Minimum share of the quote's content words in a sentence that is taken as its location.
MIN_QUOTE_COVERAGE = 0.6


@dataclass(frozen=True, slots=True)
class Span:
    """Span of a text, end exclusive. ``approximate``: located by similarity, not verbatim."""

    start: int
    end: int
    approximate: bool = False


def locate_quote(quote: str, text: str, after: int = 0) -> Span | None:
    """Span of the quote, preferably from ``after`` on; ``None`` if no sentence is similar.

    Case, white space, width and quotation marks are ignored. If the words differ, the sentence with most of the quote's
    content words is taken, from 60% on, and marked approximate."""
    quote = quote.strip()
    if not quote:
        return None
    if after and (span := locate_quote(quote, text[after:])) and not span.approximate:
        return Span(span.start + after, span.end + after)
    start = text.find(quote)
    if start >= 0:
        return Span(start, start + len(quote))
    view = fold(text)
    folded_quote = fold(quote).text.strip(" .…")
    start = view.text.find(folded_quote) if folded_quote else -1
    if start >= 0:
        return Span(*view.span(start, start + len(folded_quote)))
    return _closest_sentence(quote, text)


def with_span(part: Finding, span: Span | None) -> Finding:
    """Finding with the span of its part of the answer, if there is one."""
    if span is None:
        return part
    return replace(part, start=span.start, end=span.end, approximate=span.approximate)


def _closest_sentence(quote: str, text: str) -> Span | None:
    words = content_words(quote)
    if not words:
        return None
    view = fold(text)
    best, place = 0.0, None
    for start, end in sentences(fold_with_lines(text)):
        share = coverage(words, content_words(view.text[start:end]))
        if share > best:
            best, place = share, (start, end)
    if place is None or best < MIN_QUOTE_COVERAGE:
        return None
    start, end = view.span(*place)
    sentence = text[start:end]
    return Span(
        start + len(sentence) - len(sentence.lstrip()), end - len(sentence) + len(sentence.rstrip()), approximate=True
    )


_MAX_DIGITS = 18


def parse_reply(
    reply: JudgeReply, request: JudgeRequest, response_format: ResponseFormat = ResponseFormat.JSON_SCHEMA
) -> ParsedReply:
    """Parse a reply. Never raises for its content. ``response_format`` decides where the object must stand.

    The outcome is ``parse`` if the reply is not one JSON object, has an unrequested part, has no part that matches its
    schema, or lacks a part although all are required."""
    if reply.outcome is not Outcome.OK:
        return ParsedReply(reply.outcome, {})
    shapes: Mapping[str, Any] = (request.accepted_schema or request.schema)["properties"]
    verdict_span = find_verdict(reply.raw, response_format)
    members = parse_object(reply.raw[slice(*verdict_span)]) if verdict_span else None
    if members is None or not members.keys() <= shapes.keys():
        return ParsedReply(Outcome.PARSE, {})
    try:
        parts = {name: _storable_part(part) for name, part in members.items() if conforms(part, shapes[name])}
    # Nested too deeply to be a verdict.
    except RecursionError:
        return ParsedReply(Outcome.PARSE, {})
    if not parts or (request.all_parts_required and len(parts) < len(shapes)):
        return ParsedReply(Outcome.PARSE, {})
    return ParsedReply(Outcome.OK, parts, level_probabilities(reply, request, response_format, parts))


def parse_object(text: str) -> dict[str, Any] | None:
    """Parse text that is exactly one JSON object; ``None`` for surrounding text, a repeated key or another type."""
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_int=_parse_integer, parse_float=_parse_real)
    # RecursionError: nested too deeply to be a verdict.
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is there twice")
    return value


def _parse_integer(digits: str) -> int | float:
    """Parse an integer. Overlong numbers become infinite, so that they fail as off the scale."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float("inf")


def _parse_real(digits: str) -> int | float:
    """Parse a decimal. Whole values such as 4.0 become integers, because JSON does not distinguish them."""
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) < 10**_MAX_DIGITS else value


def _storable_part(part: Any) -> Any:
    """Part with every text made storable."""
    if isinstance(part, str):
        return replace_unstorable(part.strip())
    if isinstance(part, list):
        return [_storable_part(item) for item in part]
    if isinstance(part, dict):
        return {key: _storable_part(item) for key, item in part.items()}
    return part
