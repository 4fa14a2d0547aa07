"""Where the rows of a question set stand in its file, and what their section says of category and difficulty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluation.core.canonical import composed
from evaluation.formats.tree import Kind, Node, Problems, plain
from evaluation.formats.values import folded, rows_of

# Names that files give the one list of their rows; any other name is that of a category.
_WRAPPERS = {
    *("data", "dataset", "rows", "items", "records", "entries", "examples", "samples", "instances", "tests"),
    *("test_cases", "testcases", "test_set", "eval_set", "queries", "goldens", "oracle", "qa_pairs"),
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A row and what its section says: ``category`` is ``None`` in flat lists, where each row names its own."""

    node: Node
    category: str | None = None
    difficulty: Node | None = None


def place_rows(root: Node, problems: Problems) -> tuple[list[Placed], dict[str, Any]]:
    """The rows in the order of the file, and what the file says about the set as a whole.

    Shapes: ``categories: {name: {difficulty, questions: [...]}}`` (or the list alone), ``{name: [...]}``, a flat
    list, and ``{questions: [...], ...}`` (or ``data``, ``test_cases`` …), a flat list with facts about the set beside
    it.

    :raises InvalidFile: where the file has none of them.
    """
    if root.kind is Kind.LIST:
        return [Placed(row) for row in rows_of(root, problems)], {}
    entries = root.entries
    if "categories" in entries and entries["categories"].kind is Kind.MAP:
        facts = {key: plain(node) for key, node in entries.items() if key != "categories"}
        return _sections(entries["categories"].entries, facts, problems)
    if "questions" in entries and entries["questions"].kind is Kind.LIST:
        facts = {key: plain(node) for key, node in entries.items() if key != "questions"}
        return [Placed(row) for row in rows_of(entries["questions"], problems)], facts
    rows = [(key, node) for key, node in entries.items() if node.kind is Kind.LIST]
    if len(rows) == 1 and folded(rows[0][0]) in _WRAPPERS:
        facts = {key: plain(node) for key, node in entries.items() if key != rows[0][0]}
        return [Placed(row) for row in rows_of(rows[0][1], problems)], facts
    sections = {key: node for key, node in entries.items() if node.kind is Kind.LIST or "questions" in node.entries}
    if not sections:
        problems.stop("shape_questions", root.line, found=root.kind.value)
    facts = {key: plain(node) for key, node in entries.items() if key not in sections}
    return _sections(sections, facts, problems)


def _sections(
    sections: dict[str, Node], facts: dict[str, Any], problems: Problems
) -> tuple[list[Placed], dict[str, Any]]:
    placed: list[Placed] = []
    about: dict[str, Any] = {}
    for category, section in sections.items():
        questions = section.entries.get("questions", section)
        if questions.kind is not Kind.LIST:
            if questions.kind is not Kind.NULL:
                problems.add("not_list", questions.line, category, found=questions.kind.value)
            continue
        difficulty = section.entries.get("difficulty")
        placed += [Placed(row, composed(category.strip()), difficulty) for row in rows_of(questions, problems)]
        others = {k: plain(n) for k, n in section.entries.items() if k not in {"questions", "difficulty"}}
        if others:
            about[category] = others
    return placed, facts | ({"categories": about} if about else {})
