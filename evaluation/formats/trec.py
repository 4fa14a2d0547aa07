"""TREC text formats to a parse tree: topics (``<top>``, or lines of id, tab and text), runs and relevance judgements
(qrels)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.core.canonical import normalize_nfc
from evaluation.formats.tree import Limits, Node, NodeKind, Problems, TreeBuilder

_NUMBER = r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|(?i:nan|inf|infinity))"
# The second column is unused, so tools write anything into it: Q0, 0, an iteration.
_RUN = re.compile(rf"\S+\s+\S+\s+\S+\s+[0-9]+\s+{_NUMBER}\s+\S+\s*")
_QRELS = re.compile(rf"\S+\s+\S+\s+\S+\s+{_NUMBER}\s*")
_TOPIC = re.compile(r"[\w.-]*[0-9]\t[^\t]+")
_TAG = re.compile(r"<(num|title|desc|narr)>([^<]*)", re.IGNORECASE)
_LABEL = re.compile(r"\s*(?:Number|Topic|Description|Narrative)\s*:\s*", re.IGNORECASE)
_BEIR = ("query-id", "corpus-id", "score")
TOPICS, RUN, QRELS = "trec_topics", "trec_run", "trec_qrels"


def detect_trec_form(text: str) -> str:
    """Detect the TREC form from the first lines; empty for none."""
    lines = [line for line in text[:10_000].split("\n")[:5] if line.strip()][:2]
    for form, pattern in ((RUN, _RUN), (QRELS, _QRELS), (TOPICS, _TOPIC)):
        if lines and all(pattern.fullmatch(line.rstrip("\r")) for line in lines):
            return form
    return TOPICS if lines and lines[0].lstrip().lower().startswith("<top>") else ""


def read_topics(text: str, problems: Problems, limits: Limits) -> Node:
    """Return a row per topic with id, question, description and narrative.

    The question is the title, else the description."""
    builder, rows = TreeBuilder(problems, limits), []
    if "<top>" in text[:10_000].lower():
        line = 1
        for topic in re.split(r"(?i)(?=<top>)", text):
            tags = {tag.lower(): " ".join(_LABEL.sub("", words, count=1).split()) for tag, words in _TAG.findall(topic)}
            question = tags.get("title") or tags.get("desc", "")
            row = {"id": tags.get("num", ""), "question": question, "description": tags.get("desc", "")}
            if tags:
                rows.append(_row(row | {"narrative": tags.get("narr", "")}, line, builder))
            line += topic.count("\n")
        return Node(NodeKind.LIST, rows, 1)
    for number, words in _lines(text, 2, problems, limits, separator="\t"):
        rows.append(_row({"id": words[0].strip(), "question": words[1].strip()}, number, builder))
    return Node(NodeKind.LIST, rows, 1)


def read_run(text: str, problems: Problems, limits: Limits) -> Node:
    """Return a row per topic with question_id, retrieved_context_ids and system.

    As in trec_eval, passages are ordered by score, ties by descending id; ranks are ignored."""
    builder = TreeBuilder(problems, limits)
    passages_by_topic: dict[str, list[tuple[float, str]]] = {}
    first_lines: dict[str, tuple[int, str]] = {}
    for number, (topic, _, passage, _, score, tag) in _lines(text, 6, problems, limits):
        value = _parse_finite(score, number, problems)
        passages_by_topic.setdefault(topic, []).append((value, passage))
        first_lines.setdefault(topic, (number, tag))
    rows = []
    for topic, passages in passages_by_topic.items():
        line, tag = first_lines[topic]
        ids = [Node(NodeKind.TEXT, passage, line) for _, passage in sorted(passages, reverse=True)]
        row = _row({"question_id": topic, "system": tag}, line, builder)
        rows.append(row._replace(value=row.entries | {"retrieved_context_ids": Node(NodeKind.LIST, ids, line)}))
    return Node(NodeKind.LIST, rows, 1)


def read_qrels(text: str, problems: Problems, limits: Limits) -> dict[str, dict[str, float]]:
    """Return question id -> passage id -> grade, from TREC's four columns or BEIR's three with header.

    :raises InvalidFile: for anything else."""
    beir = tuple(text.partition("\n")[0].split()) == _BEIR
    if not beir and detect_trec_form(text) != QRELS:
        problems.stop("qrels_expected")
    grades: dict[str, dict[str, float]] = {}
    for number, words in _lines(text, 3 if beir else 4, problems, limits):
        if beir and number == 1:
            continue
        topic, passage, grade = normalize_nfc(words[0]), normalize_nfc(words[-2]), words[-1]
        grades.setdefault(topic, {})[passage] = _parse_finite(grade, number, problems)
    problems.refuse_if_any()
    return grades


def _parse_finite(text: str, line: int, problems: Problems) -> float:
    """Parse a number; note a problem and return 0 if it is invalid or not finite."""
    if re.fullmatch(_NUMBER, text) and math.isfinite(value := float(text)):
        return value
    problems.add("not_number", line, "score", value=text[:80])
    return 0.0


def topic_line(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a question as a line of id, tab and text."""
    if record["first_of_question"]:
        yield f"{_replace_spaces(record['question_id'])}\t{' '.join(record['question'].split())}\n"


def qrels_line(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each relevant passage."""
    if record["first_of_question"]:
        for passage in record["ground_truth_chunk_ids"]:
            yield f"{_replace_spaces(record['question_id'])} 0 {_replace_spaces(passage)} 1\n"


def run_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each retrieved passage, with scores that decrease with the rank."""
    ids = record["retrieved_context_ids"]
    passage_ids = [context["id"] for context in record["contexts"] or () if "id" in context] if ids is None else ids
    if record["first_of_question"]:
        question, system = _replace_spaces(record["question_id"]), _replace_spaces(record["system"] or "run")
        for rank, passage in enumerate(passage_ids, start=1):
            score = len(passage_ids) - rank + 1
            yield f"{question} Q0 {_replace_spaces(passage)} {rank} {score} {system}\n"


def _replace_spaces(name: str) -> str:
    """Replace white space in a name, since it separates columns."""
    return "_".join(name.split())


def _lines(
    text: str, columns: int, problems: Problems, limits: Limits, separator: str | None = None
) -> list[tuple[int, Sequence[str]]]:
    rows: list[tuple[int, Sequence[str]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if number > limits.rows:
            problems.stop("too_many_rows", number, limit=limits.rows)
        words = line.split(separator)
        if len(words) == columns:
            rows.append((number, words))
        elif line.strip():
            problems.add("ragged_row", number, found=len(words), expected=columns)
    return rows


def _row(fields: dict[str, str], line: int, builder: TreeBuilder) -> Node:
    entries = {
        name: Node(NodeKind.TEXT, builder.make_storable(text, line, name), line)
        for name, text in fields.items()
        if text
    }
    return Node(NodeKind.MAP, entries, line)
