"""Lists and maps as Python and numpy print them, which is what ``to_csv`` leaves of a column of lists: ``['a', 'b']``,
``['a' 'b']``, ``[array(['a'], dtype=object)]``, ``[np.str_('a')]``. Nothing is evaluated but single quoted texts.
"""

from __future__ import annotations

import ast
import re
from typing import NoReturn

from evaluation.formats.tree import Kind, TreeBuilder

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
    "None": (Kind.NULL, None),
    "nan": (Kind.NULL, None),
    "True": (Kind.BOOLEAN, True),
    "False": (Kind.BOOLEAN, False),
}
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_DEEPEST = 32  # of calls; the builder has its own limit of lists and maps


class LiteralSyntax(Exception):
    """The text is no list or map as Python or numpy print it."""


def scan_literal(text: str, line: int, builder: TreeBuilder) -> None:
    """Feed the builder with the one value in the text; every part of it gets the line. A number stands as a table's
    cell does: as its spelling, which may be an id.

    :raises LiteralSyntax: where the text is not one value to its end, such as an array that numpy cut short (``...``).
    """
    scanner = _Scanner(text, line, builder)
    scanner.value(0)
    if scanner.take() is not None:
        scanner.fail()


class _Scanner:
    """``at``: behind the last token. ``kind`` and ``found``: the last token, ``gap``: whether white space led to it."""

    def __init__(self, text: str, line: int, builder: TreeBuilder) -> None:
        self.text, self.line, self.builder = text.strip(), line, builder
        self.at = 0
        self.kind, self.found, self.gap = "", "", False

    def take(self) -> str | None:
        """The next token, ``None`` at the end."""
        if self.at == len(self.text):
            return None
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.fail()
        self.at = match.end()
        self.kind, self.gap = str(match.lastgroup), bool(match["gap"])
        self.found = match[self.kind]
        return self.found

    def must(self) -> str:
        """The next token, which has to be there."""
        found = self.take()
        if found is None:
            self.fail()
        return found

    def value(self, depth: int) -> None:
        """One value from the next token on."""
        self.must()
        self.here(depth)

    def here(self, depth: int) -> None:
        """The value that begins with the token just taken."""
        if depth > _DEEPEST:
            self.fail()
        if self.kind == "text":
            self.builder.scalar(Kind.TEXT, self.unquoted(), self.line)
        elif self.kind == "number":
            self.builder.scalar(Kind.CELL, self.found, self.line, self.found)
        elif self.kind == "word":
            kind, value = _WORDS[self.found]
            self.builder.scalar(kind, value, self.line, self.found)
        elif self.kind == "call":
            self.call(depth)
        elif self.found == "{":
            self.mapping(depth)
        elif self.found in _CLOSERS:
            self.builder.open_list(self.line)
            self.items(_CLOSERS[self.found], depth)
        else:
            self.fail()

    def call(self, depth: int) -> None:
        """``array(…, dtype=…)`` and ``np.str_(…)`` are what stands in them."""
        self.value(depth + 1)
        while self.must() != ")":
            if self.found != "," or (self.must() and self.kind != "dtype"):
                self.fail()

    def items(self, closer: str, depth: int) -> None:
        """The rest of a list: commas between all items (Python), or white space between all (numpy)."""
        separators = set()
        self.must()
        while self.found != closer:
            self.here(depth + 1)
            self.must()
            if self.found == ",":
                separators.add(",")
                self.must()
            elif self.found != closer:
                if not self.gap or closer == ")":
                    self.fail()
                separators.add(" ")
        if len(separators) > 1:  # 'a' 'b', 'c' would be two texts to Python and is none that it prints
            self.fail()
        self.builder.close()

    def mapping(self, depth: int) -> None:
        """The rest of a map with texts as keys."""
        self.builder.open_map(self.line)
        while self.must() != "}":
            if self.kind != "text":
                self.fail()
            self.builder.key(self.unquoted(), self.line)
            if self.must() != ":":
                self.fail()
            self.value(depth + 1)
            if self.must() == "}":
                break
            if self.found != ",":
                self.fail()
        self.builder.close()

    def unquoted(self) -> str:
        try:
            return str(ast.literal_eval(self.found))
        except (SyntaxError, ValueError):
            self.fail()

    def fail(self) -> NoReturn:
        raise LiteralSyntax(f"not a list from “{self.text[self.at : self.at + 20]}” on")
