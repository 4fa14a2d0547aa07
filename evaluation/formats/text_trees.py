"""JSON and YAML to a parse tree with line numbers.

A scanner without recursion reads JSON, more strictly than the standard library; JSON Lines become a list with one map
per non-blank line. YAML is read from the C loader's events, so nothing is constructed, expanded or silently converted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import yaml

from evaluation.formats.quick_json import QuickReader
from evaluation.formats.tree import Limits, Node, NodeKind, Problems, TreeBuilder

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"-?[A-Za-z]+")
_WORDS = {"true": (NodeKind.BOOLEAN, True), "false": (NodeKind.BOOLEAN, False), "null": (NodeKind.NULL, None)}
_NOT_FINITE = {"NaN", "Infinity", "-Infinity", "nan", "inf", "-inf", "-nan"}
_MAX_INTEGER = 2**63 - 1
# Digits of 2**63 - 1. Longer numbers are not converted, which would take quadratic time.
_MAX_INTEGER_DIGITS = 19


class JSONSyntaxError(Exception):
    """JSON syntax error at a line and column."""

    def __init__(self, detail: str, line: int, column: int) -> None:
        self.detail, self.line, self.column = detail, line, column
        super().__init__(detail)


def read_json(text: str, problems: Problems, limits: Limits) -> Node | None:
    """Return the tree of the single JSON value in the text.

    :raises InvalidFile: on a syntax error, too deep nesting or too many values. NaN, numbers out of range, duplicate
    keys and unstorable texts are collected in ``problems``."""
    builder = TreeBuilder(problems, limits)
    try:
        scan_json(text, 1, builder)
    except JSONSyntaxError as error:
        problems.stop("json_syntax", error.line, detail=error.detail, column=error.column)
    return builder.root


def scan_json(text: str, first_line: int, builder: TreeBuilder) -> None:
    """Feed the builder with the single JSON value in the text, whose first line is ``first_line``.

    :raises JSONSyntaxError: if the text is not one JSON value."""
    _Scanner(text, first_line, builder).run()


class _Scanner:
    """``position``: next character. ``closers``: expected closing brackets. ``after_opening``: directly after an
    opening one."""

    def __init__(self, text: str, first_line: int, builder: TreeBuilder) -> None:
        self.text, self.builder = text, builder
        self.position = 0
        self.closers: list[str] = []
        self.after_opening = False
        self._line, self._counted = first_line, 0

    def run(self) -> None:
        self.read_value()
        while self.closers:
            self.read_step()
        if self.peek():
            self.fail("extra content after the end of the value")

    def read_step(self) -> None:
        """Inside a collection, after a value or an opening bracket: read its end or the next member."""
        char = self.peek()
        if char == self.closers[-1]:
            self.position += 1
            self.closers.pop()
            self.after_opening = False
            self.builder.close()
        elif self.after_opening:
            self.read_member()
        elif char == ",":
            self.position += 1
            self.read_member()
        else:
            self.fail(f"a comma or {self.closers[-1]} is missing")

    def read_member(self) -> None:
        """Read an element of a list, or a key and value of an object."""
        if self.closers[-1] == "}":
            if self.peek() != '"':
                self.fail("a key in double quotes is expected")
            line = self.line()
            self.builder.key(self.read_string(), line)
            if self.peek() != ":":
                self.fail("a colon is missing after the key")
            self.position += 1
        self.read_value()

    def read_value(self) -> None:
        """Read a scalar, or the opening bracket of a collection, whose members the loop in ``run`` reads."""
        char = self.peek()
        self.after_opening = char in {"{", "["}
        if char == "{":
            self.builder.open_map(self.line())
            self.position += 1
            self.closers.append("}")
        elif char == "[":
            self.builder.open_list(self.line())
            self.position += 1
            self.closers.append("]")
        elif char == '"':
            line = self.line()
            self.builder.scalar(NodeKind.TEXT, self.read_string(), line)
        elif match := _NUMBER.match(self.text, self.position):
            self.read_number(match)
        else:
            self.read_word()

    def read_string(self) -> str:
        match = _STRING.match(self.text, self.position)
        if match is None:
            self.fail("a text isn't closed on its line or contains a control character")
        self.position = match.end()
        token = match[0]
        if "\\" not in token:
            return token[1:-1]
        try:
            return str(json.loads(token))
        except json.JSONDecodeError as error:
            self.fail(error.msg)

    def read_number(self, match: re.Match[str]) -> None:
        line, spelling = self.line(), match[0]
        self.position = match.end()
        if match["fraction"] is None and match["exponent"] is None:
            fits = len(spelling.lstrip("-")) <= _MAX_INTEGER_DIGITS and abs(int(spelling)) <= _MAX_INTEGER
            # A longer number may be an id: it stays text, because a 64-bit column would lose digits.
            integer = int(spelling) if fits else self.builder.make_storable(spelling, line)
            self.builder.scalar(NodeKind.INTEGER, integer, line, spelling)
            return
        value = float(spelling)
        if math.isfinite(value):
            self.builder.scalar(NodeKind.REAL, value, line, spelling)
        else:
            self.note_problem("number_too_large", line, digits=len(spelling))

    def read_word(self) -> None:
        match = _WORD.match(self.text, self.position)
        word = match[0] if match else ""
        line = self.line()
        if word in _WORDS:
            kind, value = _WORDS[word]
            self.builder.scalar(kind, value, line, word)
        elif word in _NOT_FINITE:
            self.note_problem("number_not_finite", line, value=word)
        else:
            self.fail(f"{word or self.peek() or 'the end of the text'!r} is not a JSON value")
        self.position += len(word)

    def note_problem(self, code: str, line: int, **params: object) -> None:
        """Note a value that JSON or a database cannot hold, and put a null in its place."""
        self.builder.problems.add(code, line, self.builder.field, **params)
        self.builder.scalar(NodeKind.NULL, None, line)

    def peek(self) -> str:
        """Skip white space and return the next character; empty at the end."""
        match = _SPACE.match(self.text, self.position)
        self.position = match.end() if match else self.position
        return self.text[self.position : self.position + 1]

    def line(self) -> int:
        """Line of the next character."""
        self._line += self.text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self._line

    def fail(self, detail: str) -> NoReturn:
        column = self.position - self.text.rfind("\n", 0, self.position)
        raise JSONSyntaxError(detail, self.line(), column)


def feed(builder: TreeBuilder, value: Any, line: int) -> None:
    """Feed a plain value to the builder, which limits depth and count."""
    if isinstance(value, Mapping):
        builder.open_map(line)
        for key, child in value.items():
            builder.key(str(key), line)
            feed(builder, child, line)
        builder.close()
    elif isinstance(value, list):
        builder.open_list(line)
        for child in value:
            feed(builder, child, line)
        builder.close()
    elif value is None:
        builder.scalar(NodeKind.NULL, None, line)
    else:
        kinds = {bool: NodeKind.BOOLEAN, int: NodeKind.INTEGER, float: NodeKind.REAL}
        kind = kinds.get(type(value), NodeKind.TEXT)
        builder.scalar(kind, str(value) if kind is NodeKind.TEXT else value, line, str(value))


def read_json_lines(text: str, problems: Problems, limits: Limits) -> Node:
    """Return the list of the lines' objects. Invalid lines are noted and skipped.

    :raises InvalidFile: on too deep nesting or too many values."""
    builder, quick_reader = TreeBuilder(problems, limits), QuickReader(limits)
    rows: list[Node] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        builder.restart()
        if (node := quick_reader.read(line, number)) is not None:
            builder.add_document(node, quick_reader.values)
            rows.append(node)
            continue
        try:
            scan_json(line.removesuffix("\r"), number, builder)
        except JSONSyntaxError as error:
            problems.add("json_syntax", number, detail=error.detail, column=error.column)
        if builder.root is not None:
            rows.append(builder.root)
    return Node(NodeKind.LIST, rows, 1)


_YAML_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_YAML_REAL = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]+(?:[eE][-+]?[0-9]{1,2})?")
_PREFIX = "tag:yaml.org,2002:"
_RESOLVERS = yaml.resolver.Resolver.yaml_implicit_resolvers
# PyYAML 6.0.4 and later: libyaml stops at 1,000 levels, before any event.
_LOADER_TOO_DEEP = "exceeded maximum nesting depth"


def read_yaml(text: str, problems: Problems, limits: Limits) -> Node | None:
    """Return the tree of the single document in the text, or ``None`` if it is empty.

    :raises InvalidFile: on a syntax error, an alias, too deep nesting or too many values; other problems are collected
    in ``problems``."""
    builder = TreeBuilder(problems, limits)
    problems.doubtful_kinds = {NodeKind.INTEGER, NodeKind.REAL}
    documents = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    problems.stop("yaml_documents", _event_line(event))
            else:
                _feed_event(event, builder)
    except yaml.reader.ReaderError as error:
        problems.stop("yaml_syntax", text.count("\n", 0, error.position) + 1, detail=str(error.reason))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        if error.problem == _LOADER_TOO_DEEP:
            problems.stop("too_deep", line, limit=limits.depth)
        problems.stop("yaml_syntax", line, detail=_error_detail(error))
    return builder.root


def _error_detail(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part)


def _event_line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _feed_event(event: yaml.Event, builder: TreeBuilder) -> None:
    if isinstance(event, yaml.ScalarEvent):
        _yaml_scalar(event, builder)
    elif isinstance(event, yaml.CollectionStartEvent):
        _open_collection(event, builder)
    elif isinstance(event, yaml.CollectionEndEvent):
        builder.close()
    elif isinstance(event, yaml.AliasEvent):
        builder.problems.stop("yaml_alias", _event_line(event), builder.field, name=str(event.anchor))


def _open_collection(event: yaml.CollectionStartEvent, builder: TreeBuilder) -> None:
    line = _event_line(event)
    if builder.expects_key:
        builder.problems.stop("yaml_complex_key", line)
    if event.tag is not None and event.tag != "!":
        builder.problems.add("yaml_tag", line, builder.field, tag=str(event.tag))
    if isinstance(event, yaml.MappingStartEvent):
        builder.open_map(line)
    else:
        builder.open_list(line)


def _yaml_scalar(event: yaml.ScalarEvent, builder: TreeBuilder) -> None:
    line, spelling = _event_line(event), str(event.value)
    tag = event.tag
    if tag is not None and tag not in {"!", _PREFIX + "str"}:
        builder.problems.add("yaml_tag", line, builder.field, tag=str(tag))
    is_text = tag is not None or not event.implicit[0]
    kind, value = (NodeKind.TEXT, spelling) if is_text else resolve_scalar(spelling)
    if not builder.expects_key:
        builder.scalar(kind, value, line, "" if kind is NodeKind.TEXT else spelling)
        return
    if kind is not NodeKind.TEXT:
        if spelling == "<<":
            builder.problems.add("yaml_merge_key", line)
        else:
            builder.problems.add("quote_key", line, key=spelling)
    builder.key(spelling, line)


def resolve_scalar(spelling: str) -> tuple[NodeKind, object]:
    """Return kind and value of a plain (unquoted) YAML 1.1 scalar.

    Only spellings that JSON shares become numbers and booleans. Others that YAML would convert (octals, sexagesimals,
    ``yes``, dates, ``.nan``) are ambiguous."""
    tag = ""
    for candidate, pattern in _RESOLVERS.get(spelling[:1], ()):
        if pattern.match(spelling):
            tag = candidate.removeprefix(_PREFIX)
            break
    if not tag:
        return NodeKind.TEXT, spelling
    if tag == "null":
        return NodeKind.NULL, None
    if tag == "bool" and spelling.lower() in {"true", "false"}:
        return NodeKind.BOOLEAN, spelling.lower() == "true"
    if tag == "int" and _YAML_INTEGER.fullmatch(spelling):
        return NodeKind.INTEGER, int(spelling)
    if tag == "float" and _YAML_REAL.fullmatch(spelling):
        return NodeKind.REAL, float(spelling)
    return NodeKind.AMBIGUOUS, spelling
