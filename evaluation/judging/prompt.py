"""The judge's request: the rubric as system message, what is shown of question and answer as marked blocks of plain
JSON values, the instruction after them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from evaluation.core.canonical import canonical_json, canonical_texts
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec
from evaluation.judging.asking import Case
from evaluation.judging.calls import Ask, JudgeCall, Outcome, Rendered, Rung
from evaluation.judging.rubric import Rubric

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Format characters and separators that a reader does not see; as escapes they cannot hide words from the judge.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_MOST_OUTPUT_TOKENS = 32_000


def render(rubric: Rubric, ask: Ask) -> Rendered:
    """The request for what is asked: only the blocks of the ask are shown.

    :raises UnknownName: for a metric or step that the rubric does not hold.
    """
    blocks = {name: _encoded(value) for name, value in ask.blocks.items()}
    mark = _mark(rubric, blocks)
    data = "\n\n".join(f"BEGIN {name} {mark}\n{text}\nEND {name} {mark}" for name, text in blocks.items())
    system, closing = _words(rubric, ask.names, ask.step)
    messages = ({"role": "system", "content": system}, {"role": "user", "content": f"{data}\n\n{closing}"})
    material = {"rubric": rubric.content_hash, "messages": [dict(m) for m in messages], "schema": ask.schema}
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
    after a truncated one. The broken reply itself is not shown to the judge again."""
    if outcome is Outcome.TRUNCATED:
        budget = {k: min(v * 2, _MOST_OUTPUT_TOKENS) for k, v in call.parameters.items() if k in _BUDGETS}
        return replace(call, parameters={**call.parameters, **budget})
    messages = (*call.rendered.messages, {"role": "user", "content": call.rubric.repair.strip()})
    material = {**call.rendered.request_hash_material, "messages": [dict(m) for m in messages]}
    return replace(call, rendered=replace(call.rendered, messages=messages, request_hash_material=material))


_BUDGETS = frozenset({"max_tokens", "max_completion_tokens"})


def _encoded(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if text.isascii():  # nothing of what follows is
        return text
    return _INVISIBLE.sub(_escape, _LONE_SURROGATE.sub("\ufffd", text))


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


def _mark(rubric: Rubric, blocks: Mapping[str, str]) -> str:
    """Hash of the content: the same request has the same mark, and no text can hold the mark of itself."""
    digest = hashlib.sha256(rubric.content_hash.encode())
    for name, text in blocks.items():
        digest.update(f"\0{name}\0{text}".encode())
    return digest.hexdigest()[:24]


def data_blocks(question: QuestionSpec, answer: AnswerSpec, inputs: Collection[str]) -> dict[str, Any]:
    """The blocks of a plain request, the answer last. ``inputs`` are those that the metrics declare; the expected
    keywords stand in for a missing reference as required points."""
    blocks: dict[str, Any] = {}
    if "persona" in inputs and question.persona:
        blocks["persona"] = question.persona
    if "history" in inputs and question.history:
        blocks["history"] = list(question.history)
    blocks["question"] = question.text
    if "reference" in inputs:
        blocks |= reference_block(question)
    if "required_info" in inputs and question.required_info:
        blocks["required_info"] = list(question.required_info)
    if "clarification_ok" in inputs and question.clarification_ok:
        blocks["clarification_ok"] = True
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
