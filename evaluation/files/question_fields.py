"""The fields of one question: names, aliases and types."""

from __future__ import annotations

from typing import Any

from evaluation.core.samples import CheckPhrases, Nugget
from evaluation.files.tree import Kind, Node, plain
from evaluation.files.values import (
    Row,
    boolean_of,
    expand_cell,
    read_integer,
    read_keywords,
    read_name,
    read_text,
    read_texts,
)

ID = ("id", "query_id", "qid", "input_id")
TEXT = ("question", "query", "user_input", "input")
REFERENCE = (
    "expected_answer",
    "ground_truth",
    "reference",
    "expected_output",
    "expected_response",
    "gt_answer",
    "gold_answers",
    "target",
)
BUILT_IN_CHECKS = (
    "should_not_hallucinate",
    "should_correct_premise",
    "should_not_fabricate_data",
    "should_provide_accurate_disclaimer",
)
MOST_HOPS = 1_000
_PHRASE_KEYS = ("all_of", "any_of", "none_of")


def read_fields(row: Row) -> dict[str, Any]:
    """The optional fields of a question as arguments of ``QuestionSpec``; absent ones keep its defaults."""
    fields: dict[str, Any] = {
        "references": row.texts(*REFERENCE),
        "check": row.name("check"),
        "check_phrases": _check_phrases(row),
        "aggregation_type": row.name("aggregation_type"),
        "inference_type": row.name("inference_type"),
        "required_info": row.texts("required_info"),
        "nuggets": _nuggets(row),
        "ground_truth_chunk_ids": row.texts("ground_truth_chunk_ids", "reference_context_ids"),
        "persona": row.text("persona"),
        "history": _history(row),
        "clarification_ok": row.boolean("clarification_ok", False),
        "tags": row.texts("tags"),
    }
    keywords = row.take("expected_keywords")
    if keywords is not None:
        fields["keywords"] = read_keywords(keywords, "expected_keywords", row.problems)
    hops = row.peek("hops")
    if hops is not None and hops.kind is not Kind.LIST:
        row.take("hops")
        fields["hops"] = read_integer(hops, "hops", row.problems, 0, MOST_HOPS)
    return fields


def _check_phrases(row: Row) -> CheckPhrases | None:
    """``{all_of, any_of, none_of}``; a plain list means ``any_of``."""
    taken = row.take("check_phrases")
    if taken is None:
        return None
    node = expand_cell(taken, "check_phrases", row.problems)
    if node.kind is not Kind.MAP:
        phrases = {"any_of": read_texts(node, "check_phrases", row.problems)}
    else:
        _refuse_unknown(node, "check_phrases", _PHRASE_KEYS, row)
        phrases = {
            key: read_texts(child, f"check_phrases.{key}", row.problems)
            for key, child in node.entries.items()
            if key in _PHRASE_KEYS and not child.absent
        }
    return CheckPhrases(**phrases) if any(phrases.values()) else None


def _refuse_unknown(node: Node, field: str, known: tuple[str, ...], row: Row) -> None:
    for key, child in node.entries.items():
        if key not in known:
            row.problems.add("unknown_key", child.line, field, key=key, known=", ".join(known))


def _items(row: Row, name: str) -> list[Node]:
    """The elements of a list field; a single text is a list of one."""
    taken = row.take(name)
    if taken is None:
        return []
    node = expand_cell(taken, name, row.problems)
    return node.elements if node.kind in {Kind.LIST, Kind.NULL} else [node]


def _nuggets(row: Row) -> tuple[Nugget, ...]:
    """Each a name, or ``{name, alternatives, vital}``; ``importance: vital | okay`` says the same as ``vital``."""
    nuggets = []
    for i, node in enumerate(_items(row, "nuggets")):
        place = f"nuggets[{i}]"
        if node.kind is Kind.MAP:
            nuggets.append(_nugget(node, place, row))
        else:
            nuggets.append(Nugget(name=_required(read_text(node, place, row.problems), node, place, row)))
    return tuple(nuggets)


def _nugget(node: Node, place: str, row: Row) -> Nugget:
    inner = Row(node, row.problems)
    name = _required(inner.text("name", "text"), node, place, row)
    vital_node, importance = inner.take("vital"), inner.name("importance").lower()
    vital = importance != "okay"
    if vital_node is not None:
        truth = boolean_of(vital_node)
        if truth is None:
            row.problems.add("not_boolean", vital_node.line, f"{place}.vital", value=str(plain(vital_node))[:80])
        vital = bool(truth)
    if importance not in {"", "vital", "okay"}:
        row.problems.add("unknown_choice", node.line, place, value=importance, known="vital, okay")
    alternatives = inner.texts("alternatives")
    for key in inner.rest():
        row.problems.add("unknown_key", node.line, place, key=key, known="name, alternatives, vital, importance")
    return Nugget(name=name, alternatives=alternatives, vital=vital)


def _required(text: str, node: Node, place: str, row: Row) -> str:
    if not text.strip():
        row.problems.add("empty_item", node.line, place)
    return text.strip()


def _history(row: Row) -> tuple[str, ...]:
    """Earlier turns: texts, or ``{role, content}`` written as ``role: content``."""
    turns = []
    for i, node in enumerate(_items(row, "history")):
        place = f"history[{i}]"
        if node.kind is Kind.MAP:
            inner = Row(node, row.problems)
            role, content = inner.name("role", "speaker"), inner.text("content", "text")
            turns.append(_required(f"{role}: {content}" if role and content else content, node, place, row))
        else:
            turns.append(_required(read_text(node, place, row.problems), node, place, row))
    return tuple(turns)


def read_difficulty(row: Row, section: Node | None) -> str:
    """The row's difficulty, else its section's."""
    own = row.name("difficulty")
    return own or ("" if section is None else read_name(section, "difficulty", row.problems))
