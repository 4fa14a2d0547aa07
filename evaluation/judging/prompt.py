"""The judge's request and the reading of its reply. The request has the rubric as system message, what is shown of
question and answer as marked blocks of plain JSON values, the instruction after them.

A verdict is taken only where it literally stands, on the scale, in one JSON object of exactly the shape asked for.
Everything else is a failure with its reason. A quote stands word for word, else as texts are compared, else in the most
alike sentence.
"""

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
from evaluation.judging.calls import Ask, Case, Heard, JudgeCall, JudgeReply, Rendered, Rung
from evaluation.judging.lexical import content_words, coverage
from evaluation.judging.logprobs import level_chances
from evaluation.judging.rubric import Rubric, conforms
from evaluation.judging.verdict_text import find_verdict
from evaluation.metrics.normalise import fold, fold_with_lines, sentences
from evaluation.network.outcomes import Outcome, storable
from evaluation.network.retrying import REPAIRABLE

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Format characters and separators that a reader does not see; as escapes they cannot hide words from the judge.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_MOST_OUTPUT_TOKENS = 32_000
_UNREAD = "…"  # in place of a reply that could not be read


def render(rubric: Rubric, ask: Ask) -> Rendered:
    """The request for what is asked: only the blocks of the ask are shown.

    :raises UnknownName: for a metric or step that the rubric does not hold.
    """
    blocks = {name: _encoded(value) for name, value in ask.blocks.items()}
    mark = _mark(rubric, blocks)
    data = "\n\n".join(f"BEGIN {name} {mark}\n{text}\nEND {name} {mark}" for name, text in blocks.items())
    system, closing = _words(rubric, ask.names, ask.step)
    messages = ({"role": "system", "content": system}, {"role": "user", "content": f"{data}\n\n{closing}"})
    material = {"rubric": rubric.asked_hash, "messages": [dict(m) for m in messages], "schema": ask.schema}
    return Rendered(messages, ask.schema, material)


@lru_cache(maxsize=512)
def _words(rubric: Rubric, names: tuple[str, ...], step: str) -> tuple[str, str]:
    """System message and closing: the same for every answer."""
    if step:
        asked = rubric.step(step)
        return rubric.step_text(asked.name), asked.closing.strip()
    named = [rubric.metric(name).name for name in names]
    return rubric.system_text(named), rubric.closing.strip().replace("{metrics}", ", ".join(named))


def judge_call(
    rubric: Rubric,
    question: QuestionSpec,
    answer: AnswerSpec,
    ask: Ask,
    *,
    model: str,
    parameters: Mapping[str, Any],
    rung: Rung = Rung.JSON_SCHEMA,
) -> JudgeCall:
    """A rendered request for a model with its parameters."""
    return JudgeCall(rubric, question, answer, ask, render(rubric, ask), model, parameters, rung)


def request_hash(call: JudgeCall, *, repeat: int = 0) -> str:
    """SHA-256 of all that decides a reply: content, model, parameters, rung and the number of the repeat."""
    # The content hash of [material, model, parameters, rung, repeat], put together from its canonical JSON.
    material = ",".join(
        f'"{key}":{canonical_texts(part)}' for key, part in sorted(call.rendered.request_hash_material.items())
    )
    decided = canonical_json([call.model, dict(call.parameters), str(call.rung), repeat])
    return hashlib.sha256(f"[{{{material}}},{decided[1:]}".encode()).hexdigest()


def repaired(call: JudgeCall, outcome: Outcome) -> JudgeCall:
    """The request of the one repair try: a reminder after a reply without a verdict, twice the output budget
    after a truncated one. Chat templates of many servers refuse two turns of the user in a row, so that a turn of the
    judge stands between. The broken reply itself is not shown to the judge again."""
    if outcome is Outcome.TRUNCATED:
        budgets = call.parameters.keys() & {"max_tokens", "max_completion_tokens"}
        budget = {name: min(call.parameters[name] * 2, _MOST_OUTPUT_TOKENS) for name in budgets}
        return replace(call, parameters={**call.parameters, **budget})
    reminder = {"role": "user", "content": call.rubric.repair.strip()}
    messages = (*call.rendered.messages, {"role": "assistant", "content": _UNREAD}, reminder)
    material = {**call.rendered.request_hash_material, "messages": [dict(m) for m in messages]}
    return replace(call, rendered=replace(call.rendered, messages=messages, request_hash_material=material))


_OF_THE_MODEL = frozenset(map(Outcome, ("ok", "parse", "truncated", "refused", "filtered", "unknown_ending")))


def with_first_failure(heard: Heard, earlier: Iterable[Outcome]) -> Heard:
    """The end of a conversation by the failure that counts: where the repair came to no reply of the model, such as a
    request that the server refused, the reason is the one that it was to repair."""
    repaired_failure = next((outcome for outcome in earlier if outcome in REPAIRABLE), None)
    if repaired_failure is None or heard.outcome in _OF_THE_MODEL:
        return heard
    return replace(heard, outcome=repaired_failure)


def _encoded(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if text.isascii():  # nothing of what follows is
        return text
    return _INVISIBLE.sub(lambda match: json.dumps(match[0])[1:-1], _LONE_SURROGATE.sub("\ufffd", text))


def _mark(rubric: Rubric, blocks: Mapping[str, str]) -> str:
    """Hash of the content: the same request has the same mark, and no text can hold the mark of itself."""
    digest = hashlib.sha256(rubric.asked_hash.encode())
    for name, text in blocks.items():
        digest.update(f"\0{name}\0{text}".encode())
    return digest.hexdigest()[:24]


def data_blocks(question: QuestionSpec, answer: AnswerSpec, inputs: Collection[str]) -> dict[str, Any]:
    """The blocks of a plain request, the answer last. ``inputs`` are those that the metrics declare; the expected
    keywords stand in for a missing reference as required points."""
    blocks: dict[str, Any] = {
        "persona": question.persona,
        "history": list(question.history),
        "question": question.text,
        **(reference_block(question) if "reference" in inputs else {}),
        "required_info": list(question.required_info),
        "clarification_ok": question.clarification_ok,
    }
    optional = {"persona", "history", "required_info", "clarification_ok"}
    blocks = {name: said for name, said in blocks.items() if name not in optional or (name in inputs and said)}
    if "contexts" in inputs and answer.contexts is not None:
        blocks["contexts"] = [context.text for context in answer.contexts]
    if "passages" in inputs and answer.contexts is not None:
        blocks["contexts"] = numbered(answer.contexts)
    return {**blocks, "answer": answer.text}


def reference_block(question: QuestionSpec) -> dict[str, Any]:
    """The expected answers, else the expected keywords as required points, else nothing."""
    if question.references:
        return {"reference": list(question.references)}
    if question.keywords:
        return {"required_points": [list(alternatives) for alternatives in question.keywords]}
    return {}


def numbered(contexts: Collection[ContextSpec], first: int = 1) -> list[dict[str, Any]]:
    """Passages with the number a judge refers to them by, and where they come from."""
    return [
        {"number": number, **({"source": source} if (source := source_of(context)) else {}), "text": context.text}
        for number, context in enumerate(contexts, start=first)
    ]


def source_of(context: ContextSpec) -> str:
    """Where a passage comes from, as far as it says: its source, else its regulation and article, else its title."""
    said = context.metadata
    regulation = " ".join(str(said[key]) for key in ("regulation", "article") if said.get(key))
    return context.source or regulation or str(said.get("title") or "")


def shown(case: Case) -> frozenset[str]:
    """Every input that the case's metrics need or are shown."""
    return frozenset(name for spec in case.specs for name in (*spec.inputs, *spec.optional_inputs))


LEAST_ALIKE = 0.6  # share of the quote's content words that a sentence must hold to be taken for its place


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text, the end exclusive. ``approximate``: found by likeness, not word for word."""

    start: int
    end: int
    approximate: bool = False


def locate(quote: str, text: str, after: int = 0) -> Span | None:
    """The place of the quote, the first from ``after`` on where it stands there too; ``None`` where nothing in the
    text is like it.

    Case, white space, width and quotation marks do not matter. Where the words differ, the sentence that holds most
    of the quote's content words is taken, from 60% on, and marked approximate.
    """
    quote = quote.strip()
    if not quote:
        return None
    if after and (place := locate(quote, text[after:])) and not place.approximate:
        return Span(place.start + after, place.end + after)
    start = text.find(quote)
    if start >= 0:
        return Span(start, start + len(quote))
    view = fold(text)
    wanted = fold(quote).text.strip(" .…")
    start = view.text.find(wanted) if wanted else -1
    if start >= 0:
        return Span(*view.span(start, start + len(wanted)))
    return _most_alike(quote, text)


def placed(part: Finding, place: Span | None) -> Finding:
    """The part of an answer with its place there, where it has one."""
    if place is None:
        return part
    return replace(part, start=place.start, end=place.end, approximate=place.approximate)


def _most_alike(quote: str, text: str) -> Span | None:
    words = content_words(quote)
    if not words:
        return None
    view = fold(text)
    best, place = 0.0, None
    for start, end in sentences(fold_with_lines(text)):
        share = coverage(words, content_words(view.text[start:end]))
        if share > best:
            best, place = share, (start, end)
    if place is None or best < LEAST_ALIKE:
        return None
    start, end = view.span(*place)
    kept = text[start:end]
    return Span(start + len(kept) - len(kept.lstrip()), end - len(kept) + len(kept.rstrip()), approximate=True)


_LONGEST_NUMBER = 18


def hear(reply: JudgeReply, ask: Ask, rung: Rung = Rung.JSON_SCHEMA) -> Heard:
    """What stands in a reply. Never raises for it. ``rung`` says where the object has to stand.

    A delivered reply has outcome ``parse`` when it is not one JSON object, has a part that was not asked for, no part
    of the right shape, or, where the ask wants the whole, not all of them.
    """
    if reply.outcome is not Outcome.OK:
        return Heard(reply.outcome, {})
    shapes: Mapping[str, Any] = (ask.shape or ask.schema)["properties"]
    place = find_verdict(reply.raw, rung)
    found = one_object(reply.raw[slice(*place)]) if place else None
    if found is None or not found.keys() <= shapes.keys():
        return Heard(Outcome.PARSE, {})
    try:
        parts = {name: _storable(part) for name, part in found.items() if conforms(part, shapes[name])}
    except RecursionError:  # nested deeper than any verdict
        return Heard(Outcome.PARSE, {})
    if not parts or (ask.whole and len(parts) < len(shapes)):
        return Heard(Outcome.PARSE, {})
    return Heard(Outcome.OK, parts, level_chances(reply, ask, rung, parts))


def one_object(text: str) -> dict[str, Any] | None:
    """The reply's one JSON object; ``None`` for anything before or after it, a repeated key, or no object."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_int=_number, parse_float=_real)
    except (ValueError, RecursionError):  # RecursionError: nested deeper than any verdict
        return None
    return value if isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is there twice")
    return value


def _number(digits: str) -> int | float:
    """Numbers too long to be a level stay numbers, so that they fail by scale and not by length."""
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float("inf")


def _real(digits: str) -> int | float:
    """A real that is whole, such as 4.0, is the whole number: JSON does not tell the two apart."""
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) < 10**_LONGEST_NUMBER else value


def _storable(part: Any) -> Any:
    """The part with every text as a database takes it."""
    if isinstance(part, str):
        return storable(part.strip())
    if isinstance(part, list):
        return [_storable(item) for item in part]
    if isinstance(part, dict):
        return {key: _storable(item) for key, item in part.items()}
    return part
