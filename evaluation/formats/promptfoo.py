"""promptfoo assertions: expected texts become references and keywords; other assertions stay unchanged and are
counted."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from evaluation.formats.tree import Node, NodeKind

#: Assertions whose value is an expected answer, verbatim or in meaning.
_REFERENCES = {"equals", "similar", "similar:cosine", "similar:dot", "similar:euclidean", "factuality"}
_REFERENCES |= {"model-graded-factuality"}
#: Assertions in which every text is a keyword.
_KEYWORDS = {"contains", "icontains", "contains-all", "icontains-all"}
#: Assertions in which one of the texts is enough.
_ALTERNATIVES = {"contains-any", "icontains-any"}
_UNSUPPORTED_TYPES = """\
agent-rubric answer-relevance bleu classifier contains-html contains-json contains-sql contains-xml
context-faithfulness context-recall context-relevance conversation-relevance cost finish-reason g-eval gleu
guardrails human is-html is-json is-refusal is-sql is-valid-function-call is-valid-openai-function-call
is-valid-openai-tools-call is-xml javascript latency levenshtein llm-rubric max-score meteor model-graded-closedqa
moderation perplexity perplexity-score pi python regex rouge-l rouge-n rouge-s ruby search-rubric select-best
skill-used starts-with tool-call-f1 trace-error-spans trace-span-count trace-span-duration webhook word-count
"""
#: Assertions that a model, a program or an unsupported rule decides.
_UNSUPPORTED = frozenset(_UNSUPPORTED_TYPES.split())
_TYPES = _REFERENCES | _KEYWORDS | _ALTERNATIVES | _UNSUPPORTED
_LONGEST_FIRST = "|".join(sorted(map(re.escape, _TYPES), key=len, reverse=True))
# ``type``, ``not-type`` or ``type(0.8)``, optionally followed by a colon and a value; the old types ``fn``, ``eval``
# and ``grade`` require both.
_ASSERTION = re.compile(
    rf"(?P<type>(?:not-)?(?:{_LONGEST_FIRST}|trajectory:[a-z-]+|(?:fn|eval|grade)(?=:)))"
    r"(?:\([0-9.]+\))?(?:$|:(?P<value>.*))",
    re.DOTALL,
)
_EXPECTED = re.compile(r"__expected\d*")
_METADATA = re.compile(r"__metadata:(?P<name>.+?)(?P<list>\[\])?")
ASSERT = "assert"


@dataclass(slots=True)
class Assertions:
    """Reads the assertions of one file.

    ``unsupported``: number of assertions per type that is neither reference nor keyword. ``columns``: path in the
    result of :meth:`group_assertions` -> the table's columns."""

    unsupported: Counter[str] = field(default_factory=Counter)
    columns: dict[str, dict[str, None]] = field(default_factory=dict)

    def group_assertions(self, record: Node) -> Node:
        """Return the record with ``assert`` as a map of ``references`` and ``keywords``, each a list of alternatives.

        Unsupported assertions are counted and stay: from a list in ``assert.others``, from a table as their column.
        ``__metadata:name`` columns move to ``metadata``."""
        entries: dict[str, Node] = {}
        metadata = dict(record.entries.get("metadata", Node(NodeKind.NULL, None, 0)).entries)
        groups: dict[str, list[Node]] = {}
        for name, node in record.entries.items():
            # A text without a list is no assertion, and stays as metadata.
            if name == ASSERT and (node.elements or node.absent):
                for assertion in node.elements:
                    self._add_to_group(*_parse_assertion(assertion), groups)
            elif _EXPECTED.fullmatch(name) and node.kind in {NodeKind.TEXT, NodeKind.CELL} and not node.absent:
                type_, text = read_assertion(str(node.value))
                value = node._replace(kind=NodeKind.TEXT, value=text)
                if group := _target_field(type_, value):
                    self._add_to_group(type_, value, node, groups)
                    self.columns.setdefault(f"{ASSERT}.{group}", {})[name] = None
                else:
                    self.unsupported[type_] += 1
                    entries[name] = node
            elif match := _METADATA.fullmatch(name):
                metadata[match["name"]] = _comma_list(node) if match["list"] else node
                self.columns.setdefault(f"metadata.{match['name']}", {})[name] = None
            else:
                entries[name] = node
        if metadata:
            entries["metadata"] = Node(NodeKind.MAP, metadata, record.line)
        if groups:
            lists = {name: Node(NodeKind.LIST, nodes, record.line) for name, nodes in groups.items()}
            entries[ASSERT] = Node(NodeKind.MAP, lists, record.line)
        return record._replace(value=entries)

    def _add_to_group(self, type_: str, value: Node, assertion: Node, groups: dict[str, list[Node]]) -> None:
        group = _target_field(type_, value)
        if not group:
            self.unsupported[type_ or "?"] += 1
            groups.setdefault("others", []).append(assertion)
        elif type_ in _ALTERNATIVES:
            groups.setdefault(group, []).append(Node(NodeKind.LIST, _texts(value), value.line))
        elif type_.endswith("-all"):
            groups.setdefault(group, []).extend(_texts(value))
        else:
            groups.setdefault(group, []).extend(value.elements or [value])


def _target_field(type_: str, value: Node) -> str:
    """``references``, ``keywords`` or empty; values that are no text or refer to a file belong to neither."""
    if value.absent or value.kind is NodeKind.MAP or str(value.value).startswith("file://"):
        return ""
    return "references" if type_ in _REFERENCES else "keywords" if type_ in _KEYWORDS | _ALTERNATIVES else ""


def read_assertion(text: str) -> tuple[str, str]:
    """Type and value of an assertion in a table cell. Text without a known type means ``equals``."""
    text = text.strip()
    if text.startswith("file://"):
        return "file", text
    match = _ASSERTION.fullmatch(text)
    return (match["type"], (match["value"] or "").strip()) if match else ("equals", text)


def _parse_assertion(assertion: Node) -> tuple[str, Node, Node]:
    """Type, value and node of an assertion in a list; unknown types are returned as written."""
    type_, value = assertion.entries.get("type"), assertion.entries.get("value")
    name = str(type_.value) if type_ is not None and type_.kind is NodeKind.TEXT else ""
    return name, value or Node(NodeKind.NULL, None, assertion.line), assertion


def _texts(value: Node) -> list[Node]:
    """Texts of a list, or of a comma-separated text."""
    if value.kind is not NodeKind.TEXT:
        return value.elements or [value]
    return _comma_list(value).elements


def _comma_list(node: Node) -> Node:
    r"""Split a text at its commas; ``\,`` is a literal comma."""
    parts = re.split(r"(?<!\\),", str(node.value))
    texts = [part.replace("\\,", ",").strip() for part in parts]
    return Node(NodeKind.LIST, [Node(NodeKind.TEXT, text, node.line) for text in texts if text], node.line)
