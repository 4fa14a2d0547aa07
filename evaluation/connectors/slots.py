"""Named slots of a request: ``{question}`` in a text, an address or a JSON body stands for what is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from evaluation.connectors.protocol import SystemCall, turns

SLOT = re.compile(r"\{([A-Za-z_]+)\}")
SLOTS = {
    "question": "the question's text",
    "query": "the same",
    "k": "how many passages are wanted",
    "id": "the question's id",
    "category": "the question's category",
    "persona": "who asks",
    "history": "earlier turns as chat messages",
    "sample": "the number of the answer, from 0",
    "evaluation_type": "full_rag or retrieval_only",
}


def values(call: SystemCall) -> dict[str, Any]:
    """What each slot stands for."""
    question = call.question
    return {
        "question": question.text,
        "query": question.text,
        "k": call.k,
        "id": question.id,
        "category": question.category,
        "persona": question.persona,
        "history": turns(question.history),
        "sample": call.sample,
        "evaluation_type": call.evaluation_type,
    }


def unknown_slots(template: Any, known: Mapping[str, Any] | None = None) -> list[str]:
    """The slots of a template, at whatever depth, that stand for nothing."""
    known = SLOTS if known is None else known
    if isinstance(template, str):
        return [name for name in SLOT.findall(template) if name not in known]
    if isinstance(template, Mapping):
        return [name for key, value in template.items() for name in unknown_slots([key, value], known)]
    return [name for value in template for name in unknown_slots(value, known)] if isinstance(template, list) else []


def filled(template: Any, told: Mapping[str, Any]) -> Any:
    """The template with its slots filled: a text that is one slot becomes the value itself (a number, a list), in
    other texts the value's text is put in. What is put in is not looked at again."""
    if isinstance(template, str):
        whole = SLOT.fullmatch(template)
        return told[whole[1]] if whole else SLOT.sub(lambda match: _text(told[match[1]]), template)
    if isinstance(template, Mapping):
        return {key: filled(value, told) for key, value in template.items()}
    return [filled(value, told) for value in template] if isinstance(template, list) else template


def filled_address(template: str, told: Mapping[str, Any]) -> str:
    """An address with its slots filled and escaped, so that no value reaches beyond its place."""
    return SLOT.sub(lambda match: quote(_text(told[match[1]]), safe=""), template)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(f"{turn['role']}: {turn['content']}" for turn in value)
    return str(value)
