"""Messages of file problems and remarks (``formats/tree.py``), of import results, and of invalid custom criteria."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

CRITERIA = {
    "criterion_invalid": _("This does not make a criterion: %(error)s"),
    "criterion_unseen": _("The text holds characters that nobody sees (%(characters)s). Remove them."),
    "criterion_one_line": _("This has to be one line."),
    "criterion_level_no_number": _("Level %(row)s: write its value as a number."),
    "criterion_class_unnamed": _("Class %(row)s: give it a name."),
    "criterion_level_no_text": _("Level %(row)s: write %(language)s when an answer gets it."),
    "criterion_level_key": _("A level has a number, a class a name of letters, digits and spaces."),
    "criterion_level_kind": _("Levels start with numbers, classes with names."),
    "criterion_levels_order": _("Write the levels from the lowest to the highest, without a gap."),
    "criterion_classes_repeat": _("Two classes have the same name."),
    "criterion_whole_levels": _("Levels are whole numbers. For numbers between them choose the range."),
    "criterion_yes_no": _("Yes and no are the levels 0 (no) and 1 (yes)."),
    "criterion_no_question": _("Write the question that judge and experts answer."),
    "criterion_no_language": _("Write question and levels in Korean, in English, or in both."),
    "criterion_languages_differ": _("The levels of the two languages have different keys."),
    "criterion_needs_unseen": _("The criterion needs what the judge may not see: %(slots)s."),
    "criterion_needs_mark": _("“clarification_ok” marks some questions; no criterion can need it."),
    "criterion_class_direction": _("Classes have no direction: choose “neither”."),
    "criterion_no_direction": _("Say whether more or less is better."),
    "criterion_offline_class": _("The offline baseline counts words and cannot choose a class."),
    "criterion_offline_needs": _(
        "The stand-in “%(stand_in)s” counts words of “%(slot)s”, so the criterion has to need it."
    ),
}

PROBLEM_MESSAGES = {
    # Whole file
    "file_empty": _("The file is empty."),
    "file_too_large": _(
        "The file has %(size)s; at most %(limit)s can be read here (CONCORD_UPLOAD_BYTES). Split it into several "
        "files, save answers as JSON Lines, or import it at a terminal, which knows no limit."
    ),
    "file_archive": _(
        "The content is a ZIP archive or an Excel workbook under another name. Archives are not read; "
        "give a workbook the ending .xlsx."
    ),
    "file_pdf": _("The content is a PDF, whatever the name says. Export the table as CSV or XLSX."),
    "file_old_excel": _("This is an old or encrypted Excel file. Save it as .xlsx without a password."),
    "file_not_workbook": _("The name ends in .xlsx, but the content is no Excel workbook."),
    "file_binary": _("The content is no text in any encoding that is read here (UTF-8, CP949)."),
    "traces_need_otel": _(
        "These may be OpenTelemetry traces in protobuf, which need the extra “otel”. Have it installed here, or write "
        "them as JSON."
    ),
    "traces_damaged": _("These are no OpenTelemetry traces in protobuf, or they are damaged."),
    "traces_none": _("The file holds no OpenTelemetry traces (OTLP as JSON or protobuf)."),
    "secrets_masked": _("Masked in %(places)s place(s): what looks like a secret, and what else was to be masked."),
    "format_unknown": _("The format cannot be told from name or content. Use one of these endings: %(known)s."),
    "format_not_accepted": _("This import takes %(accepted)s, not %(format)s."),
    "encoding_utf16": _("The text is UTF-16 but damaged (byte %(byte)s). Save it as UTF-8 (in Excel: “CSV UTF-8”)."),
    "encoding_damaged": _("The text is UTF-8 but damaged here (byte %(byte)s). Save it again as UTF-8."),
    "encoding_unknown": _("The encoding is neither UTF-8 nor CP949 (first odd byte %(byte)s). Save the file as UTF-8."),
    "encoding_western": _(
        "The text is neither UTF-8 nor Korean in CP949. In Windows-1252 this line reads “%(text)s”. If that is right, "
        "choose the encoding cp1252 (--encoding cp1252); else save the file as UTF-8."
    ),
    "encoding_wrong": _("The text is not in %(encoding)s (first odd byte %(byte)s). Choose another encoding."),
    "file_not_columnar": _("The name says Parquet or Arrow, but the content is neither."),
    "arrow_not_installed": _(
        "This is a Parquet or Arrow file, which needs pyarrow. Have it installed here (the extra “arrow”), or save the "
        'table as JSON Lines (in pandas: to_json with lines=True, orient="records").'
    ),
    "columnar_broken": _("The Parquet or Arrow file cannot be read (%(detail)s). Write it anew, or as JSON Lines."),
    "qrels_expected": _("These are no judgements: lines of topic, 0, passage and grade are expected, or BEIR's table."),
    "qrels_unmatched": _("No question of the file has one of the ids that the judgements are about."),
    # Syntax
    "nul_character": _("The text holds a NUL character, which no database stores. Remove it."),
    "lone_surrogate": _("The text holds half a character (a surrogate alone, \\ud800 to \\udfff). Write it whole."),
    "too_deep": _("Lists and mappings are nested deeper than %(limit)s levels."),
    "too_many_values": _("The file holds more than %(limit)s values. Split it."),
    "too_many_problems": _("There are more than %(limit)s problems; the reading stopped here."),
    "text_too_long": _("The text has %(length)s characters; at most %(limit)s are read."),
    "duplicate_key": _("The key “%(key)s” stands twice; first in line %(first_line)s. Keep one."),
    "number_too_large": _("The number has %(digits)s digits, too many to be kept exactly. Write it in quotes."),
    "number_not_finite": _("%(value)s is no JSON. Write null, or leave the field out."),
    "yaml_syntax": _("This is no valid YAML: %(detail)s."),
    "yaml_alias": _("Aliases (*%(name)s) are not allowed. Write the value out."),
    "yaml_merge_key": _("Merge keys (<<) are not allowed. Write the fields out."),
    "yaml_tag": _("The tag %(tag)s is not allowed. Remove it."),
    "yaml_documents": _("A second document begins here (---). Put it into a file of its own."),
    "yaml_complex_key": _("A list or mapping cannot be a key."),
    "quote_key": _("The key %(key)s would be read as a number, date or truth value. Write it in quotes."),
    "json_syntax": _("This is no valid JSON at column %(column)s: %(detail)s."),
    "csv_syntax": _("The quotes of this row do not fit: %(detail)s. Close every cell; double a quote inside one."),
    "ragged_row": _("The row has %(found)s cells, the header %(expected)s. Quote cells that contain the separator."),
    "header_empty": _("Column %(column)s of the header has no name."),
    "header_twice": _("The column “%(name)s” stands twice in the header."),
    "bad_name": _("“%(name)s” cannot be a name: it needs 1 to %(limit)s characters, none of them invisible."),
    "too_many_rows": _("The table has more than %(limit)s rows. Split it."),
    "too_many_columns": _("The table has more than %(limit)s columns. Remove those that are not needed."),
    "workbook_broken": _("The workbook cannot be read (%(detail)s). Save it anew in Excel, or as CSV UTF-8."),
    "workbook_too_large": _("The workbook unpacks to more than %(limit)s. Save the sheet as CSV UTF-8."),
    "workbook_entities": _("The workbook declares XML entities, which no spreadsheet writes. It is not read."),
    "formula": _("Cell %(cell)s holds a formula. Replace it by its value (copy, then paste values only)."),
    "error_cell": _("Cell %(cell)s shows the error %(value)s. Correct or empty it."),
    # Rows and fields
    "no_rows": _("There is not one row in the file."),
    "map_invalid": _("The map file does not have the required form: %(detail)s."),
    "map_finds_no_rows": _("There are no records at “%(rows)s”, where they are looked for."),
    "map_failed": _("The expression “%(expression)s” does not fit this record: %(detail)s."),
    "shape_lacks_questions": _(
        "This is a file of %(shape)s, which holds answers and no questions. Import it as answers."
    ),
    "shape_lacks_answers": _(
        "This is a file of %(shape)s, which holds what is expected and no answers of a system. Import it as questions; "
        "where it does hold answers, say by a map file (--map) in which field."
    ),
    "shape_is_corpus": _("This is a %(shape)s: passages, no questions. Import the file of queries."),
    "shape_is_qrels": _(
        "These are %(shape)s, no questions and no answers. Import the questions, and give this file beside them "
        "(--qrels)."
    ),
    "shape_questions": _(
        "No questions were found in this %(found)s. Expected: categories with questions, or a list of questions."
    ),
    "shape_rows": _("A list of rows is expected, not this %(found)s."),
    "row_not_mapping": _("A row with named fields is expected here, not a %(found)s."),
    "missing": _("The field is missing or empty. It may be called: %(names)s."),
    "missing_among": _("The field is missing or empty. It may be called: %(names)s. The row has: %(columns)s."),
    "missing_likely": _(
        "The field is missing or empty. Is it in %(likely)s? Then rename that field, or say so in a map file (--map). "
        "Known names: %(names)s."
    ),
    "columns_unknown": _(
        "The columns with the questions or answers are not known. The file has: %(columns)s. Check the proposed map, "
        "save it as a file and give it by --map (REST: map)."
    ),
    "alias_twice": _("“%(first)s” and “%(second)s” name the same field and differ. Keep one, or rename the other."),
    "quote_value": _(
        "A text is expected. Quote this value: “%(value)s” would be read as a number, date or truth value."
    ),
    "format_as_text": _("A text is expected: format the cell with %(value)s as text and enter it again."),
    "not_text": _("A text is expected here, not a %(found)s."),
    "not_list": _("A list is expected here, not a %(found)s."),
    "not_mapping": _("Named fields are expected here, not a %(found)s."),
    "not_integer": _("“%(value)s” is no whole number."),
    "not_number": _("“%(value)s” is no number."),
    "not_boolean": _("“%(value)s” is neither true nor false."),
    "not_a_date": _("“%(value)s” is no date. Write it as 2026-01-31 or 2026-01-31T09:30:00+09:00."),
    "out_of_range": _("%(value)s lies outside %(low)s to %(high)s."),
    "too_long": _("The text has %(length)s characters; this field holds at most %(limit)s."),
    "empty_item": _("An item of the list is empty. Remove it or fill it in."),
    "cell_json": _("The cell begins like a JSON list but is none: %(detail)s."),
    "unknown_choice": _("“%(value)s” is not one of: %(known)s."),
    "unknown_key": _("“%(key)s” is not known here. Known: %(known)s."),
    # Questions
    "looks_like_answers": _(
        "This looks like an answer file: %(rows)s row(s) hold “answer” beside %(names)s. Import it as answers, "
        "or call the reference “expected_answer”."
    ),
    "category_conflict": _("The row says category “%(category)s” but stands under “%(section)s”."),
    "check_missing": _(
        "A negative question needs “check”: should_not_hallucinate, should_correct_premise, "
        "should_not_fabricate_data, should_provide_accurate_disclaimer, or a check of the profile."
    ),
    "duplicate_id": _("The id “%(id)s” stands twice; first in line or row %(first_line)s."),
    "duplicate_question": _(
        "The same question stands in the same category in line or row %(first_line)s, both without an id. "
        "Remove one or give them ids."
    ),
    "group_field_unknown": _("No row has the field “%(name)s” by which questions should be grouped."),
    # Answers
    "answer_missing": _("The row has no answer, no retrieved contexts or ids, and no error."),
    "answer_missing_likely": _(
        "The row has no answer, no retrieved contexts or ids, and no error. Is the answer in %(likely)s? Then rename "
        "that field to “answer”, or say so in a map file (--map)."
    ),
    "no_answers": _("None of the %(rows)s row(s) has an answer yet."),
    "context_empty": _("A context has neither text nor id."),
    "duplicate_answer": _(
        "A second answer to “%(question)s” with sample %(sample)s; the first is in line or row %(first_line)s. "
        "Number several answers to one question with “sample”."
    ),
    "several_systems": _("The file holds answers of several systems (%(systems)s). Import one file per system."),
    # Ratings
    "metric_unknown": _(
        "The metric “%(metric)s” of %(rows)s row(s) is not known. Define its scale: --define %(metric)s=1..5 "
        "(or 0..1:real, bool, class:a|b)."
    ),
    "value_missing": _("Without a value a “reason” is needed: why the judge failed or the person could not judge."),
    "off_scale": _("A person's value %(value)s is not on the scale %(scale)s."),
    "duplicate_rating": _(
        "The same rater rates the same answer, metric and phase in line or row %(first_line)s. Keep one."
    ),
    "part_range": _("The part runs from %(start)s to %(end)s: both are needed, the end not before the start."),
    # Rubrics
    "rubric_not_yaml": _("The rubric is no valid YAML: %(error)s"),
    "rubric_invalid": _("The rubric does not have the required form: %(error)s"),
    "profile_not_yaml": _("The profile is no valid YAML: %(error)s"),
    "profile_invalid": _("The profile does not have the required form: %(error)s"),
    "experiment_not_yaml": _("The experiment is no valid YAML: %(error)s"),
    "experiment_invalid": _("The experiment does not have the required form: %(error)s"),
    "experiment_has_questions": _("Bring the questions in as a question set (import_questions) and take this out."),
    "provision_not_yaml": _("The file is no valid YAML: %(error)s"),
    "provision_invalid": _("The file does not have the required form: %(error)s"),
    "provision_refused": _("This cannot be set up: %(error)s"),
    # Prices
    "prices_not_yaml": _("The price table is no valid YAML: %(error)s"),
    "prices_invalid": _("The price table does not have the required form: %(error)s"),
    # Label Studio
    "no_tasks": _("This is no Label Studio export: a list of tasks is expected. Export as JSON, not as JSON-MIN."),
    "no_annotations": _("No task has an annotation that was submitted."),
    "task_without_question": _("The task has no question_id in its data. Only tasks exported from here can come back."),
    "annotator_missing": _("It is not said who made this annotation."),
    "control_unknown": _("“%(name)s” is no metric that is known here (%(known)s)."),
    "control_twice": _("“%(name)s” is answered twice in one annotation."),
    "result_unreadable": _("A result of type %(type)s cannot be read: one choice, a rating or a number is expected."),
    "annotations_cancelled": _("%(rows)s annotations were skipped by their annotators and are left out."),
    "tasks_of_other_answers": _(
        "%(rows)s ratings are about answers of other runs and are left out here; import the file into those runs too."
    ),
    # Remarks
    "encoding_cp949": _("Read as CP949 (Korean Excel). If the text looks wrong, choose another encoding (--encoding)."),
    "delimiter": _("The columns are separated by “%(delimiter)s” instead of commas."),
    "sheets_not_read": _(
        "Only the first sheet, “%(sheet)s”, is read. Not read: %(sheets)s. Move the sheet with the rows to the front."
    ),
    "metadata_kept": _("Kept as metadata, without influence on any figure: %(keys)s."),
    "system_fields_kept": _("Fields of an answer file are only kept as metadata here: %(names)s."),
    "category_empty": _("%(rows)s question(s) have no category."),
    "check_not_built_in": _("Checks that only a profile can define: %(checks)s."),
    "check_phrases_missing": _(
        "%(rows)s question(s) with the check should_correct_premise have no check_phrases. An answer passes if it "
        "names 미래에셋, as in the profile graphrag. For any other correction, add check_phrases with its words."
    ),
    "hops_kept": _("“hops” of %(rows)s question(s) is a list of paths, not a number: kept as metadata."),
    "ids_derived": _("%(rows)s question(s) got an id derived from category and text."),
    "references_split": _("“|” separates several expected answers in %(rows)s row(s)."),
    "references_further": _(
        "%(rows)s row(s) name further expected answers, which count as equally good (alt_ans and its like)."
    ),
    "lists_read": _("Texts that are lists of Python or numpy were read as lists in up to %(rows)s row(s): %(names)s."),
    "missing_words_kept": _(
        "Up to %(rows)s cell(s) hold a word for a missing value (nan, NaN, NaT, None, null, <NA>) and are kept as "
        "text: %(names)s. Empty them if nothing is there."
    ),
    "no_answer_yet": _("%(rows)s row(s) have no answer yet and are left out."),
    "empty_answers": _("%(rows)s answer(s) are empty and count as what the system said."),
    "reference_not_found": _(
        "Nothing became an expected answer. Is it in %(names)s? Then name that field expected_answer."
    ),
    "passages_not_found": _(
        "Nothing became a passage. Is it in %(names)s? Name the retrieved passages contexts (their ids: "
        "retrieved_context_ids), in questions the ids that should be found ground_truth_chunk_ids."
    ),
    "passages_alternative": _(
        "%(rows)s row(s) name passages of which one is enough; here each counts as one that should be found."
    ),
    "shape_known": _("Read as %(shape)s: %(columns)s."),
    "index_left_out": _("The first column has no name and counts the rows: pandas' index, left out."),
    "columns_not_read": _("Columns of bytes are not read: %(columns)s."),
    "qrels_added": _(
        "%(rows)s question(s) have passages that should be found from the judgements (grades above 0, counted as "
        "equal); %(missing)s have none."
    ),
    "qrels_of_unknown": _(
        "%(judgements)s judgement(s) are about %(topics)s topic(s) that the set does not have, and count nowhere: "
        "%(ids)s."
    ),
    "assertions_not_taken": _(
        "Assertions that are no expected answer and no keyword are only kept as metadata, since a model, a program or "
        "a rule of promptfoo decides them: %(types)s."
    ),
    "rows_left_out": _("%(rows)s record(s) do not have what the map asks for and are left out."),
    "group_missing": _("%(rows)s row(s) lack the field “%(name)s” and count as independent questions."),
    "judge_off_scale": _("%(rows)s value(s) of judges are off the scale: kept as failures and counted."),
    "ratings_without_value": _("%(rows)s rating(s) have no value but a reason: kept as failed or not judged."),
    # Results of importing a question set
    "set_created": _("Imported as %(set)s with %(questions)s question(s)."),
    "set_next_version": _("Imported as %(set)s with %(questions)s question(s); it follows %(before)s."),
    "set_unchanged": _("Nothing new: %(set)s has exactly this content and is used."),
    "set_selected": _(
        "%(set)s has exactly this content and is used, although it is not the newest version (%(newest)s)."
    ),
    "metadata_not_taken_over": _("Metadata that differs and was not taken over: %(keys)s."),
    "upload_confirmed_before": _("This upload was confirmed before; it became %(set)s."),
    # Documents of a corpus
    "document_unknown": _("Files of this kind are not read as documents. Those are, by their ending: %(known)s."),
    "document_too_long": _("The text has more than %(limit)s characters. Split the document into several files."),
    "document_without_text": _("There is no text in this file."),
    "pdf_broken": _("The PDF cannot be read (%(detail)s). Save it anew, or as text."),
    "pdf_encrypted": _("The PDF is encrypted. Save it without a password."),
    "pdf_too_long": _("The PDF has more than %(limit)s pages, or takes too long to read. Split it."),
    "pdf_without_text": _("The PDF holds pictures of pages, but no text. Run it through text recognition (OCR) first."),
    "docx_broken": _("The Word document cannot be read (%(detail)s). Save it anew as .docx, or as text."),
    "docx_too_large": _("The Word document unpacks to more than %(limit)s. Split it."),
    "docx_entities": _("The Word document declares XML entities, which no word processor writes. Save it anew."),
    # Results of importing a corpus
    "corpus_created": _("Imported as %(corpus)s: %(documents)s document(s) in %(chunks)s chunk(s)."),
    "corpus_next_version": _(
        "Imported as %(corpus)s: %(documents)s document(s) in %(chunks)s chunk(s); it follows %(before)s."
    ),
    "corpus_unchanged": _("Nothing new: %(corpus)s has exactly this content and is used."),
    "corpus_selected": _(
        "%(corpus)s has exactly this content and is used, although it is not the newest version (%(newest)s)."
    ),
    # Answers that do not fit their questions
    "question_unknown": _("The question set has no question with the id “%(id)s”."),
    "question_unknown_near": _("The question set has no question with the id “%(id)s”. Near: %(near)s."),
    "question_text_unknown": _("The question set has no question “%(question)s”. Give its question_id."),
    "question_ambiguous": _("Several questions have this text (%(ids)s). Give the question_id."),
    "questions_unmatched": _(
        "None of the %(rows)s row(s) names a question of the set. The file has: %(given)s. The set has: %(ids)s. "
        "Choose the right question set, or correct the ids."
    ),
    "passages_unmatched": _(
        "Not one of the passages that the answers name is among those that should be found, so recall would be 0 "
        "everywhere. The file has: %(given)s. The questions have: %(expected)s. If they do mean the same passages, "
        "correct the ids. If the system really found none of them, import the file as it is (by command with "
        "--accept-unknown-passages)."
    ),
    "answers_missing": _("%(questions)s question(s) have no answer: %(ids)s."),
    "question_text_differs": _(
        "%(rows)s row(s) hold a question text that differs from the one in the question set under their id."
    ),
    "answers_unchanged": _("Nothing new: answer set %(answers)s has exactly these answers; its run is %(run)s."),
    "system_differs": _("The file names the system “%(file_says)s”; the answers were imported for “%(given)s”."),
    # Ratings that do not fit their run
    "question_unanswered": _("The run has no answer to a question with the id “%(id)s”."),
    "sample_unknown": _("The run has no such answer to “%(id)s”. Name its “sample”; there are: %(samples)s."),
    "parts_without_value": _("Give a value beside the parts: “%(metric)s” has no formula that would compute it."),
    "pairs_not_here": _("Comparisons of two answers (pair_id) belong to no run. Import them with import_pairs."),
    "pair_id_missing": _("The row names no pair (pair_id). Ratings of single answers belong to import_ratings."),
    "pair_differs": _("The pair %(id)s has other texts or systems in an earlier row or import."),
    **CRITERIA,
}

#: Pattern of an English parser or validation message -> translated message; the first match counts.
PARSER_MESSAGES: tuple[tuple[str, Promise], ...] = (
    # JSON, by the scanner and by Python
    (r"^something follows the end of the value|^Extra data", _("something follows the end of the value")),
    (r"^a comma or } is missing", _("a comma or } is missing")),
    (r"^a comma or \] is missing", _("a comma or ] is missing")),
    (r"^Expecting ',' delimiter", _("a comma is missing")),
    (r"a key in double quotes is expected|^Expecting property name", _("a key in double quotes is expected")),
    (r"^a colon is missing|^Expecting ':' delimiter", _("a colon is missing behind the key")),
    (
        r"^a text is not closed|^Unterminated string|^Invalid control character",
        _("a text is not closed on its line, or holds a raw control character"),
    ),
    (r"^Invalid \\", _("a backslash is followed by something that JSON does not know")),
    (r"^Expecting value|^(?P<found>.*) is no JSON( value)?$", _("no JSON value begins here")),
    (r"^a key stands twice", _("a key stands twice")),
    # CSV
    (r"^unexpected end of data", _("a quote is never closed")),
    (r"expected after '\"'", _("a comma is expected behind the closing quote")),
    (r"^new-line character seen", _("a line ends within a cell that is not quoted")),
    # YAML
    (
        r"mapping values are not allowed|could not find expected ':'|found unexpected ':'",
        _("a colon stands where none may stand, or lacks"),
    ),
    (r"did not find expected ',', '[\]}]'", _("a comma or a closing bracket is missing")),
    (
        r"did not find expected key|expected '-' indicator|block end",
        _("the indentation does not fit, or a quote is missing"),
    ),
    (r"unexpected end of stream|unexpected document|expected node content", _("a quote or bracket is never closed")),
    (
        r"cannot start any token|tab character|scanning a directive",
        _("a tab or a sign stands here that begins nothing in YAML; put the text in quotes"),
    ),
    (r"unknown escape character|hexdecimal", _("a backslash is followed by something that YAML does not know")),
    (r"control characters are not allowed", _("a control character stands here, which nobody sees; delete it")),
    (r"scanning a block scalar", _("behind | or > the line has to end")),
    (
        r"(sequence entries|mapping keys) are not allowed",
        _("a list or a field begins where none may stand; mind the indentation"),
    ),
    (r"scanning an (alias|anchor)", _("* and & begin a name in YAML; put the text in quotes")),
    (r"expected <document start>", _("something follows the end of the value")),
    (r"undefined alias|aliases are not read", _("aliases (*name) are not read; write the value out")),
    (r"the key (?P<key>.+) is there twice", _("the key %(key)s stands twice")),
    (r"not a YAML mapping|valid dictionary|valid mapping", _("named fields are expected")),
    # Checks of a form
    (r"^Field required", _("the field is missing")),
    (r"^Extra inputs", _("there is no such field")),
    (r"valid string", _("a text is expected")),
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
    (r"should match pattern '(?P<pattern>.+)'", _("the text has to match %(pattern)s")),
    (r"weights and constant sum to (?P<total>\S+), not 1", _("weights and constant sum to %(total)s, not to 1")),
    (r"named twice: (?P<names>.+)", _("these are named twice: %(names)s")),
    (
        r"(?P<field>\w+) names what the profile does not have: (?P<names>.+)",
        _("%(field)s: not in the profile: %(names)s"),
    ),
    (r"two bands start at the same value", _("two bands start at the same value")),
    (r"(?P<name>\S+) has either levels or labels", _("%(name)s has either levels or labels")),
    (r"(?P<name>\S+) has less than two levels", _("%(name)s has less than two levels")),
    (
        r"a (?:metric|step) is there twice: (?P<names>.+)|a label of (?P<name>\S+) is there twice",
        _("something stands twice"),
    ),
    (r"the levels of (?P<name>\S+) are not every whole number", _("the levels of %(name)s are not every whole number")),
    (r"score map of (?P<name>\S+) does not rise", _("the score map of %(name)s does not rise")),
    (
        r"^unknown .+? '(?P<name>.+?)'.*\(known: (?P<known>.*)\)$",
        _("“%(name)s” is not known here; there are: %(known)s"),
    ),
    # Parquet, Arrow, Excel and Word; an error class in the message means a damaged file.
    (
        r"^(\w*Error|Arrow\w+|BadZipFile|error): ",
        _("the file is damaged or not complete; save it, or send it, once more"),
    ),
    (r"neither (?P<one>\w+) nor (?P<other>\w+)$", _("neither %(one)s nor %(other)s is there")),
)
UNKNOWN_PARSER_MESSAGE = _("it is not of the form that is expected here")

NODE_KIND_NAMES = {
    "text": _("text"),
    "integer": _("whole number"),
    "real": _("number"),
    "boolean": _("truth value"),
    "null": _("null"),
    "ambiguous": _("number or date"),
    "cell": _("cell"),
    "list": _("list"),
    "map": _("mapping"),
}
