"""Parse tree shared by all readers: plain values with line and spelling, and a list of all problems of the file.

All problems are reported at once. The tree is built from events with an explicit stack; limits apply before anything is
built. ``evaluation/messages/problems.py`` holds the message of each problem code."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn

from evaluation.core.errors import InvalidFile, Problem

#: Codes of all problems and remarks, one per line, with the names of their parameters.
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
columns_unknown columns map
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
titles_left_out rows
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
    """Limits of one file.

    ``bytes``: file size. ``depth``: nested lists and maps. ``nodes``: values without keys. ``field_length``: characters
    of a text. ``rows``, ``columns``: of a table. ``unpacked_bytes``: of a workbook or columnar file. ``members``: files
    in a workbook."""

    bytes: int = MAX_BYTES
    depth: int = 32
    nodes: int = 2_000_000
    field_length: int = 1_000_000
    rows: int = 500_000
    columns: int = 100
    unpacked_bytes: int = 10 * MAX_BYTES
    members: int = 1_000


# Problems of one file after which reading stops.
MAX_PROBLEMS = 10_000
# Characters of ids, categories and other names; fits an indexed column on every database.
MAX_SHORT_TEXT = 200


class Problems:
    """Problems (``errors``, which refuse the file) and remarks (which do not) of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.errors: list[Problem] = []
        self.remarks: list[Problem] = []
        # Number of texts read as Python or numpy lists, by field.
        self.lists_by_field: Counter[str] = Counter()
        # Number of cells with a word for a missing value, by field.
        self.missing_words: Counter[str] = Counter()
        # Numbers that may not be texts in this format: YAML converts spellings, a workbook displays 0.85 as 85%.
        self.doubtful_kinds: set[NodeKind] = set()

    def add(self, code: str, line: int | None = None, field: str = "", **params: Any) -> None:
        """Add a problem, which refuses the file.

        :raises InvalidFile: at ``MAX_PROBLEMS`` problems."""
        self.errors.append(self._problem(code, line, field, params))
        if len(self.errors) == MAX_PROBLEMS:
            self.errors.append(Problem("too_many_problems", self.file, None, "", {"limit": MAX_PROBLEMS}))
            raise InvalidFile(self.sorted_by_line())

    def remark(self, code: str, line: int | None = None, field: str = "", **params: Any) -> None:
        """Add a remark for the preview."""
        self.remarks.append(self._problem(code, line, field, params))

    def remark_readings(self) -> None:
        """Remark fields whose texts were read as lists, or may be words for missing values."""
        for code, fields in {"lists_read": self.lists_by_field, "missing_words_kept": self.missing_words}.items():
            if fields:
                self.remark(code, names=", ".join(fields), rows=max(fields.values()))

    def stop(self, code: str, line: int | None = None, field: str = "", **params: Any) -> NoReturn:
        """Add a problem after which the file cannot be read further.

        :raises InvalidFile: always, with every problem so far."""
        self.errors.append(self._problem(code, line, field, params))
        raise InvalidFile(self.sorted_by_line())

    def refuse_if_any(self) -> None:
        """Refuse the file if it has problems.

        :raises InvalidFile: with every problem, by line."""
        if self.errors:
            raise InvalidFile(self.sorted_by_line())

    def _problem(self, code: str, line: int | None, field: str, params: dict[str, Any]) -> Problem:
        if set(PARAMETERS[code]) != set(params):
            raise ValueError(f"problem {code!r} takes {PARAMETERS[code]}, not {sorted(params)}")
        return Problem(code, self.file, line, field, params)

    def sorted_by_line(self) -> list[Problem]:
        """Problems by line, then unread sheets of a workbook, since the rows may be in one of them."""
        sheets = [remark for remark in self.remarks if remark.code == "sheets_not_read"]
        return [*sorted(self.errors, key=lambda problem: problem.line or 0), *sheets]


class NodeKind(StrEnum):
    """Kind of a value.

    ``ambiguous``: a spelling that the format would silently convert (YAML's ``010``, ``no``, ``1:30`` or a date; a date
    cell of a workbook); its value is the spelling. ``cell``: text of a table cell, which may be a number or a list."""

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
    """One value.

    ``value``: ``list[Node]`` for lists, ``dict[str, Node]`` for maps, else a scalar. ``spelling``: a non-text scalar as
    written in the file. ``line``: line or table row, from 1."""

    kind: NodeKind
    value: Any
    line: int
    spelling: str = ""

    @property
    def entries(self) -> dict[str, Node]:
        """Entries of a map; empty for other kinds."""
        return self.value if self.kind is NodeKind.MAP else {}

    @property
    def elements(self) -> list[Node]:
        """Elements of a list; empty for other kinds."""
        return self.value if self.kind is NodeKind.LIST else []

    @property
    def absent(self) -> bool:
        """True for null and for an empty table cell."""
        return self.kind is NodeKind.NULL or (self.kind is NodeKind.CELL and not self.value.strip())


# Pairs of a column and its fields, ``metadata``, or ``—`` if it is always empty.
Columns = tuple[tuple[str, str], ...]


class FileTree(NamedTuple):
    """Parsed file: root, format and encoding; for records of another shape, its title and the use of each column."""

    root: Node
    format: str
    encoding: str
    shape: str = ""
    columns: Columns = ()


def plain_value(node: Node) -> Any:
    """Value as JSON without lines; ambiguous scalars keep their spelling."""
    if node.kind is NodeKind.MAP:
        return {key: plain_value(child) for key, child in node.value.items()}
    if node.kind is NodeKind.LIST:
        return [plain_value(child) for child in node.value]
    return node.value


UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(slots=True)
class _OpenCollection:
    line: int
    entries: dict[str, Node] | None = None
    elements: list[Node] | None = None
    key: str | None = None
    key_lines: dict[str, int] = field(default_factory=dict)


class TreeBuilder:
    """Builds ``root`` from ``open_map``, ``open_list``, ``key``, ``scalar`` and ``close`` in document order.

    Too deep nesting and too many values stop the file; duplicate keys and unstorable texts are collected. A builder may
    build several documents (JSON Lines); the limit on values applies to their sum."""

    def __init__(self, problems: Problems, limits: Limits) -> None:
        self.problems = problems
        self.limits = limits
        self.root: Node | None = None
        self._stack: list[_OpenCollection] = []
        self._count = 0

    def restart(self) -> None:
        """Begin the next document."""
        self.root = None
        self._stack.clear()

    def add_document(self, node: Node, values: int) -> None:
        """Add a document that was parsed elsewhere, with its number of values."""
        self._count += values - 1
        self._put(node)

    @property
    def expects_key(self) -> bool:
        """True if the innermost open collection is a map and needs a key next."""
        return bool(self._stack) and self._stack[-1].entries is not None and self._stack[-1].key is None

    @property
    def field(self) -> str:
        """Innermost current key, for messages."""
        return next((level.key for level in reversed(self._stack) if level.key is not None), "")

    def open_map(self, line: int) -> None:
        self._push(_OpenCollection(line, entries={}))

    def open_list(self, line: int) -> None:
        self._push(_OpenCollection(line, elements=[]))

    def close(self) -> None:
        """Close the innermost collection."""
        level = self._stack.pop()
        if level.entries is not None:
            self._put(Node(NodeKind.MAP, level.entries, level.line))
        else:
            self._put(Node(NodeKind.LIST, level.elements, level.line))

    def key(self, text: str, line: int) -> None:
        """Set the key of the next value in the innermost map."""
        level = self._stack[-1]
        text = self.make_storable(text, line)
        first_line = level.key_lines.setdefault(text, line)
        if level.entries is not None and text in level.entries:
            self.problems.add("duplicate_key", line, text, key=text, first_line=first_line)
        level.key = text

    def scalar(self, kind: NodeKind, value: Any, line: int, spelling: str = "") -> None:
        """Add a value that is neither map nor list."""
        if kind is NodeKind.TEXT:
            value = self.make_storable(value, line)
        self._put(Node(kind, value, line, spelling))

    def make_storable(self, text: str, line: int, field: str = "") -> str:
        """Return the text without characters that databases refuse (NUL, lone surrogates), which are noted and
        replaced.

        Texts beyond the length limit are noted too."""
        if len(text) > self.limits.field_length:
            limit = self.limits.field_length
            self.problems.add("text_too_long", line, field or self.field, length=len(text), limit=limit)
        if match := UNSTORABLE.search(text):
            code = "nul_character" if match[0] == "\x00" else "lone_surrogate"
            self.problems.add(code, line, field or self.field)
            return UNSTORABLE.sub("\ufffd", text)
        return text

    def _push(self, level: _OpenCollection) -> None:
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
