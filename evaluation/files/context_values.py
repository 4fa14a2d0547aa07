"""Retrieved passages: texts, or objects in the spellings of several systems."""

from __future__ import annotations

from evaluation.core.samples import VALUE_BOUND, ContextSpec
from evaluation.files.problems import Problems
from evaluation.files.row import Row
from evaluation.files.tree import Kind, Node
from evaluation.files.values import expand_cell, read_number, read_text


def read_contexts(node: Node, field: str, problems: Problems) -> tuple[ContextSpec, ...] | None:
    """The passages in their order; ``[]`` means that nothing was retrieved, ``null`` that the system retrieves
    nothing ever."""
    expanded = expand_cell(node, field, problems)
    if expanded.kind is Kind.NULL:
        return None
    if expanded.kind is not Kind.LIST:
        problems.add("not_list", node.line, field, found=expanded.kind.value)
        return None
    return tuple(_context(item, f"{field}[{i}]", problems) for i, item in enumerate(expanded.elements))


def _context(node: Node, field: str, problems: Problems) -> ContextSpec:
    if node.kind is not Kind.MAP:
        text = read_text(node, field, problems)
        if not text.strip():
            problems.add("context_empty", node.line, field)
        return ContextSpec(text)
    row = Row(node, problems)
    text_node, score = row.take("text", "content"), row.take("score")
    text = "" if text_node is None else read_text(text_node, field, problems)
    chunk_id = row.name("id", "chunk_id", "doc_id")
    if not text.strip() and not chunk_id:
        problems.add("context_empty", node.line, field)
    return ContextSpec(
        text=text,
        chunk_id=chunk_id,
        score=None if score is None else read_number(score, f"{field}.score", problems, -VALUE_BOUND, VALUE_BOUND),
        source=row.name("source"),
        metadata=row.rest(),
    )
