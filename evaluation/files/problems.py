"""Problems of a file: their codes, the caps behind some of them, and their collection.

What a file may cost before it is refused: caps that hold before anything is walked or built.

Every problem and remark the file readers can report, with the names of its parameters.

``evaluation/wording/problems.py`` holds the sentence of each. A problem refuses the file; a remark goes into the
preview.

Collects every problem of one file, so that a person can mend all of them before trying again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from evaluation.core.errors import InvalidFile, Problem

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


FILE: Mapping[str, tuple[str, ...]] = {
    "file_empty": (),
    "file_too_large": ("size", "limit"),
    "file_archive": (),
    "file_pdf": (),
    "file_old_excel": (),
    "file_not_workbook": (),
    "file_binary": (),
    "format_unknown": ("known",),
    "format_not_accepted": ("format", "accepted"),
    "encoding_utf16": (),
    "encoding_damaged": ("byte",),
    "encoding_unknown": ("byte",),
}

TREE: Mapping[str, tuple[str, ...]] = {
    "nul_character": (),
    "lone_surrogate": (),
    "too_deep": ("limit",),
    "too_many_values": ("limit",),
    "too_many_problems": ("limit",),
    "text_too_long": ("length", "limit"),
    "duplicate_key": ("key", "first_line"),
    "number_too_large": ("digits",),
    "number_not_finite": ("value",),
    "yaml_syntax": ("detail",),
    "yaml_alias": ("name",),
    "yaml_merge_key": (),
    "yaml_tag": ("tag",),
    "yaml_documents": (),
    "yaml_complex_key": (),
    "quote_key": ("key",),
    "json_syntax": ("detail", "column"),
    "csv_syntax": ("detail",),
    "ragged_row": ("found", "expected"),
    "header_empty": ("column",),
    "header_twice": ("name",),
    "too_many_rows": ("limit",),
    "too_many_columns": ("limit",),
    "workbook_broken": ("detail",),
    "workbook_too_large": ("limit",),
    "workbook_entities": (),
    "formula": ("cell",),
    "error_cell": ("cell", "value"),
}

ROWS: Mapping[str, tuple[str, ...]] = {
    "no_rows": (),
    "shape_questions": ("found",),
    "shape_rows": ("found",),
    "row_not_mapping": ("found",),
    "missing": ("names",),
    "alias_twice": ("first", "second"),
    "quote_value": ("value",),
    "format_as_text": ("value",),
    "not_text": ("found",),
    "not_list": ("found",),
    "not_mapping": ("found",),
    "not_integer": ("value",),
    "not_number": ("value",),
    "not_boolean": ("value",),
    "not_a_date": ("value",),
    "out_of_range": ("value", "low", "high"),
    "too_long": ("length", "limit"),
    "empty_item": (),
    "cell_json": ("detail",),
    "unknown_choice": ("value", "known"),
    "unknown_key": ("key", "known"),
}

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "looks_like_answers": ("rows", "names"),
    "category_conflict": ("section", "category"),
    "check_missing": (),
    "check_phrases_missing": ("check",),
    "duplicate_id": ("id", "first_line"),
    "duplicate_question": ("first_line",),
    "group_field_unknown": ("name",),
}

ANSWERS: Mapping[str, tuple[str, ...]] = {
    "answer_missing": (),
    "context_empty": (),
    "duplicate_answer": ("question", "sample", "first_line"),
    "several_systems": ("systems",),
}

RATINGS: Mapping[str, tuple[str, ...]] = {
    "metric_unknown": ("metric", "rows"),
    "value_missing": (),
    "off_scale": ("value", "scale"),
    "duplicate_rating": ("first_line",),
    "part_range": ("start", "end"),
}

LABEL_STUDIO: Mapping[str, tuple[str, ...]] = {
    "no_tasks": (),
    "no_annotations": (),
    "task_without_question": (),
    "annotator_missing": (),
    "control_unknown": ("name", "known"),
    "control_twice": ("name",),
    "result_unreadable": ("type",),
    "annotations_cancelled": ("rows",),
    "tasks_of_other_answers": ("rows",),
}

REMARKS: Mapping[str, tuple[str, ...]] = {
    "encoding_cp949": (),
    "delimiter": ("delimiter",),
    "sheets_not_read": ("sheets",),
    "metadata_kept": ("keys",),
    "system_fields_kept": ("names",),
    "category_empty": ("rows",),
    "check_not_built_in": ("checks",),
    "hops_kept": ("rows",),
    "ids_derived": ("rows",),
    "references_split": ("rows",),
    "group_missing": ("name", "rows"),
    "judge_off_scale": ("rows",),
    "ratings_without_value": ("rows",),
}

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    **FILE,
    **TREE,
    **ROWS,
    **QUESTIONS,
    **ANSWERS,
    **RATINGS,
    **LABEL_STUDIO,
    **REMARKS,
}


class Problems:
    """The problems (they refuse the file) and remarks (they do not) found so far in one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []
        self.remarks: list[Problem] = []

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
        return sorted(self.found, key=lambda problem: problem.line or 0)
