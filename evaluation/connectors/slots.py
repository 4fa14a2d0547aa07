"""Named slots of a request, such as ``{question}`` in a text, an address or a JSON body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from evaluation.connectors.protocol import SystemCall, chat_turns

SLOT = re.compile(r"\{([A-Za-z_]+)\}")
SLOTS = {
    "question": "the question's text",
    "query": "same as question",
    "k": "number of passages requested",
    "id": "the question's id",
    "category": "the question's category",
    "persona": "persona",
    "history": "earlier turns as chat messages",
    "sample": "the number of the answer, from 0",
    "evaluation_type": "full_rag or retrieval_only",
}


def slot_values(call: SystemCall) -> dict[str, Any]:
    """Value of each slot."""
    question = call.question
    return {
        "question": question.text,
        "query": question.text,
        "k": call.k,
        "id": question.id,
        "category": question.category,
        "persona": question.persona,
        "history": chat_turns(question.history),
        "sample": call.sample,
        "evaluation_type": call.evaluation_type,
    }


def unknown_slots(template: Any, known_slots: Mapping[str, Any] | None = None) -> list[str]:
    """Unknown slots of a template, at any depth."""
    known_slots = SLOTS if known_slots is None else known_slots
    if isinstance(template, str):
        return [name for name in SLOT.findall(template) if name not in known_slots]
    if isinstance(template, Mapping):
        return [name for key, value in template.items() for name in unknown_slots([key, value], known_slots)]
    return (
        [name for value in template for name in unknown_slots(value, known_slots)] if isinstance(template, list) else []
    )


def fill_slots(template: Any, replacements: Mapping[str, Any]) -> Any:
    """Fill the slots of a template. A text that is one slot becomes the value itself (a number, a list); in other texts
    the value's text is inserted. Inserted values are not filled again."""
    if isinstance(template, str):
        single_slot = SLOT.fullmatch(template)
        return (
            replacements[single_slot[1]]
            if single_slot
            else SLOT.sub(lambda match: _text(replacements[match[1]]), template)
        )
    if isinstance(template, Mapping):
        return {key: fill_slots(value, replacements) for key, value in template.items()}
    return [fill_slots(value, replacements) for value in template] if isinstance(template, list) else template


def fill_address(template: str, replacements: Mapping[str, Any]) -> str:
    """Fill the slots of an address with escaped values."""
    return SLOT.sub(lambda match: quote(_text(replacements[match[1]]), safe=""), template)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(f"{turn['role']}: {turn['content']}" for turn in value)
    return str(value)
