"""Parse lists and maps as Python and numpy print them; ``DataFrame.to_csv`` writes columns of lists this way.

Examples: ``['a', 'b']``, ``['a' 'b']``, ``[array(['a'], dtype=object)]``, ``[np.str_('a')]``. Only single quoted
strings are evaluated."""

from __future__ import annotations

import ast
import re
from typing import NoReturn

from evaluation.formats.tree import NodeKind, TreeBuilder

_TOKEN = re.compile(
    r"""(?P<gap>\s*)(?:
    (?P<text>'(?:[^'\\]|\\[\\'"nrtxuU])*'|"(?:[^"\\]|\\[\\'"nrtxuU])*")
    |(?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
    |(?P<word>None|True|False|nan)\b
    |(?P<call>(?:np\.\w+|array|list)\()
    |(?P<dtype>dtype=[\w<'.|]+)
    |(?P<mark>[][(){},:])
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {
    "None": (NodeKind.NULL, None),
    "nan": (NodeKind.NULL, None),
    "True": (NodeKind.BOOLEAN, True),
    "False": (NodeKind.BOOLEAN, False),
}
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
# Limit for nested calls; the builder limits lists and maps itself.
_MAX_DEPTH = 32


class LiteralSyntaxError(Exception):
    """The text is not a list or map as Python or numpy print it."""


def scan_literal(text: str, line: int, builder: TreeBuilder) -> None:
    """Feed the builder with the single value in the text, all of it at ``line``.

    Numbers become cells with their spelling, as in a table, so that they may be ids.

    :raises LiteralSyntaxError: if the text is not exactly one value, such as an array that numpy shortened with
    ``...``."""
    scanner = _Scanner(text, line, builder)
    scanner.read_value(0)
    if scanner.next_token() is not None:
        scanner.fail()


class _Scanner:
    """``position``: end of the last token. ``kind``, ``token``: the last token. ``gap``: white space preceded it."""

    def __init__(self, text: str, line: int, builder: TreeBuilder) -> None:
        self.text, self.line, self.builder = text.strip(), line, builder
        self.position = 0
        self.kind, self.token, self.gap = "", "", False

    def next_token(self) -> str | None:
        """Advance to the next token and return it; ``None`` at the end."""
        if self.position == len(self.text):
            return None
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            self.fail()
        self.position = match.end()
        self.kind, self.gap = str(match.lastgroup), bool(match["gap"])
        self.token = match[self.kind]
        return self.token

    def require_token(self) -> str:
        """Advance to the next token and return it; fail at the end."""
        token = self.next_token()
        if token is None:
            self.fail()
        return token

    def read_value(self, depth: int) -> None:
        self.require_token()
        self.read_current(depth)

    def read_current(self, depth: int) -> None:
        """Read the value that begins with the current token."""
        if depth > _MAX_DEPTH:
            self.fail()
        if self.kind == "text":
            self.builder.scalar(NodeKind.TEXT, self.unquote(), self.line)
        elif self.kind == "number":
            self.builder.scalar(NodeKind.CELL, self.token, self.line, self.token)
        elif self.kind == "word":
            kind, value = _WORDS[self.token]
            self.builder.scalar(kind, value, self.line, self.token)
        elif self.kind == "call":
            self.read_call(depth)
        elif self.token == "{":
            self.read_mapping(depth)
        elif self.token in _CLOSERS:
            self.builder.open_list(self.line)
            self.read_items(_CLOSERS[self.token], depth)
        else:
            self.fail()

    def read_call(self, depth: int) -> None:
        """Unwrap ``array(…, dtype=…)`` and ``np.str_(…)``."""
        self.read_value(depth + 1)
        while self.require_token() != ")":
            if self.token != "," or (self.require_token() and self.kind != "dtype"):
                self.fail()

    def read_items(self, closer: str, depth: int) -> None:
        """Read a list after its opening bracket, separated by commas only (Python) or white space only (numpy)."""
        separators = set()
        self.require_token()
        while self.token != closer:
            self.read_current(depth + 1)
            self.require_token()
            if self.token == ",":
                separators.add(",")
                self.require_token()
            elif self.token != closer:
                if not self.gap or closer == ")":
                    self.fail()
                separators.add(" ")
        # Mixed separators such as 'a' 'b', 'c' are printed by neither Python nor numpy.
        if len(separators) > 1:
            self.fail()
        self.builder.close()

    def read_mapping(self, depth: int) -> None:
        """Read a map with text keys after its opening brace."""
        self.builder.open_map(self.line)
        while self.require_token() != "}":
            if self.kind != "text":
                self.fail()
            self.builder.key(self.unquote(), self.line)
            if self.require_token() != ":":
                self.fail()
            self.read_value(depth + 1)
            if self.require_token() == "}":
                break
            if self.token != ",":
                self.fail()
        self.builder.close()

    def unquote(self) -> str:
        try:
            return str(ast.literal_eval(self.token))
        except (SyntaxError, ValueError):
            self.fail()

    def fail(self) -> NoReturn:
        raise LiteralSyntaxError(f"not a list from “{self.text[self.position : self.position + 20]}” on")
