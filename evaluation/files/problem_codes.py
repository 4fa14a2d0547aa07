"""Every problem and remark the file readers can report, with the names of its parameters.

A problem refuses the file; a remark goes into the preview.
"""

from __future__ import annotations

from collections.abc import Mapping

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
