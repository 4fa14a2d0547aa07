"""JSON Lines to a tree: a list with one map per line that is not blank."""

from __future__ import annotations

from evaluation.files.json_tree import JSONSyntax, scan_json
from evaluation.files.limits import Limits
from evaluation.files.problems import Problems
from evaluation.files.tree import Kind, Node
from evaluation.files.tree_builder import TreeBuilder


def read_json_lines(text: str, problems: Problems, limits: Limits) -> Node:
    """The list of the lines' objects. A line that is not JSON is noted and the next one read.

    :raises InvalidFile: on too deep a nesting or too many values.
    """
    builder = TreeBuilder(problems, limits)
    rows: list[Node] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        builder.restart()
        try:
            scan_json(line.removesuffix("\r"), number, builder)
        except JSONSyntax as error:
            problems.add("json_syntax", number, detail=error.detail, column=error.column)
        if builder.root is not None:
            rows.append(builder.root)
    return Node(Kind.LIST, rows, 1)
