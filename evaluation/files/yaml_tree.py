"""YAML to a tree: events of the C loader only, so nothing is constructed, expanded or silently converted."""

from __future__ import annotations

import re

import yaml

from evaluation.files.problems import Limits, Problems
from evaluation.files.tree import Kind, Node, TreeBuilder

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_REAL = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]+(?:[eE][-+]?[0-9]{1,2})?")
_PREFIX = "tag:yaml.org,2002:"
_RESOLVERS = yaml.resolver.Resolver.yaml_implicit_resolvers


def read_yaml(text: str, problems: Problems, limits: Limits) -> Node | None:
    """The tree of the one document in the text, ``None`` where it is empty.

    :raises InvalidFile: on a syntax error, an alias, too deep a nesting or too many values; other problems are
        collected in ``problems`` and the reading goes on.
    """
    builder = TreeBuilder(problems, limits)
    documents = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    problems.stop("yaml_documents", _line(event))
            else:
                _take(event, builder)
    except yaml.reader.ReaderError as error:
        problems.stop("yaml_syntax", text.count("\n", 0, error.position) + 1, detail=str(error.reason))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.stop("yaml_syntax", mark.line + 1 if mark else None, detail=_detail(error))
    return builder.root


def _detail(error: yaml.MarkedYAMLError) -> str:
    return ", ".join(part for part in (error.context, error.problem) if part)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _take(event: yaml.Event, builder: TreeBuilder) -> None:
    if isinstance(event, yaml.ScalarEvent):
        _scalar(event, builder)
    elif isinstance(event, yaml.CollectionStartEvent):
        _collection(event, builder)
    elif isinstance(event, yaml.CollectionEndEvent):
        builder.close()
    elif isinstance(event, yaml.AliasEvent):
        builder.problems.stop("yaml_alias", _line(event), builder.field, name=str(event.anchor))


def _collection(event: yaml.CollectionStartEvent, builder: TreeBuilder) -> None:
    line = _line(event)
    if builder.expects_key:
        builder.problems.stop("yaml_complex_key", line)
    if event.tag is not None and event.tag != "!":
        builder.problems.add("yaml_tag", line, builder.field, tag=str(event.tag))
    if isinstance(event, yaml.MappingStartEvent):
        builder.open_map(line)
    else:
        builder.open_list(line)


def _scalar(event: yaml.ScalarEvent, builder: TreeBuilder) -> None:
    line, spelling = _line(event), str(event.value)
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
    if tag == "int" and _INTEGER.fullmatch(spelling):
        return Kind.INTEGER, int(spelling)
    if tag == "float" and _REAL.fullmatch(spelling):
        return Kind.REAL, float(spelling)
    return Kind.AMBIGUOUS, spelling
