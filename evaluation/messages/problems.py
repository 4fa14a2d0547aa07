"""Messages of file problems and remarks (``formats/tree.py``), of import results, and of invalid custom criteria."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

CRITERIA = {
    "criterion_invalid": _("Not a valid criterion: %(error)s"),
    "criterion_unseen": _("The text contains invisible characters (%(characters)s). Remove them."),
    "criterion_one_line": _("This must be a single line."),
    "criterion_level_no_number": _("Level %(row)s: enter its value as a number."),
    "criterion_class_unnamed": _("Class %(row)s: enter a name."),
    "criterion_level_no_text": _("Level %(row)s: describe %(language)s when an answer gets it."),
    "criterion_level_key": _("A level needs a number. A class needs a name of letters, digits and spaces."),
    "criterion_level_kind": _("Levels start with numbers, classes with names."),
    "criterion_levels_order": _("List the levels from lowest to highest without gaps."),
    "criterion_classes_repeat": _("Two classes have the same name."),
    "criterion_whole_levels": _("Levels are whole numbers. For numbers in between, choose the range."),
    "criterion_yes_no": _("Yes and no are the levels 0 (no) and 1 (yes)."),
    "criterion_no_question": _("Enter the question for the judge and experts."),
    "criterion_no_language": _("Write the question and levels in Korean, English or both."),
    "criterion_languages_differ": _("The levels of the two languages have different keys."),
    "criterion_needs_unseen": _("The criterion needs inputs that the judge can't see: %(slots)s."),
    "criterion_needs_mark": _("“clarification_ok” only marks some questions, so a criterion can't need it."),
    "criterion_class_direction": _("Classes have no direction. Choose “neither”."),
    "criterion_no_direction": _("Choose whether more or less is better."),
    "criterion_offline_class": _("The offline baseline only compares words, so it can't choose a class."),
    "criterion_offline_needs": _(
        "The stand-in “%(stand_in)s” counts words of “%(slot)s”, so the criterion must need it."
    ),
}

PROBLEM_MESSAGES = {
    # Whole file
    "file_empty": _("The file is empty."),
    "file_too_large": _(
        "The file is %(size)s. The limit here is %(limit)s (CONCORD_UPLOAD_BYTES). Split it into "
        "several files, save answers as JSON Lines, or import questions and answers with a command, which has "
        "no limit for them."
    ),
    "file_archive": _(
        "The file is actually a ZIP archive or an Excel workbook. Archives can't be read. Rename a "
        "workbook to end in .xlsx."
    ),
    "file_pdf": _("The file is a PDF despite its name. Export the table as CSV or XLSX."),
    "file_old_excel": _("This is an old or encrypted Excel file. Save it as .xlsx without a password."),
    "file_not_workbook": _("The name ends in .xlsx, but the file isn't an Excel workbook."),
    "file_binary": _("The file isn't text in a supported encoding (UTF-8, CP949)."),
    "traces_need_otel": _(
        "These look like OpenTelemetry traces in protobuf, which need the extra “otel”. Ask an "
        "operator to install it, or save them as JSON."
    ),
    "traces_damaged": _("These aren't OpenTelemetry traces in protobuf, or they are damaged."),
    "traces_none": _("The file contains no OpenTelemetry traces (OTLP as JSON or protobuf)."),
    "secrets_masked": _("Masked in %(places)s place(s): likely secrets and anything else set to be masked."),
    "format_unknown": _("Can't detect the format from the name or content. Use one of these extensions: %(known)s."),
    "format_not_accepted": _("This import accepts %(accepted)s, not %(format)s."),
    "encoding_utf16": _("The UTF-16 text is damaged (byte %(byte)s). Save it as UTF-8 (in Excel: “CSV UTF-8”)."),
    "encoding_damaged": _("The UTF-8 text is damaged here (byte %(byte)s). Save it again as UTF-8."),
    "encoding_unknown": _(
        "The encoding is neither UTF-8 nor CP949 (first invalid byte: %(byte)s). Save the file as UTF-8."
    ),
    "encoding_western": _(
        "The text is neither UTF-8 nor Korean in CP949. In Windows-1252 this line reads “%(text)s”. If "
        "that is right, choose the encoding cp1252 (--encoding cp1252). Otherwise save the file as "
        "UTF-8."
    ),
    "encoding_wrong": _("The text isn't %(encoding)s (first invalid byte: %(byte)s). Choose another encoding."),
    "file_not_columnar": _("The name says Parquet or Arrow, but the content is neither."),
    "arrow_not_installed": _(
        "Parquet and Arrow files need pyarrow. Ask an operator to install it (the extra “arrow”), or "
        'save the table as JSON Lines (in pandas: to_json with lines=True, orient="records").'
    ),
    "columnar_broken": _("The Parquet or Arrow file can't be read (%(detail)s). Save it again, or as JSON Lines."),
    "qrels_expected": _(
        "These aren't relevance judgements. Expected lines of topic, 0, passage and grade, or a BEIR table."
    ),
    "qrels_unmatched": _("No question in the file has an id that the judgements refer to."),
    # Syntax
    "nul_character": _("The text contains a NUL character, which databases can't store. Remove it."),
    "lone_surrogate": _(
        "The text contains an unpaired surrogate (\\ud800 to \\udfff). Replace it with a complete character."
    ),
    "too_deep": _("Lists and mappings are nested deeper than %(limit)s levels."),
    "too_many_values": _("The file contains more than %(limit)s values. Split it."),
    "too_many_problems": _("There are more than %(limit)s problems. Reading stopped here."),
    "text_too_long": _("The text has %(length)s characters. The limit is %(limit)s."),
    "duplicate_key": _("The key “%(key)s” appears twice, first in line %(first_line)s. Keep one."),
    "number_too_large": _("The number has %(digits)s digits, too many to store exactly. Put it in quotes."),
    "number_not_finite": _("%(value)s isn't valid JSON. Use null, or leave out the field."),
    "yaml_syntax": _("Invalid YAML: %(detail)s."),
    "yaml_alias": _("Aliases (*%(name)s) aren't allowed. Write out the value."),
    "yaml_merge_key": _("Merge keys (<<) aren't allowed. Write out the fields."),
    "yaml_tag": _("The tag %(tag)s isn't allowed. Remove it."),
    "yaml_documents": _("A second document starts here (---). Move it to a separate file."),
    "yaml_complex_key": _("A list or mapping cannot be a key."),
    "quote_key": _("The key %(key)s would be read as a number, date or true/false value. Put it in quotes."),
    "json_syntax": _("Invalid JSON at column %(column)s: %(detail)s."),
    "csv_syntax": _(
        "Mismatched quotes in this row: %(detail)s. Close the quotes of every cell, and double a quote inside one."
    ),
    "ragged_row": _(
        "The row has %(found)s cells, but the header has %(expected)s. Quote cells that contain the separator."
    ),
    "header_empty": _("Column %(column)s of the header has no name."),
    "header_twice": _("The column “%(name)s” appears twice in the header."),
    "bad_name": _("“%(name)s” isn't a valid name. Use 1 to %(limit)s characters, none of them invisible."),
    "too_many_rows": _("The table has more than %(limit)s rows. Split it."),
    "too_many_columns": _("The table has more than %(limit)s columns. Remove those you don't need."),
    "workbook_broken": _("The workbook can't be read (%(detail)s). Save it again in Excel, or as CSV UTF-8."),
    "workbook_too_large": _("The uncompressed workbook exceeds %(limit)s. Save the sheet as CSV UTF-8."),
    "workbook_entities": _("The workbook declares XML entities, which spreadsheets never do, so it wasn't read."),
    "formula": _("Cell %(cell)s contains a formula. Replace it with its value (copy, then paste values only)."),
    "error_cell": _("Cell %(cell)s contains the error %(value)s. Correct or clear it."),
    # Rows and fields
    "no_rows": _("The file has no rows."),
    "map_invalid": _("The map file doesn't have the required format: %(detail)s."),
    "map_finds_no_rows": _("There are no records at the expected path “%(rows)s”."),
    "map_failed": _("The expression “%(expression)s” doesn't work for this record: %(detail)s."),
    "shape_lacks_questions": _("This file (%(shape)s) contains answers but no questions. Import it as answers."),
    "shape_lacks_answers": _(
        "This file (%(shape)s) contains expected answers but none from a system. Import it as "
        "questions. If it does contain answers, specify their field in a map file (--map)."
    ),
    "shape_is_corpus": _("This file (%(shape)s) contains passages, not questions. Import the queries file."),
    "shape_is_qrels": _(
        "This file (%(shape)s) contains neither questions nor answers. Import the questions and add "
        "this file with --qrels."
    ),
    "shape_questions": _(
        "No questions found in this %(found)s. Expected categories with questions or a list of questions."
    ),
    "shape_rows": _("Expected a list of rows, found: %(found)s."),
    "row_not_mapping": _("Expected a row with named fields, found: %(found)s."),
    "missing": _("The field is missing or empty. Accepted names: %(names)s."),
    "missing_among": _("The field is missing or empty. Accepted names: %(names)s. The row has: %(columns)s."),
    "missing_likely": _(
        "The field is missing or empty. Is it in %(likely)s? If so, rename that field or map it in a "
        "map file (--map). Accepted names: %(names)s."
    ),
    "columns_unknown": _(
        "Can't tell which columns contain the questions or answers. The file has: %(columns)s. Check "
        "the proposed map, save it as a file and pass it with --map (REST: map)."
    ),
    "alias_twice": _("“%(first)s” and “%(second)s” name the same field but differ. Keep one, or rename the other."),
    "quote_value": _(
        "Expected text. Quote this value: “%(value)s” would be read as a number, date or true/false value."
    ),
    "format_as_text": _("Expected text. Format the cell with %(value)s as text and enter it again."),
    "not_text": _("Expected text, found: %(found)s."),
    "not_list": _("Expected a list, found: %(found)s."),
    "not_mapping": _("Expected named fields, found: %(found)s."),
    "not_integer": _("“%(value)s” isn't a whole number."),
    "not_number": _("“%(value)s” isn't a number."),
    "not_boolean": _("“%(value)s” isn't true or false."),
    "not_a_date": _("“%(value)s” isn't a date. Use 2026-01-31 or 2026-01-31T09:30:00+09:00."),
    "out_of_range": _("%(value)s isn't between %(low)s and %(high)s."),
    "too_long": _("The text has %(length)s characters. This field allows at most %(limit)s."),
    "empty_item": _("A list item is empty. Remove it or fill it in."),
    "cell_json": _("The cell starts like a JSON list but isn't one: %(detail)s."),
    "unknown_choice": _("“%(value)s” isn't one of: %(known)s."),
    "unknown_key": _("“%(key)s” isn't a known name. Known: %(known)s."),
    # Questions
    "looks_like_answers": _(
        "This looks like an answer file: %(rows)s row(s) have “answer” along with %(names)s. Import it "
        "as answers, or rename the reference to “expected_answer”."
    ),
    "category_conflict": _("The row has the category “%(category)s” but is listed under “%(section)s”."),
    "check_missing": _(
        "A negative question needs “check”: should_not_hallucinate, should_correct_premise, "
        "should_not_fabricate_data, should_provide_accurate_disclaimer, or a check from the profile."
    ),
    "duplicate_id": _("The id “%(id)s” appears twice, first in line or row %(first_line)s."),
    "duplicate_question": _(
        "The same question is in the same category in line or row %(first_line)s, both without an id. "
        "Remove one, or give them ids."
    ),
    "group_field_unknown": _("No row has the grouping field “%(name)s”."),
    # Answers
    "answer_missing": _("The row has no answer, no retrieved contexts or ids, and no error."),
    "answer_missing_likely": _(
        "The row has no answer, no retrieved contexts or ids, and no error. Is the answer in "
        "%(likely)s? If so, rename that field to “answer” or map it in a map file (--map)."
    ),
    "no_answers": _("None of the %(rows)s row(s) has an answer yet."),
    "context_empty": _("A context has neither text nor id."),
    "duplicate_answer": _(
        "A second answer to “%(question)s” with sample %(sample)s. The first is in line or row "
        "%(first_line)s. Use “sample” to number several answers to a question."
    ),
    "several_systems": _("The file contains answers from several systems (%(systems)s). Import one file per system."),
    # Ratings
    "metric_unknown": _(
        "Unknown metric “%(metric)s” in %(rows)s row(s). Define its scale: --define %(metric)s=1..5 "
        "(or 0..1:real, bool, class:a|b)."
    ),
    "value_missing": _("Without a value, a “reason” is required: why the judge failed or the person couldn't judge."),
    "off_scale": _("A person's value of %(value)s isn't on the scale %(scale)s."),
    "duplicate_rating": _(
        "The same rater already rated this answer, metric and phase in line or row %(first_line)s. Keep one."
    ),
    "part_range": _(
        "The part runs from %(start)s to %(end)s. Both are required, and the end can't come before the start."
    ),
    # Rubrics
    "rubric_not_yaml": _("The rubric isn't valid YAML: %(error)s"),
    "rubric_invalid": _("The rubric doesn't have the required format: %(error)s"),
    "profile_not_yaml": _("The profile isn't valid YAML: %(error)s"),
    "profile_invalid": _("The profile doesn't have the required format: %(error)s"),
    "experiment_not_yaml": _("The experiment isn't valid YAML: %(error)s"),
    "experiment_invalid": _("The experiment doesn't have the required format: %(error)s"),
    "experiment_has_questions": _("Import the questions as a question set (import_questions) and remove this entry."),
    "provision_not_yaml": _("The file isn't valid YAML: %(error)s"),
    "provision_invalid": _("The file doesn't have the required format: %(error)s"),
    "provision_refused": _("This can't be set up: %(error)s"),
    # Prices
    "prices_not_yaml": _("The price table isn't valid YAML: %(error)s"),
    "prices_invalid": _("The price table doesn't have the required format: %(error)s"),
    # Label Studio
    "no_tasks": _("This isn't a Label Studio export: a list of tasks is expected. Export as JSON, not JSON-MIN."),
    "no_annotations": _("No task has a submitted annotation."),
    "task_without_question": _(
        "The task has no question_id in its data. Only tasks exported from here can be imported."
    ),
    "annotator_missing": _("This annotation doesn't name its annotator."),
    "control_unknown": _("Unknown metric “%(name)s”. Known metrics: %(known)s."),
    "control_twice": _("“%(name)s” has two answers in one annotation."),
    "result_unreadable": _("Can't read a result of type %(type)s. Use a single choice, a rating or a number."),
    "annotations_cancelled": _("%(rows)s annotations skipped by their annotators were left out."),
    "tasks_of_other_answers": _(
        "%(rows)s ratings are for answers of other runs and were left out. Import the file into those runs too."
    ),
    # Remarks
    "encoding_cp949": _("Read as CP949 (Korean Excel). If the text looks wrong, choose another encoding (--encoding)."),
    "delimiter": _("The columns are separated by “%(delimiter)s” instead of commas."),
    "sheets_not_read": _(
        "Only the first sheet, “%(sheet)s”, is read. Not read: %(sheets)s. Move the sheet with the rows to the front."
    ),
    "metadata_kept": _("Kept as metadata, not used in any figure: %(keys)s."),
    "system_fields_kept": _("Answer file fields, kept here only as metadata: %(names)s."),
    "category_empty": _("%(rows)s question(s) have no category."),
    "check_not_built_in": _("Checks that must be defined in a profile: %(checks)s."),
    "check_phrases_missing": _(
        "%(rows)s question(s) with the check should_correct_premise have no check_phrases. An answer "
        "passes if it mentions 미래에셋, as in the profile graphrag. For any other correction, add its "
        "words as check_phrases."
    ),
    "hops_kept": _("“hops” is a list of paths, not a number, in %(rows)s question(s). It is kept as metadata."),
    "ids_derived": _("%(rows)s question(s) got an ID derived from category and text."),
    "references_split": _("“|” separates several expected answers in %(rows)s row(s)."),
    "references_further": _(
        "%(rows)s row(s) have further expected answers (such as alt_ans), which count as equally good."
    ),
    "lists_read": _("Python or numpy lists written as text were read as lists in up to %(rows)s row(s): %(names)s."),
    "missing_words_kept": _(
        "Up to %(rows)s cell(s) contain a word for a missing value (nan, NaN, NaT, None, null, <NA>) "
        "and are kept as text: %(names)s. Clear them if there is no value."
    ),
    "no_answer_yet": _("%(rows)s row(s) have no answer yet and are left out."),
    "empty_answers": _("%(rows)s answer(s) are empty and count as the system's answer."),
    "reference_not_found": _(
        "No expected answers found. Are they in %(names)s? Then rename that field to expected_answer."
    ),
    "passages_not_found": _(
        "No passages found. Are they in %(names)s? Name the retrieved passages contexts (their IDs: "
        "retrieved_context_ids) and, in questions, the IDs of passages to find ground_truth_chunk_ids."
    ),
    "passages_alternative": _(
        "%(rows)s row(s) list passages of which one is enough. Here, each counts as a passage to find."
    ),
    "shape_known": _("Read as %(shape)s: %(columns)s."),
    "titles_left_out": _("%(rows)s row(s) above the column names were left out as a title or note."),
    "index_left_out": _("The first column was left out: it has no name and only counts rows (pandas index)."),
    "columns_not_read": _("Binary columns are not read: %(columns)s."),
    "qrels_added": _(
        "The judgements name passages to find for %(rows)s question(s), with all grades above 0 "
        "counted as equal. %(missing)s question(s) have none."
    ),
    "qrels_of_unknown": _(
        "%(judgements)s judgement(s) are for %(topics)s topic(s) that the set doesn't have and are not "
        "counted: %(ids)s."
    ),
    "assertions_not_taken": _(
        "Assertions other than expected answers and keywords are kept only as metadata, because a "
        "model, a program or a promptfoo rule decides them: %(types)s."
    ),
    "rows_left_out": _("%(rows)s record(s) lack what the map requires and were left out."),
    "group_missing": _("%(rows)s row(s) lack the field “%(name)s” and count as independent questions."),
    "judge_off_scale": _("%(rows)s judge value(s) are off the scale. They are kept and counted as failures."),
    "ratings_without_value": _("%(rows)s rating(s) have a reason but no value. They are kept as failed or not judged."),
    # Results of importing a question set
    "set_created": _("Imported as %(set)s with %(questions)s question(s)."),
    "set_next_version": _("Imported as %(set)s with %(questions)s question(s). Previous version: %(before)s."),
    "set_unchanged": _("No changes: %(set)s has exactly this content and is used."),
    "set_selected": _("%(set)s has exactly this content and is used, although %(newest)s is newer."),
    "metadata_not_taken_over": _("Metadata that differs and was not imported: %(keys)s."),
    "upload_confirmed_before": _("This upload was already confirmed. It became %(set)s."),
    # Documents of a corpus
    "document_unknown": _("Files of this type can't be read as documents. Supported extensions: %(known)s."),
    "document_too_long": _("The text has more than %(limit)s characters. Split the document into several files."),
    "document_without_text": _("This file contains no text."),
    "pdf_broken": _("Can't read the PDF (%(detail)s). Save it again, or as text."),
    "pdf_encrypted": _("The PDF is encrypted. Save it without a password."),
    "pdf_too_long": _("The PDF has more than %(limit)s pages or takes too long to read. Split it."),
    "pdf_without_text": _("The PDF contains page images but no text. Run text recognition (OCR) first."),
    "docx_broken": _("Can't read the Word document (%(detail)s). Save it again as .docx, or as text."),
    "docx_too_large": _("The Word document unpacks to more than %(limit)s. Split it."),
    "docx_entities": _("The Word document declares XML entities, which word processors don't write. Save it again."),
    # Results of importing a corpus
    "corpus_created": _("Imported as %(corpus)s: %(documents)s document(s) in %(chunks)s chunk(s)."),
    "corpus_next_version": _(
        "Imported as %(corpus)s: %(documents)s document(s) in %(chunks)s chunk(s). Previous version: %(before)s."
    ),
    "corpus_unchanged": _("No changes: %(corpus)s has exactly this content and is used."),
    "corpus_selected": _("%(corpus)s has exactly this content and is used, although %(newest)s is newer."),
    # Answers that do not fit their questions
    "question_unknown": _("The question set has no question with the ID “%(id)s”."),
    "question_unknown_near": _("The question set has no question with the ID “%(id)s”. Similar: %(near)s."),
    "question_text_unknown": _("The question set has no question “%(question)s”. Add its question_id."),
    "question_ambiguous": _("Several questions have this text (%(ids)s). Add the question_id."),
    "questions_unmatched": _(
        "None of the %(rows)s row(s) match a question in the set. IDs in the file: %(given)s. IDs in "
        "the set: %(ids)s. Choose the right question set, or correct the IDs."
    ),
    "passages_unmatched": _(
        "None of the passages in the answers are passages to find, so recall would be 0 everywhere. "
        "IDs in the file: %(given)s. IDs in the questions: %(expected)s. If they mean the same "
        "passages, correct the IDs. If the system really found none of them, import the file as it is "
        "(on the command line, with --accept-unknown-passages)."
    ),
    "answers_missing": _("%(questions)s question(s) have no answer: %(ids)s."),
    "question_text_differs": _(
        "In %(rows)s row(s), the question text differs from the question with the same ID in the question set."
    ),
    "answers_unchanged": _("No changes: answer set %(answers)s has exactly these answers. Its run is %(run)s."),
    "system_differs": _("The file names the system “%(file_says)s”, but the answers were imported for “%(given)s”."),
    # Ratings that do not fit their run
    "question_unanswered": _("The run has no answer to a question with the ID “%(id)s”."),
    "sample_unknown": _("The run has no such answer to “%(id)s”. Add its “sample”. Available: %(samples)s."),
    "parts_without_value": _("“%(metric)s” has no formula to compute a value from its parts. Add a value."),
    "pairs_not_here": _("Comparisons of two answers (pair_id) don't belong to a run. Import them with import_pairs."),
    "pair_id_missing": _("The row has no pair (pair_id). Import ratings of single answers with import_ratings."),
    "pair_differs": _("The pair %(id)s has different texts or systems in an earlier row or import."),
    **CRITERIA,
}

#: Pattern of an English parser or validation message -> translated message; the first match counts.
PARSER_MESSAGES: tuple[tuple[str, Promise], ...] = (
    # JSON, by the scanner and by Python
    (r"^extra content after the end|^Extra data", _("extra content after the end of the value")),
    (r"^a comma or } is missing", _("a comma or } is missing")),
    (r"^a comma or \] is missing", _("a comma or ] is missing")),
    (r"^Expecting ',' delimiter", _("a comma is missing")),
    (r"a key in double quotes is expected|^Expecting property name", _("a key in double quotes is expected")),
    (r"^a colon is missing|^Expecting ':' delimiter", _("a colon is missing after the key")),
    (
        r"^a text isn't closed|^Unterminated string|^Invalid control character",
        _("a text isn't closed on its line or contains a control character"),
    ),
    (r"^Invalid \\", _("a backslash is followed by a character that JSON doesn't allow")),
    (r"^Expecting value|^(?P<found>.*) is not (valid JSON|a JSON value)$", _("no JSON value begins here")),
    (r"^a key appears twice", _("a key appears twice")),
    # CSV
    (r"^unexpected end of data", _("a quote is never closed")),
    (r"expected after '\"'", _("a comma is expected after the closing quote")),
    (r"^new-line character seen", _("a line ends inside an unquoted cell")),
    # YAML
    (
        r"mapping values are not allowed|could not find expected ':'|found unexpected ':'",
        _("a colon is misplaced or missing"),
    ),
    (r"did not find expected ',', '[\]}]'", _("a comma or a closing bracket is missing")),
    (
        r"did not find expected key|expected '-' indicator|block end",
        _("the indentation is wrong, or a quote is missing"),
    ),
    (r"unexpected end of stream|unexpected document|expected node content", _("a quote or bracket is never closed")),
    (
        r"cannot start any token|tab character|scanning a directive",
        _("a tab or character here can't start a value in YAML (put the text in quotes)"),
    ),
    (r"unknown escape character|hexdecimal", _("a backslash is followed by a character that YAML doesn't allow")),
    (r"control characters are not allowed", _("there is an invisible control character (delete it)")),
    (r"scanning a block scalar", _("the line must end after | or >")),
    (
        r"(sequence entries|mapping keys) are not allowed",
        _("a list or field can't begin here (check the indentation)"),
    ),
    (r"scanning an (alias|anchor)", _("* and & begin a name in YAML (put the text in quotes)")),
    (r"expected <document start>", _("extra content after the end of the value")),
    (r"undefined alias|aliases are not read", _("aliases (*name) are not supported (write the value out)")),
    (r"the key (?P<key>.+) is there twice", _("the key %(key)s appears twice")),
    (r"not a YAML mapping|valid dictionary|valid mapping", _("named fields are expected")),
    # Checks of a form
    (r"^Field required", _("the field is missing")),
    (r"^Extra inputs", _("there is no such field")),
    (r"valid string", _("text is expected")),
    (r"valid integer", _("a whole number is expected")),
    (r"valid (number|decimal)|finite number", _("a number is expected")),
    (r"valid boolean", _("true or false is expected")),
    (r"valid (list|tuple|array)", _("a list is expected")),
    (r"should be (?P<known>'.+')$", _("one of these is expected: %(known)s")),
    (r"greater than or equal to (?P<low>\S+)", _("at least %(low)s is expected")),
    (r"less than or equal to (?P<high>\S+)", _("at most %(high)s is expected")),
    (r"greater than (?P<low>\S+)", _("more than %(low)s is expected")),
    (r"less than (?P<high>\S+)", _("less than %(high)s is expected")),
    (r"should have at least (?P<low>\d+)", _("too short: at least %(low)s")),
    (r"should have at most (?P<high>\d+)", _("too long: at most %(high)s")),
    (r"should match pattern '(?P<pattern>.+)'", _("the text must match %(pattern)s")),
    (r"weights and constant sum to (?P<total>\S+), not 1", _("weights and constant sum to %(total)s, not 1")),
    (r"named twice: (?P<names>.+)", _("named twice: %(names)s")),
    (
        r"(?P<field>\w+) names what the profile does not have: (?P<names>.+)",
        _("%(field)s: not in the profile: %(names)s"),
    ),
    (r"two bands start at the same value", _("two bands start at the same value")),
    (r"(?P<name>\S+) has either levels or labels", _("%(name)s must have either levels or labels")),
    (r"(?P<name>\S+) has less than two levels", _("%(name)s has fewer than two levels")),
    (
        r"a (?:metric|step) is there twice: (?P<names>.+)|a label of (?P<name>\S+) is there twice",
        _("an entry appears twice"),
    ),
    (
        r"the levels of (?P<name>\S+) are not every whole number",
        _("the levels of %(name)s must be consecutive whole numbers"),
    ),
    (r"score map of (?P<name>\S+) does not rise", _("the score map of %(name)s must increase")),
    (
        r"^unknown .+? '(?P<name>.+?)'.*\(known: (?P<known>.*)\)$",
        _("“%(name)s” is unknown (known: %(known)s)"),
    ),
    # Parquet, Arrow, Excel and Word; an error class in the message means a damaged file.
    (
        r"^(\w*Error|Arrow\w+|BadZipFile|error): ",
        _("the file is damaged or incomplete: save or send it again"),
    ),
    (r"neither (?P<one>\w+) nor (?P<other>\w+)$", _("%(one)s and %(other)s are both missing")),
)
UNKNOWN_PARSER_MESSAGE = _("it doesn't have the expected form")

NODE_KIND_NAMES = {
    "text": _("text"),
    "integer": _("whole number"),
    "real": _("number"),
    "boolean": _("true/false value"),
    "null": _("null"),
    "ambiguous": _("number or date"),
    "cell": _("cell"),
    "list": _("list"),
    "map": _("mapping"),
}
