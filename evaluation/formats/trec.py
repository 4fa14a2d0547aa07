"""TREC's text forms to a tree: topics (``<top>`` or a line of id, tab and text each), runs, and judgements (qrels)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.core.canonical import composed
from evaluation.formats.tree import Kind, Limits, Node, Problems, TreeBuilder

_NUMBER = r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|(?i:nan|inf|infinity))"
# Nobody reads the second column, so tools write anything there: Q0, 0, an iteration.
_RUN = re.compile(rf"\S+\s+\S+\s+\S+\s+[0-9]+\s+{_NUMBER}\s+\S+\s*")
_QRELS = re.compile(rf"\S+\s+\S+\s+\S+\s+{_NUMBER}\s*")
_TOPIC = re.compile(r"[\w.-]*[0-9]\t[^\t]+")
_TAG = re.compile(r"<(num|title|desc|narr)>([^<]*)", re.IGNORECASE)
_LABEL = re.compile(r"\s*(?:Number|Topic|Description|Narrative)\s*:\s*", re.IGNORECASE)
_BEIR = ("query-id", "corpus-id", "score")
TOPICS, RUN, QRELS = "trec_topics", "trec_run", "trec_qrels"


def trec_form(text: str) -> str:
    """Which of the forms the text has by its first lines, empty for none."""
    lines = [line for line in text[:10_000].split("\n")[:5] if line.strip()][:2]
    for form, pattern in ((RUN, _RUN), (QRELS, _QRELS), (TOPICS, _TOPIC)):
        if lines and all(pattern.fullmatch(line.rstrip("\r")) for line in lines):
            return form
    return TOPICS if lines and lines[0].lstrip().lower().startswith("<top>") else ""


def read_topics(text: str, problems: Problems, limits: Limits) -> Node:
    """A row with id, question, description and narrative for each topic; the title is the question, else the
    description."""
    builder, rows = TreeBuilder(problems, limits), []
    if "<top>" in text[:10_000].lower():
        line = 1
        for part in re.split(r"(?i)(?=<top>)", text):
            found = {tag.lower(): " ".join(_LABEL.sub("", words, count=1).split()) for tag, words in _TAG.findall(part)}
            question = found.get("title") or found.get("desc", "")
            names = {"id": found.get("num", ""), "question": question, "description": found.get("desc", "")}
            if found:
                rows.append(_row(names | {"narrative": found.get("narr", "")}, line, builder))
            line += part.count("\n")
        return Node(Kind.LIST, rows, 1)
    for number, words in _lines(text, 2, problems, limits, separator="\t"):
        rows.append(_row({"id": words[0].strip(), "question": words[1].strip()}, number, builder))
    return Node(Kind.LIST, rows, 1)


def read_run(text: str, problems: Problems, limits: Limits) -> Node:
    """A row with question_id, retrieved_context_ids and system for each topic. As trec_eval does, the score orders the
    passages, and the later id comes first where scores are equal; the rank is not looked at."""
    builder = TreeBuilder(problems, limits)
    found: dict[str, list[tuple[float, str]]] = {}
    first: dict[str, tuple[int, str]] = {}
    for number, (topic, _, passage, _, score, tag) in _lines(text, 6, problems, limits):
        value = _finite(score, number, problems)
        found.setdefault(topic, []).append((value, passage))
        first.setdefault(topic, (number, tag))
    rows = []
    for topic, passages in found.items():
        line, tag = first[topic]
        ids = [Node(Kind.TEXT, passage, line) for _, passage in sorted(passages, reverse=True)]
        row = _row({"question_id": topic, "system": tag}, line, builder)
        rows.append(row._replace(value=row.entries | {"retrieved_context_ids": Node(Kind.LIST, ids, line)}))
    return Node(Kind.LIST, rows, 1)


def read_qrels(text: str, problems: Problems, limits: Limits) -> dict[str, dict[str, float]]:
    """The grades by question id and id of the passage, from TREC's four columns or BEIR's three with their header.

    :raises InvalidFile: for anything else.
    """
    beir = tuple(text.partition("\n")[0].split()) == _BEIR
    if not beir and trec_form(text) != QRELS:
        problems.stop("qrels_expected")
    grades: dict[str, dict[str, float]] = {}
    for number, words in _lines(text, 3 if beir else 4, problems, limits):
        if beir and number == 1:
            continue
        topic, passage, grade = composed(words[0]), composed(words[-2]), words[-1]
        grades.setdefault(topic, {})[passage] = _finite(grade, number, problems)
    problems.refuse_if_any()
    return grades


def _finite(text: str, line: int, problems: Problems) -> float:
    """The number that the text writes; that it is none, or not finite, is a problem."""
    if re.fullmatch(_NUMBER, text) and math.isfinite(value := float(text)):
        return value
    problems.add("not_number", line, "score", value=text[:80])
    return 0.0


def topic_line(record: Mapping[str, Any]) -> Iterator[str]:
    """A question as a line of id, tab and text."""
    if record["first_of_question"]:
        yield f"{_word(record['question_id'])}\t{' '.join(record['question'].split())}\n"


def qrels_line(record: Mapping[str, Any]) -> Iterator[str]:
    """The passages that should be found, a line each."""
    if record["first_of_question"]:
        for passage in record["ground_truth_chunk_ids"]:
            yield f"{_word(record['question_id'])} 0 {_word(passage)} 1\n"


def run_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """The passages that were found, with scores that fall with their order."""
    ids = record["retrieved_context_ids"]
    found = [one["id"] for one in record["contexts"] or () if "id" in one] if ids is None else ids
    if record["first_of_question"]:
        for rank, passage in enumerate(found, start=1):
            tag = _word(record["system"] or "run")
            yield f"{_word(record['question_id'])} Q0 {_word(passage)} {rank} {len(found) - rank + 1} {tag}\n"


def _word(name: str) -> str:
    """A name without white space, which would end it."""
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
    entries = {name: Node(Kind.TEXT, builder.storable(text, line, name), line) for name, text in fields.items() if text}
    return Node(Kind.MAP, entries, line)
