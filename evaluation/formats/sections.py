"""Rows of a question set, with the category and difficulty of their section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluation.core.canonical import normalize_nfc
from evaluation.formats.tree import Node, NodeKind, Problems, plain_value
from evaluation.formats.values import fold_name, mapping_rows

# Names of the single list of rows; any other name is a category.
_WRAPPERS = {
    *("data", "dataset", "rows", "items", "records", "entries", "examples", "samples", "instances", "tests"),
    *("test_cases", "testcases", "test_set", "eval_set", "queries", "goldens", "oracle", "qa_pairs"),
}


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row with its section's fields; ``category`` is ``None`` in flat lists, where each row names its own."""

    node: Node
    category: str | None = None
    difficulty: Node | None = None


def locate_rows(root: Node, problems: Problems) -> tuple[list[PlacedRow], dict[str, Any]]:
    """Return the rows in file order and the metadata of the set.

    Shapes: ``categories: {name: {difficulty, questions: [...]}}`` (or the list alone), ``{name: [...]}``, a flat list,
    and ``{questions: [...], ...}`` (or ``data``, ``test_cases`` …), a flat list with metadata of the set.

    :raises InvalidFile: for any other shape."""
    if root.kind is NodeKind.LIST:
        return [PlacedRow(row) for row in mapping_rows(root, problems)], {}
    entries = root.entries
    if "categories" in entries and entries["categories"].kind is NodeKind.MAP:
        set_metadata = {key: plain_value(node) for key, node in entries.items() if key != "categories"}
        return _sections(entries["categories"].entries, set_metadata, problems)
    if "questions" in entries and entries["questions"].kind is NodeKind.LIST:
        set_metadata = {key: plain_value(node) for key, node in entries.items() if key != "questions"}
        return [PlacedRow(row) for row in mapping_rows(entries["questions"], problems)], set_metadata
    lists = [(key, node) for key, node in entries.items() if node.kind is NodeKind.LIST]
    if len(lists) == 1 and fold_name(lists[0][0]) in _WRAPPERS:
        set_metadata = {key: plain_value(node) for key, node in entries.items() if key != lists[0][0]}
        return [PlacedRow(row) for row in mapping_rows(lists[0][1], problems)], set_metadata
    sections = {key: node for key, node in entries.items() if node.kind is NodeKind.LIST or "questions" in node.entries}
    if not sections:
        problems.stop("shape_questions", root.line, found=root.kind.value)
    set_metadata = {key: plain_value(node) for key, node in entries.items() if key not in sections}
    return _sections(sections, set_metadata, problems)


def _sections(
    sections: dict[str, Node], set_metadata: dict[str, Any], problems: Problems
) -> tuple[list[PlacedRow], dict[str, Any]]:
    placed_rows: list[PlacedRow] = []
    category_metadata: dict[str, Any] = {}
    for category, section in sections.items():
        questions = section.entries.get("questions", section)
        if questions.kind is not NodeKind.LIST:
            if questions.kind is not NodeKind.NULL:
                problems.add("not_list", questions.line, category, found=questions.kind.value)
            continue
        difficulty = section.entries.get("difficulty")
        placed_rows += [
            PlacedRow(row, normalize_nfc(category.strip()), difficulty) for row in mapping_rows(questions, problems)
        ]
        extra = {k: plain_value(n) for k, n in section.entries.items() if k not in {"questions", "difficulty"}}
        if extra:
            category_metadata[category] = extra
    return placed_rows, set_metadata | ({"categories": category_metadata} if category_metadata else {})
