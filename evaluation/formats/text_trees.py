"""JSON and YAML to a tree with lines.

JSON by a scanner without recursion, stricter than the standard library's; JSON Lines as a list with one map per line
that is not blank. YAML by events of the C loader only, so nothing is constructed, expanded or silently converted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import yaml

from evaluation.formats.quick_json import QuickReader
from evaluation.formats.tree import Kind, Limits, Node, Problems, TreeBuilder

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"-?[A-Za-z]+")
_WORDS = {"true": (Kind.BOOLEAN, True), "false": (Kind.BOOLEAN, False), "null": (Kind.NULL, None)}
_NOT_FINITE = {"NaN", "Infinity", "-Infinity", "nan", "inf", "-inf", "-nan"}
_LARGEST = 2**63 - 1
_LONGEST_DIGITS = 19  # of 2**63 - 1; longer ones are not even converted, which takes quadratic time


class JSONSyntax(Exception):
    """The text is not JSON from here on."""

    def __init__(self, detail: str, line: int, column: int) -> None:
        self.detail, self.line, self.column = detail, line, column
        super().__init__(detail)


def read_json(text: str, problems: Problems, limits: Limits) -> Node | None:
    """The tree of the one JSON value in the text.

    :raises InvalidFile: on a syntax error, too deep a nesting or too many values; NaN, numbers out of range,
        duplicate keys and unstorable texts are collected in ``problems`` and the reading goes on.
    """
    builder = TreeBuilder(problems, limits)
    try:
        scan_json(text, 1, builder)
    except JSONSyntax as error:
        problems.stop("json_syntax", error.line, detail=error.detail, column=error.column)
    return builder.root


def scan_json(text: str, first_line: int, builder: TreeBuilder) -> None:
    """Feed the builder with the one JSON value in the text, whose first line has the number given.

    :raises JSONSyntax: where the text is not one JSON value.
    """
    _Scanner(text, first_line, builder).run()


class _Scanner:
    """``at``: the next character. ``closers``: the brackets still to come. ``fresh``: just behind an opening one."""

    def __init__(self, text: str, first_line: int, builder: TreeBuilder) -> None:
        self.text, self.builder = text, builder
        self.at = 0
        self.closers: list[str] = []
        self.fresh = False
        self._line, self._counted = first_line, 0

    def run(self) -> None:
        self.value()
        while self.closers:
            self.step()
        if self.peek():
            self.fail("something follows the end of the value")

    def step(self) -> None:
        """Inside a collection, behind a value or an opening bracket: the end, or one more member."""
        found = self.peek()
        if found == self.closers[-1]:
            self.at += 1
            self.closers.pop()
            self.fresh = False
            self.builder.close()
        elif self.fresh:
            self.member()
        elif found == ",":
            self.at += 1
            self.member()
        else:
            self.fail(f"a comma or {self.closers[-1]} is missing")

    def member(self) -> None:
        """One element of a list, or key and value of an object."""
        if self.closers[-1] == "}":
            if self.peek() != '"':
                self.fail("a key in double quotes is expected")
            line = self.line()
            self.builder.key(self.string(), line)
            if self.peek() != ":":
                self.fail("a colon is missing behind the key")
            self.at += 1
        self.value()

    def value(self) -> None:
        """A scalar, or only the opening bracket of a collection: the loop in ``run`` does the rest."""
        found = self.peek()
        self.fresh = found in {"{", "["}
        if found == "{":
            self.builder.open_map(self.line())
            self.at += 1
            self.closers.append("}")
        elif found == "[":
            self.builder.open_list(self.line())
            self.at += 1
            self.closers.append("]")
        elif found == '"':
            line = self.line()
            self.builder.scalar(Kind.TEXT, self.string(), line)
        elif match := _NUMBER.match(self.text, self.at):
            self.number(match)
        else:
            self.word()

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            self.fail("a text is not closed on its line, or holds a raw control character")
        self.at = match.end()
        token = match[0]
        if "\\" not in token:
            return token[1:-1]
        try:
            return str(json.loads(token))
        except json.JSONDecodeError as error:
            self.fail(error.msg)

    def number(self, match: re.Match[str]) -> None:
        line, spelling = self.line(), match[0]
        self.at = match.end()
        if match["fraction"] is None and match["exponent"] is None:
            fits = len(spelling.lstrip("-")) <= _LONGEST_DIGITS and abs(int(spelling)) <= _LARGEST
            # A longer one stays the text that it is: it may be an id, and no column of 64 bits would keep its digits.
            whole = int(spelling) if fits else self.builder.storable(spelling, line)
            self.builder.scalar(Kind.INTEGER, whole, line, spelling)
            return
        value = float(spelling)
        if math.isfinite(value):
            self.builder.scalar(Kind.REAL, value, line, spelling)
        else:
            self.problem("number_too_large", line, digits=len(spelling))

    def word(self) -> None:
        match = _WORD.match(self.text, self.at)
        word = match[0] if match else ""
        line = self.line()
        if word in _WORDS:
            kind, value = _WORDS[word]
            self.builder.scalar(kind, value, line, word)
        elif word in _NOT_FINITE:
            self.problem("number_not_finite", line, value=word)
        else:
            self.fail(f"{word or self.peek() or 'the end of the text'!r} is no JSON value")
        self.at += len(word)

    def problem(self, code: str, line: int, **params: object) -> None:
        """A value that JSON or a database cannot hold; a null keeps its place so that the reading can go on."""
        self.builder.problems.add(code, line, self.builder.field, **params)
        self.builder.scalar(Kind.NULL, None, line)

    def peek(self) -> str:
        """The next character that is not white space, empty at the end."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def line(self) -> int:
        """The line of the next character."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def fail(self, detail: str) -> NoReturn:
        column = self.at - self.text.rfind("\n", 0, self.at)
        raise JSONSyntax(detail, self.line(), column)


def feed(builder: TreeBuilder, value: Any, line: int) -> None:
    """A plain value as events. Depth and number are capped by the builder."""
    if isinstance(value, Mapping):
        builder.open_map(line)
        for key, one in value.items():
            builder.key(str(key), line)
            feed(builder, one, line)
        builder.close()
    elif isinstance(value, list):
        builder.open_list(line)
        for one in value:
            feed(builder, one, line)
        builder.close()
    elif value is None:
        builder.scalar(Kind.NULL, None, line)
    else:
        kinds = {bool: Kind.BOOLEAN, int: Kind.INTEGER, float: Kind.REAL}
        kind = kinds.get(type(value), Kind.TEXT)
        builder.scalar(kind, str(value) if kind is Kind.TEXT else value, line, str(value))


def read_json_lines(text: str, problems: Problems, limits: Limits) -> Node:
    """The list of the lines' objects. A line that is not JSON is noted and the next one read.

    :raises InvalidFile: on too deep a nesting or too many values.
    """
    builder, quick = TreeBuilder(problems, limits), QuickReader(limits)
    rows: list[Node] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        builder.restart()
        if (node := quick.read(line, number)) is not None:
            builder.take(node, quick.values)
            rows.append(node)
            continue
        try:
            scan_json(line.removesuffix("\r"), number, builder)
        except JSONSyntax as error:
            problems.add("json_syntax", number, detail=error.detail, column=error.column)
        if builder.root is not None:
            rows.append(builder.root)
    return Node(Kind.LIST, rows, 1)


_YAML_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_YAML_REAL = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]+(?:[eE][-+]?[0-9]{1,2})?")
_PREFIX = "tag:yaml.org,2002:"
_RESOLVERS = yaml.resolver.Resolver.yaml_implicit_resolvers
_LOADER_TOO_DEEP = "exceeded maximum nesting depth"  # libyaml from PyYAML 6.0.4 on: at 1,000 levels, before any event


def read_yaml(text: str, problems: Problems, limits: Limits) -> Node | None:
    """The tree of the one document in the text, ``None`` where it is empty.

    :raises InvalidFile: on a syntax error, an alias, too deep a nesting or too many values; other problems are
        collected in ``problems`` and the reading goes on.
    """
    builder = TreeBuilder(problems, limits)
    problems.doubted = {Kind.INTEGER, Kind.REAL}
    documents = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    problems.stop("yaml_documents", _line_of(event))
            else:
                _take(event, builder)
    except yaml.reader.ReaderError as error:
        problems.stop("yaml_syntax", text.count("\n", 0, error.position) + 1, detail=str(error.reason))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        if error.problem == _LOADER_TOO_DEEP:
            problems.stop("too_deep", line, limit=limits.depth)
        problems.stop("yaml_syntax", line, detail=_detail(error))
    return builder.root


def _detail(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part)


def _line_of(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _take(event: yaml.Event, builder: TreeBuilder) -> None:
    if isinstance(event, yaml.ScalarEvent):
        _yaml_scalar(event, builder)
    elif isinstance(event, yaml.CollectionStartEvent):
        _collection(event, builder)
    elif isinstance(event, yaml.CollectionEndEvent):
        builder.close()
    elif isinstance(event, yaml.AliasEvent):
        builder.problems.stop("yaml_alias", _line_of(event), builder.field, name=str(event.anchor))


def _collection(event: yaml.CollectionStartEvent, builder: TreeBuilder) -> None:
    line = _line_of(event)
    if builder.expects_key:
        builder.problems.stop("yaml_complex_key", line)
    if event.tag is not None and event.tag != "!":
        builder.problems.add("yaml_tag", line, builder.field, tag=str(event.tag))
    if isinstance(event, yaml.MappingStartEvent):
        builder.open_map(line)
    else:
        builder.open_list(line)


def _yaml_scalar(event: yaml.ScalarEvent, builder: TreeBuilder) -> None:
    line, spelling = _line_of(event), str(event.value)
    tag = event.tag
    if tag is not None and tag not in {"!", _PREFIX + "str"}:
        builder.problems.add("yaml_tag", line, builder.field, tag=str(tag))
    is_text = tag is not None or not event.implicit[0]
    kind, value = (Kind.TEXT, spelling) if is_text else resolve(spelling)
    if not builder.expects_key:
        builder.scalar(kind, value, line, "" if kind is Kind.TEXT else spelling)
        return
    if kind is not Kind.TEXT:
        if spelling == "<<":
            builder.problems.add("yaml_merge_key", line)
        else:
            builder.problems.add("quote_key", line, key=spelling)
    builder.key(spelling, line)


def resolve(spelling: str) -> tuple[Kind, object]:
    """What a plain (unquoted) YAML 1.1 scalar is. Only spellings that JSON shares become numbers and booleans; the
    rest of what YAML would convert (octals, sexagesimals, ``yes``, dates, ``.nan``) is ambiguous."""
    tag = ""
    for candidate, pattern in _RESOLVERS.get(spelling[:1], ()):
        if pattern.match(spelling):
            tag = candidate.removeprefix(_PREFIX)
            break
    if not tag:
        return Kind.TEXT, spelling
    if tag == "null":
        return Kind.NULL, None
    if tag == "bool" and spelling.lower() in {"true", "false"}:
        return Kind.BOOLEAN, spelling.lower() == "true"
    if tag == "int" and _YAML_INTEGER.fullmatch(spelling):
        return Kind.INTEGER, int(spelling)
    if tag == "float" and _YAML_REAL.fullmatch(spelling):
        return Kind.REAL, float(spelling)
    return Kind.AMBIGUOUS, spelling
