"""promptfoo's assertions: those that say what an answer should be or hold become expected answers and keywords, all
others stay as they are and are counted."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from evaluation.formats.tree import Kind, Node

#: What is expected, word for word or in meaning.
_REFERENCES = {"equals", "similar", "similar:cosine", "similar:dot", "similar:euclidean", "factuality"}
_REFERENCES |= {"model-graded-factuality"}
#: Every one of the texts is a keyword of its own.
_KEYWORDS = {"contains", "icontains", "contains-all", "icontains-all"}
#: One of the texts is enough.
_ALTERNATIVES = {"contains-any", "icontains-any"}
_OTHER_TYPES = """\
agent-rubric answer-relevance bleu classifier contains-html contains-json contains-sql contains-xml
context-faithfulness context-recall context-relevance conversation-relevance cost finish-reason g-eval gleu
guardrails human is-html is-json is-refusal is-sql is-valid-function-call is-valid-openai-function-call
is-valid-openai-tools-call is-xml javascript latency levenshtein llm-rubric max-score meteor model-graded-closedqa
moderation perplexity perplexity-score pi python regex rouge-l rouge-n rouge-s ruby search-rubric select-best
skill-used starts-with tool-call-f1 trace-error-spans trace-span-count trace-span-duration webhook word-count
"""
#: What a model, a program or a rule that is none of ours decides.
_OTHERS = frozenset(_OTHER_TYPES.split())
_TYPES = _REFERENCES | _KEYWORDS | _ALTERNATIVES | _OTHERS
_LONGEST_FIRST = "|".join(sorted(map(re.escape, _TYPES), key=len, reverse=True))
# ``type``, ``not-type`` or ``type(0.8)``, with a colon and a value behind it or without; ``fn``, ``eval`` and
# ``grade`` are older names that need both.
_WRITTEN = re.compile(
    rf"(?P<type>(?:not-)?(?:{_LONGEST_FIRST}|trajectory:[a-z-]+|(?:fn|eval|grade)(?=:)))"
    r"(?:\([0-9.]+\))?(?:$|:(?P<value>.*))",
    re.DOTALL,
)
_EXPECTED = re.compile(r"__expected\d*")
_METADATA = re.compile(r"__metadata:(?P<name>.+?)(?P<list>\[\])?")
ASSERT = "assert"


@dataclass(slots=True)
class Assertions:
    """Reads the assertions of one file. ``not_taken``: how many there are of each type that is neither an expected
    answer nor a keyword. ``columns``: where a value stands in what :meth:`gather` returns -> its columns in a table."""

    not_taken: Counter[str] = field(default_factory=Counter)
    columns: dict[str, dict[str, None]] = field(default_factory=dict)

    def gather(self, record: Node) -> Node:
        """The record with ``assert`` as a map of ``references`` and ``keywords``, a list of alternatives each. Other
        assertions are counted and stay: those of a list in ``assert.others``, a column of a table as it is. The columns
        ``__metadata:name`` are in ``metadata``."""
        entries: dict[str, Node] = {}
        metadata = dict(record.entries.get("metadata", Node(Kind.NULL, None, 0)).entries)
        groups: dict[str, list[Node]] = {}
        for name, node in record.entries.items():
            if name == ASSERT:
                for assertion in node.elements:
                    self._sort(*_listed(assertion), groups)
            elif _EXPECTED.fullmatch(name) and node.kind in {Kind.TEXT, Kind.CELL} and not node.absent:
                type_, text = read_assertion(str(node.value))
                value = node._replace(kind=Kind.TEXT, value=text)
                if group := _group(type_, value):
                    self._sort(type_, value, node, groups)
                    self.columns.setdefault(f"{ASSERT}.{group}", {})[name] = None
                else:
                    self.not_taken[type_] += 1
                    entries[name] = node
            elif match := _METADATA.fullmatch(name):
                metadata[match["name"]] = _comma_list(node) if match["list"] else node
                self.columns.setdefault(f"metadata.{match['name']}", {})[name] = None
            else:
                entries[name] = node
        if metadata:
            entries["metadata"] = Node(Kind.MAP, metadata, record.line)
        if groups:
            lists = {name: Node(Kind.LIST, nodes, record.line) for name, nodes in groups.items()}
            entries[ASSERT] = Node(Kind.MAP, lists, record.line)
        return record._replace(value=entries)

    def _sort(self, type_: str, value: Node, whole: Node, groups: dict[str, list[Node]]) -> None:
        group = _group(type_, value)
        if not group:
            self.not_taken[type_ or "?"] += 1
            groups.setdefault("others", []).append(whole)
        elif type_ in _ALTERNATIVES:
            groups.setdefault(group, []).append(Node(Kind.LIST, _texts(value), value.line))
        elif type_.endswith("-all"):
            groups.setdefault(group, []).extend(_texts(value))
        else:
            groups.setdefault(group, []).extend(value.elements or [value])


def _group(type_: str, value: Node) -> str:
    """``references``, ``keywords`` or empty; a value that stands in a file of its own or is no text is neither."""
    if value.absent or value.kind is Kind.MAP or str(value.value).startswith("file://"):
        return ""
    return "references" if type_ in _REFERENCES else "keywords" if type_ in _KEYWORDS | _ALTERNATIVES else ""


def read_assertion(text: str) -> tuple[str, str]:
    """Type and value of an assertion as a table writes it. A text that begins with no type has to be equalled."""
    text = text.strip()
    if text.startswith("file://"):
        return "file", text
    match = _WRITTEN.fullmatch(text)
    return (match["type"], (match["value"] or "").strip()) if match else ("equals", text)


def _listed(item: Node) -> tuple[str, Node, Node]:
    """Type, value and the whole of an assertion in a list; one of no known type keeps its own."""
    type_, value = item.entries.get("type"), item.entries.get("value")
    name = str(type_.value) if type_ is not None and type_.kind is Kind.TEXT else ""
    return name, value or Node(Kind.NULL, None, item.line), item


def _texts(value: Node) -> list[Node]:
    """The texts of a list, or of a text with commas between them."""
    if value.kind is not Kind.TEXT:
        return value.elements or [value]
    return _comma_list(value).elements


def _comma_list(node: Node) -> Node:
    r"""The parts of a text between its commas; ``\,`` is a comma within a part."""
    parts = re.split(r"(?<!\\),", str(node.value))
    texts = [part.replace("\\,", ",").strip() for part in parts]
    return Node(Kind.LIST, [Node(Kind.TEXT, text, node.line) for text in texts if text], node.line)
