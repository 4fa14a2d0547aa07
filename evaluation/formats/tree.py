"""What every reader gives: a tree of plain values in which each knows its line and how it was spelled; and every
problem of the file, so that a person can mend all of them before trying again.

A tree is built from a stream of events with an explicit stack. What a file may cost before it is refused are caps that
hold before anything is walked or built. ``evaluation/messages/problems.py`` holds the sentence of each problem's code.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn

from evaluation.core.errors import InvalidFile, Problem

#: Every problem and remark that the file readers can report, a line each with the names of its parameters.
_PARAMETERS = """\
file_empty
file_too_large size limit
file_archive
file_pdf
file_old_excel
file_not_workbook
file_binary
traces_need_otel
traces_damaged
traces_none
secrets_masked places
format_unknown known
format_not_accepted format accepted
encoding_utf16 byte
encoding_damaged byte
encoding_unknown byte
encoding_western text
encoding_wrong encoding byte
nul_character
lone_surrogate
too_deep limit
too_many_values limit
too_many_problems limit
text_too_long length limit
duplicate_key key first_line
number_too_large digits
number_not_finite value
yaml_syntax detail
yaml_alias name
yaml_merge_key
yaml_tag tag
yaml_documents
yaml_complex_key
quote_key key
json_syntax detail column
csv_syntax detail
ragged_row found expected
header_empty column
header_twice name
too_many_rows limit
too_many_columns limit
workbook_broken detail
workbook_too_large limit
workbook_entities
file_not_columnar
arrow_not_installed
columnar_broken detail
qrels_expected
qrels_unmatched
formula cell
error_cell cell value
no_rows
map_invalid detail
map_finds_no_rows rows
map_failed expression detail
shape_lacks_questions shape
shape_lacks_answers shape
shape_is_corpus shape
shape_is_qrels shape
shape_questions found
shape_rows found
row_not_mapping found
missing names
missing_among names columns
missing_likely names likely
alias_twice first second
quote_value value
format_as_text value
not_text found
not_list found
not_mapping found
not_integer value
not_number value
not_boolean value
not_a_date value
out_of_range value low high
too_long length limit
empty_item
cell_json detail
unknown_choice value known
unknown_key key known
looks_like_answers rows names
category_conflict section category
check_missing
duplicate_id id first_line
duplicate_question first_line
group_field_unknown name
answer_missing
answer_missing_likely likely
no_answers rows
context_empty
duplicate_answer question sample first_line
several_systems systems
metric_unknown metric rows
value_missing
off_scale value scale
duplicate_rating first_line
part_range start end
no_tasks
no_annotations
task_without_question
annotator_missing
control_unknown name known
control_twice name
result_unreadable type
annotations_cancelled rows
tasks_of_other_answers rows
encoding_cp949
delimiter delimiter
sheets_not_read sheet sheets
metadata_kept keys
system_fields_kept names
category_empty rows
check_not_built_in checks
check_phrases_missing rows
hops_kept rows
ids_derived rows
references_split rows
references_further rows
lists_read names rows
missing_words_kept names rows
no_answer_yet rows
empty_answers rows
reference_not_found names
passages_not_found names
passages_alternative rows
shape_known shape columns
assertions_not_taken types
rows_left_out rows
index_left_out
columns_not_read columns
qrels_added rows missing
qrels_of_unknown judgements topics ids
group_missing name rows
judge_off_scale rows
ratings_without_value rows
document_unknown known
document_too_long limit
document_without_text
pdf_broken detail
pdf_encrypted
pdf_too_long limit
pdf_without_text
docx_broken detail
docx_too_large limit
docx_entities
"""
PARAMETERS = {code: tuple(names) for code, *names in map(str.split, _PARAMETERS.splitlines())}


MAX_BYTES = 20 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """``bytes``: size of the file. ``depth``: nested lists and mappings. ``nodes``: values in the file, keys not
    counted. ``field_length``: characters of one text. ``rows`` and ``columns``: of a table. ``inflated``: bytes of a
    workbook once unpacked, ``members`` the files in it."""

    bytes: int = MAX_BYTES
    depth: int = 32
    nodes: int = 2_000_000
    field_length: int = 1_000_000
    rows: int = 500_000
    columns: int = 100
    inflated: int = 10 * MAX_BYTES
    members: int = 1_000


MOST_PROBLEMS = 10_000  # of one file, after which the reading stops: nobody reads more
SHORT_TEXT = 200  # characters of ids, categories and other names: what fits an indexed column on every database


class Problems:
    """The problems (they refuse the file) and remarks (they do not) found so far in one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []
        self.remarks: list[Problem] = []
        self.lists: Counter[str] = Counter()  # texts that were read as lists of Python or numpy, by field
        self.missing_words: Counter[str] = Counter()  # cells that hold a word for a missing value, by field
        # Numbers that are no texts in this format: YAML turns spellings into numbers, a workbook shows 0.85 as 85%.
        self.doubted: set[Kind] = set()

    def add(self, code: str, line: int | None = None, field: str = "", **params: Any) -> None:
        """Note something that refuses the file.

        :raises InvalidFile: when there are more problems than anybody reads.
        """
        self.found.append(self._problem(code, line, field, params))
        if len(self.found) == MOST_PROBLEMS:
            self.found.append(Problem("too_many_problems", self.file, None, "", {"limit": MOST_PROBLEMS}))
            raise InvalidFile(self._in_order())

    def remark(self, code: str, line: int | None = None, field: str = "", **params: Any) -> None:
        """Note something that the preview should say."""
        self.remarks.append(self._problem(code, line, field, params))

    def remark_readings(self) -> None:
        """Remark the fields in which texts were read as lists, or kept though they may stand for a missing value."""
        for code, fields in {"lists_read": self.lists, "missing_words_kept": self.missing_words}.items():
            if fields:
                self.remark(code, names=", ".join(fields), rows=max(fields.values()))

    def stop(self, code: str, line: int | None = None, field: str = "", **params: Any) -> NoReturn:
        """Note something after which the file cannot be read further.

        :raises InvalidFile: always, with everything found so far.
        """
        self.found.append(self._problem(code, line, field, params))
        raise InvalidFile(self._in_order())

    def refuse_if_any(self) -> None:
        """:raises InvalidFile: with every problem, in the order of the lines, if there is one."""
        if self.found:
            raise InvalidFile(self._in_order())

    def _problem(self, code: str, line: int | None, field: str, params: dict[str, Any]) -> Problem:
        if set(PARAMETERS[code]) != set(params):
            raise ValueError(f"problem {code!r} takes {PARAMETERS[code]}, not {sorted(params)}")
        return Problem(code, self.file, line, field, params)

    def _in_order(self) -> list[Problem]:
        """The problems by line. A workbook's unread sheets come last: the rows may be in one of them."""
        sheets = [remark for remark in self.remarks if remark.code == "sheets_not_read"]
        return [*sorted(self.found, key=lambda problem: problem.line or 0), *sheets]


class Kind(StrEnum):
    """What a value is. ``ambiguous``: a spelling that the format would silently turn into something else (YAML's
    ``010``, ``no``, ``1:30``, a date; a date cell of a workbook); its value is the spelling. ``cell``: a table's cell,
    a text that may stand for a number or a list."""

    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    NULL = "null"
    AMBIGUOUS = "ambiguous"
    CELL = "cell"
    LIST = "list"
    MAP = "map"


class Node(NamedTuple):
    """One value. ``value`` is a ``list[Node]`` for lists, a ``dict[str, Node]`` for maps, else the plain scalar.
    ``spelling`` is how a scalar that is not a text stands in the file. ``line`` counts from 1 (tables: the row)."""

    kind: Kind
    value: Any
    line: int
    spelling: str = ""

    @property
    def entries(self) -> dict[str, Node]:
        """The entries of a map, empty for everything else."""
        return self.value if self.kind is Kind.MAP else {}

    @property
    def elements(self) -> list[Node]:
        """The elements of a list, empty for everything else."""
        return self.value if self.kind is Kind.LIST else []

    @property
    def absent(self) -> bool:
        """Whether it says nothing: null, or an empty cell of a table."""
        return self.kind is Kind.NULL or (self.kind is Kind.CELL and not self.value.strip())


Columns = tuple[tuple[str, str], ...]  # a column and the fields that it became, ``metadata`` or ``—`` (always empty)


class FileTree(NamedTuple):
    """The root of a file's tree, the file's format and the encoding it was read in; where its rows were made from
    records of another shape, the shape's title and what became of each column."""

    root: Node
    format: str
    encoding: str
    shape: str = ""
    columns: Columns = ()


def plain(node: Node) -> Any:
    """The value without lines, as JSON knows it; ambiguous scalars stay as they were spelled."""
    if node.kind is Kind.MAP:
        return {key: plain(child) for key, child in node.value.items()}
    if node.kind is Kind.LIST:
        return [plain(child) for child in node.value]
    return node.value


UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(slots=True)
class _Open:
    line: int
    entries: dict[str, Node] | None = None
    elements: list[Node] | None = None
    key: str | None = None
    key_lines: dict[str, int] = field(default_factory=dict)


class TreeBuilder:
    """Takes ``open_map``, ``open_list``, ``key``, ``scalar`` and ``close`` in document order and leaves ``root``.

    Too deep and too many values stop the file at once; duplicate keys and unstorable texts are collected. One builder
    may build several documents (JSON Lines): the cap on values counts over all of them.
    """

    def __init__(self, problems: Problems, limits: Limits) -> None:
        self.problems = problems
        self.limits = limits
        self.root: Node | None = None
        self._stack: list[_Open] = []
        self._count = 0

    def restart(self) -> None:
        """Begin the next document."""
        self.root = None
        self._stack.clear()

    def take(self, node: Node, values: int) -> None:
        """A whole document that was read elsewhere, with the number of its values."""
        self._count += values - 1
        self._put(node)

    @property
    def expects_key(self) -> bool:
        """Whether the innermost open collection is a map that waits for a key."""
        return bool(self._stack) and self._stack[-1].entries is not None and self._stack[-1].key is None

    @property
    def field(self) -> str:
        """The innermost key being filled, for messages."""
        return next((level.key for level in reversed(self._stack) if level.key is not None), "")

    def open_map(self, line: int) -> None:
        """A map begins."""
        self._push(_Open(line, entries={}))

    def open_list(self, line: int) -> None:
        """A list begins."""
        self._push(_Open(line, elements=[]))

    def close(self) -> None:
        """The innermost collection ends."""
        level = self._stack.pop()
        if level.entries is not None:
            self._put(Node(Kind.MAP, level.entries, level.line))
        else:
            self._put(Node(Kind.LIST, level.elements, level.line))

    def key(self, text: str, line: int) -> None:
        """The key of the next value of the innermost map."""
        level = self._stack[-1]
        text = self.storable(text, line)
        first = level.key_lines.setdefault(text, line)
        if level.entries is not None and text in level.entries:
            self.problems.add("duplicate_key", line, text, key=text, first_line=first)
        level.key = text

    def scalar(self, kind: Kind, value: Any, line: int, spelling: str = "") -> None:
        """A value that is neither map nor list."""
        if kind is Kind.TEXT:
            value = self.storable(value, line)
        self._put(Node(kind, value, line, spelling))

    def storable(self, text: str, line: int, field: str = "") -> str:
        """The text, after noting what no database stores (NUL, half of a surrogate pair: replaced, so that the rest of
        the file can be read) and a length beyond the cap."""
        if len(text) > self.limits.field_length:
            limit = self.limits.field_length
            self.problems.add("text_too_long", line, field or self.field, length=len(text), limit=limit)
        if match := UNSTORABLE.search(text):
            code = "nul_character" if match[0] == "\x00" else "lone_surrogate"
            self.problems.add(code, line, field or self.field)
            return UNSTORABLE.sub("\ufffd", text)
        return text

    def _push(self, level: _Open) -> None:
        if len(self._stack) >= self.limits.depth:
            self.problems.stop("too_deep", level.line, limit=self.limits.depth)
        self._stack.append(level)

    def _put(self, node: Node) -> None:
        self._count += 1
        if self._count > self.limits.nodes:
            self.problems.stop("too_many_values", node.line, limit=self.limits.nodes)
        if not self._stack:
            self.root = node
            return
        level = self._stack[-1]
        if level.entries is None:
            level.elements.append(node)  # type: ignore[union-attr]
        elif level.key is not None:
            level.entries[level.key] = node
            level.key = None
