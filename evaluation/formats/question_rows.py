"""Question files: a parse tree to a question set. All problems are collected; nothing is returned if there is one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Problem
from evaluation.core.samples import CheckPhrases, Nugget, QuestionSpec
from evaluation.formats.answer_rows import QUESTION_TEXT, SYSTEM_FIELDS
from evaluation.formats.sections import PlacedRow, locate_rows
from evaluation.formats.tree import Columns, FileTree, Node, NodeKind, Problems, plain_value
from evaluation.formats.values import (
    Field,
    Row,
    column_uses,
    fold_name,
    is_bar_separated,
    parse_boolean,
    passage_like_names,
    similar_names,
)

ID = ("id", "query_id", "qid", "input_id")
REFERENCE = (
    "expected_answer",
    "ground_truth",
    "reference",
    "expected_output",
    "expected_response",
    "gt_answer",
    "gold_answers",
    "gold_answer",
    "target",
    "ground_truths",
    "reference_answer",
    "golden_answer",
    "generation_gt",
)
PASSAGES = ("ground_truth_chunk_ids", "reference_context_ids", "retrieval_gt")
#: Columns with further texts that are as good as the reference.
ALTERNATIVES = ("alt_ans", "alternative_answers", "acceptable_answers", "answer_aliases", "answers_alternative")
_LIKE_PASSAGES = re.compile(r"(?:chunk|passage|context|doc(?:ument)?|relevant|evidence|support\w*)(?:_?ids?|_?gt|s)?$")
CORRECT_PREMISE = "should_correct_premise"
BUILT_IN_CHECKS = (
    "should_not_hallucinate",
    CORRECT_PREMISE,
    "should_not_fabricate_data",
    "should_provide_accurate_disclaimer",
)
MAX_HOPS = 1_000
_PHRASE_KEYS = ("all_of", "any_of", "none_of")


def _optional_fields(row: Row) -> dict[str, Any]:
    """Optional fields of a question as arguments of ``QuestionSpec``; absent ones keep its defaults.

    A remaining ``answer`` is the reference, since :meth:`QuestionReader.detect_system_answers` ruled out system
    answers."""
    fields: dict[str, Any] = {
        "references": _references(row),
        "check": row.name("check"),
        "check_phrases": _check_phrases(row),
        "aggregation_type": row.name("aggregation_type"),
        "inference_type": row.name("inference_type"),
        "required_info": row.texts("required_info"),
        "nuggets": tuple(map(_nugget, _items(row, "nuggets"))),
        "ground_truth_chunk_ids": _passages(row),
        "persona": row.text("persona"),
        "history": tuple(turn for field in _items(row, "history") for turn in _turns(field)),
        "clarification_ok": row.boolean("clarification_ok", False),
        "tags": row.names("tags"),
    }
    if (keywords := row.take("expected_keywords")) is not None:
        fields["keywords"] = keywords.keywords()
    hops = row.peek("hops")
    if hops is not None and hops.kind is not NodeKind.LIST:
        fields["hops"] = row.integer("hops", MAX_HOPS)
    return fields


def _references(row: Row) -> tuple[str, ...]:
    """Expected answers, including those in columns of alternatives."""
    texts = row.texts(*REFERENCE) or row.texts("answer")
    return tuple(dict.fromkeys((*texts, *(text for name in ALTERNATIVES for text in row.texts(name)))))


def _passages(row: Row) -> tuple[str, ...]:
    """Passage ids. AutoRAG's list of lists (alternatives) is flattened."""
    field = row.take(*PASSAGES)
    return field.flat_names() if field else ()


def _has_alternative_passages(row: Row) -> bool:
    """Return whether the relevant passages are a list of lists and one of these has several ids."""
    nodes = [node for name in PASSAGES if (node := row.peek(name)) is not None]
    groups = [alternatives for node in nodes for alternatives in Field(node, "", Problems("")).expand().node.elements]
    return any(len(alternatives.elements) > 1 for alternatives in groups)


def _check_phrases(row: Row) -> CheckPhrases | None:
    """Read ``{all_of, any_of, none_of}``; a plain list means ``any_of``."""
    phrases_field = row.take("check_phrases")
    if phrases_field is None:
        return None
    expanded = phrases_field.expand()
    if expanded.node.kind is not NodeKind.MAP:
        phrases = {"any_of": expanded.texts()}
    else:
        entries = {
            key: expanded.with_node(node, f".{key}") for key, node in expanded.node.entries.items() if not node.absent
        }
        for key, node in expanded.node.entries.items():
            if key not in _PHRASE_KEYS:
                expanded.with_node(node).note("unknown_key", key=key, known=", ".join(_PHRASE_KEYS))
        phrases = {key: field.texts() for key, field in entries.items() if key in _PHRASE_KEYS}
    return CheckPhrases(**phrases) if any(phrases.values()) else None


def _items(row: Row, name: str) -> list[Field]:
    """Elements of a list field; a single text is a list of one."""
    field = row.take(name)
    if field is None:
        return []
    expanded = field.expand()
    return (
        expanded.items()
        if expanded.node.kind in {NodeKind.LIST, NodeKind.NULL}
        else [expanded.with_node(expanded.node, "[0]")]
    )


def _nugget(field: Field) -> Nugget:
    """Read a name, or ``{name, alternatives, vital}``; ``importance: vital | okay`` is a synonym of ``vital``."""
    if field.node.kind is not NodeKind.MAP:
        return Nugget(name=_require_text(field.text(), field))
    inner = Row(field.node, field.problems)
    name = _require_text(inner.text("name", "text"), field)
    vital_field, importance = inner.take("vital"), inner.name("importance").lower()
    vital = importance != "okay"
    if vital_field:
        flag = parse_boolean(vital_field.node)
        if flag is None:
            field.with_node(vital_field.node, ".vital").note(
                "not_boolean", value=str(plain_value(vital_field.node))[:80]
            )
        vital = bool(flag)
    if importance not in {"", "vital", "okay"}:
        field.note("unknown_choice", value=importance, known="vital, okay")
    alternatives = inner.texts("alternatives")
    for key in inner.take_metadata():
        field.note("unknown_key", key=key, known="name, alternatives, vital, importance")
    return Nugget(name=name, alternatives=alternatives, vital=vital)


def _require_text(text: str, field: Field) -> str:
    if not text.strip():
        field.note("empty_item")
    return text.strip()


# A line that begins a turn in a text with a whole conversation.
_SPEAKER = re.compile(
    r"^(?:user|human|assistant|ai|bot|system|사용자|질문자|상담원|챗봇)\s*:", re.IGNORECASE | re.MULTILINE
)


def _turns(field: Field) -> list[str]:
    """Earlier turns: ``{role, content}`` as ``role: content``, or a text, split where its lines begin with speakers."""
    if field.node.kind is NodeKind.MAP:
        inner = Row(field.node, field.problems)
        role, content = inner.name("role", "speaker"), inner.text("content", "text")
        return [_require_text(f"{role}: {content}" if role and content else content, field)]
    text = _require_text(field.text(), field)
    starts = [match.start() for match in _SPEAKER.finditer(text)]
    if not starts or starts[0]:
        return [text]
    return [text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A question set in file order.

    ``metadata``: unknown fields by question id. ``set_metadata``: fields about the set (name, version, category notes).
    ``metadata_keys``: names of unknown fields, for the preview. ``remarks``: notes for the preview that do not refuse
    the file. ``encoding``: the preview asks to confirm ``cp949``. ``shape``: title of the known shape or column map
    used. ``columns``: the use made of each column."""

    questions: Sequence[QuestionSpec]
    metadata: Mapping[str, Mapping[str, Any]]
    set_metadata: Mapping[str, Any]
    metadata_keys: tuple[str, ...]
    remarks: tuple[Problem, ...]
    format: str
    encoding: str
    shape: str = ""
    columns: Columns = ()


def is_negative(category: str) -> bool:
    """Return whether questions of the category require a refusal or a correction."""
    return category.strip().casefold() == "negative"


def derive_id(category: str, text: str) -> str:
    """Derive a stable id from category and text, independent of the row order."""
    return "q-" + content_hash([category, text])[:16]


def question_file(tree: FileTree, problems: Problems, *, group_by: str) -> QuestionFile:
    """Read the questions of a tree. Questions with equal values in the field ``group_by`` are dependent.

    :raises InvalidFile: with every problem of every row."""
    placed_rows, set_metadata = locate_rows(tree.root, problems)
    reader = QuestionReader(problems, group_by)
    reader.detect_system_answers(placed_row.node for placed_row in placed_rows)
    rows = [row for placed_row in placed_rows if (row := reader.read(placed_row))]
    metadata = {question.id: row_metadata for question, row_metadata in rows}
    return reader.build_file(tree, set_metadata, tuple(question for question, _ in rows), metadata)


class QuestionReader:
    """Reads the rows of one file in order and collects the remarks about the whole file.

    Call :meth:`detect_system_answers` with all rows first. ``group_by`` as in :func:`question_file`."""

    def __init__(self, problems: Problems, group_by: str) -> None:
        self.problems, self.group_by = problems, group_by
        self.row_count = 0
        # Whether ``answer`` is the system's answer, not the reference.
        self._answer_from_system = False
        self._group_missing = 0
        # Number of rows by remark code.
        self._counts: Counter[str] = Counter()
        self._has_references = self._has_passages = False
        self._checks: set[str] = set()
        self._keys: set[str] = set()
        self._mapped_columns: dict[str, str] = {}
        # Line, and whether the id was derived, by id.
        self._first: dict[str, tuple[int, bool]] = {}

    def detect_system_answers(self, nodes: Iterable[Node]) -> None:
        """Decide whether ``answer`` is the reference or the system's answer.

        It is the system's if any row names its reference otherwise. It is the reference only if no row has other fields
        of a system; such rows are a problem."""
        suspicious, first = 0, None
        for node in nodes:
            row = Row(node, self.problems)
            if row.has(*REFERENCE):
                self._answer_from_system = True
                return
            if row.has("answer") and (names := row.has(*SYSTEM_FIELDS)):
                suspicious, first = suspicious + 1, first or (row.line, ", ".join(names))
        if first:
            self.problems.add("looks_like_answers", first[0], "answer", rows=suspicious, names=first[1])

    def read(self, placed_row: PlacedRow) -> tuple[QuestionSpec, dict[str, Any]] | None:
        """Return the question of a row and its unknown fields."""
        if placed_row.node.kind is not NodeKind.MAP:
            self.problems.add("row_not_mapping", placed_row.node.line, found=placed_row.node.kind.value)
            return None
        row = Row(placed_row.node, self.problems)
        self.row_count += 1
        self._counts["references_split"] += _splits_reference(row)
        self._counts["passages_alternative"] += _has_alternative_passages(row)
        self._counts["references_further"] += bool(row.has(*ALTERNATIVES))
        if self._answer_from_system:
            row.move_to_metadata("answer")
        self._group_missing += row.peek(fold_name(self.group_by)) is None
        parsed = _parse_question(placed_row, row, self.group_by)
        self._mapped_columns |= row.mapped_columns
        if parsed is None:
            return None
        question, derived = parsed
        metadata = row.take_metadata()
        self._keys |= metadata.keys()
        self._counts["category_empty"] += not question.category
        self._counts["ids_derived"] += derived
        self._counts["hops_kept"] += "hops" in metadata
        self._counts["check_phrases_missing"] += question.check == CORRECT_PREMISE and not question.check_phrases
        self._has_references |= bool(question.references)
        self._has_passages |= bool(question.ground_truth_chunk_ids)
        self._checks.add(question.check)
        self._refuse_duplicate(question.id, row.line, derived)
        return question, metadata

    def _refuse_duplicate(self, id_: str, line: int, derived: bool) -> None:
        """Refuse a duplicate id. Equal texts with different ids are allowed."""
        if (first := self._first.get(id_)) is None:
            self._first[id_] = line, derived
        elif derived and first[1]:
            self.problems.add("duplicate_question", line, "question", first_line=first[0])
        else:
            self.problems.add("duplicate_id", line, "id", id=id_, first_line=first[0])

    def build_file(
        self,
        tree: FileTree,
        set_metadata: Mapping[str, Any],
        questions: Sequence[QuestionSpec],
        metadata: Mapping[str, Mapping[str, Any]],
    ) -> QuestionFile:
        """Check the whole file after its last row and return it.

        ``tree`` supplies the format, ``set_metadata`` the fields outside the rows.

        :raises InvalidFile: with every problem of every row."""
        problems, keys = self.problems, tuple(sorted(self._keys))
        if not self.row_count and not problems.errors:
            problems.add("no_rows", tree.root.line)
        self._check_group()
        problems.refuse_if_any()
        self._add_remarks(keys)
        return QuestionFile(
            questions=questions,
            metadata=metadata,
            set_metadata=set_metadata,
            metadata_keys=keys,
            remarks=tuple(problems.remarks),
            format=tree.format,
            encoding=tree.encoding,
            shape=tree.shape,
            columns=tree.columns or column_uses(self._mapped_columns, keys),
        )

    def _check_group(self) -> None:
        name, missing = self.group_by, self._group_missing
        if fold_name(name) in {"", "category"}:
            return
        if self.row_count and missing == self.row_count:
            self.problems.add("group_field_unknown", None, name, name=name)
        elif missing:
            self.problems.remark("group_missing", None, name, name=name, rows=missing)

    def _add_remarks(self, keys: Sequence[str]) -> None:
        """Add the remarks for a set without problems."""
        problems = self.problems
        self._count_remarks("category_empty", "ids_derived", "hops_kept", "check_phrases_missing")
        if keys:
            problems.remark("metadata_kept", keys=", ".join(keys))
        problems.remark_readings()
        system = [key for key in keys if fold_name(key) in {"answer", *SYSTEM_FIELDS}]
        likely = similar_names("reference", keys) or similar_names("answer", system)
        if not self._has_references and likely:
            problems.remark("reference_not_found", names=likely)
        if not self._has_passages and (names := passage_like_names(_LIKE_PASSAGES, keys)):
            problems.remark("passages_not_found", names=names)
        if system:
            problems.remark("system_fields_kept", names=", ".join(system))
        if checks := self._checks - {"", *BUILT_IN_CHECKS}:
            problems.remark("check_not_built_in", checks=", ".join(map(_with_suggestion, sorted(checks))))
        self._count_remarks("references_split", "references_further", "passages_alternative")

    def _count_remarks(self, *codes: str) -> None:
        for code in codes:
            if rows := self._counts[code]:
                self.problems.remark(code, rows=rows)


def _splits_reference(row: Row) -> bool:
    """Return whether a table cell holds several references separated by bars."""
    nodes = [row.peek(name) for name in (*REFERENCE, "answer")]
    return any(is_bar_separated(node) for node in nodes if node is not None)


def _parse_question(placed_row: PlacedRow, row: Row, group_by: str) -> tuple[QuestionSpec, bool] | None:
    """Return the question and whether its id was derived."""
    group = _group(row, fold_name(group_by))
    text = row.required_text(*QUESTION_TEXT)
    category = _category(placed_row, row)
    group = category if fold_name(group_by) == "category" else group
    id_ = row.name(*ID) or row.name("_id")
    difficulty = row.name("difficulty")
    if placed_row.difficulty is not None and not difficulty:
        difficulty = Field(placed_row.difficulty, "difficulty", row.problems).short_text()
    fields = _optional_fields(row)
    _check_rules(category, fields, row)
    if not text:
        return None
    question = QuestionSpec(
        id=id_ or derive_id(category, text),
        category=category,
        text=text,
        difficulty=difficulty,
        group=group,
        **fields,
    )
    return question, not id_


def _category(placed_row: PlacedRow, row: Row) -> str:
    """Name of the row's section; in flat lists ``category``, else ``question_type``."""
    row_category = row.name("category")
    if placed_row.category is None:
        return row_category or row.name("question_type")
    if row_category and row_category != placed_row.category:
        row.note("category_conflict", "category", section=placed_row.category, category=row_category)
    return placed_row.category


def _group(row: Row, group_by: str) -> str:
    """Value of the field ``group_by``, which stays in the row; by default the row's ``group``."""
    if group_by in {"", "group"}:
        return row.name("group")
    node = row.peek(group_by)
    if node is None or group_by == "category":
        return ""
    aliases = next((names for names in (ID, QUESTION_TEXT, REFERENCE) if group_by in names), ())
    if len(row.has(*aliases)) > 1:
        row.move_to_metadata(group_by)
    return node.spelling if node.kind is NodeKind.INTEGER else Field(node, group_by, row.problems).short_text()


def _check_rules(category: str, fields: Mapping[str, Any], row: Row) -> None:
    check = fields["check"]
    if is_negative(category) and not check:
        row.note("check_missing", "check")


def _with_suggestion(check: str) -> str:
    matches = get_close_matches(check, BUILT_IN_CHECKS, n=1)
    return f"{check} ({matches[0]}?)" if matches else check
