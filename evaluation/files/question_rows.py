"""Question files: a tree to a question set. Every row is read, every problem listed, nothing given back unless there is
none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Problem
from evaluation.core.samples import CheckPhrases, Nugget, QuestionSpec
from evaluation.files.answer_rows import SYSTEM_FIELDS, TEXT
from evaluation.files.sections import Placed, place_rows
from evaluation.files.tree import Columns, FileTree, Kind, Problems, plain
from evaluation.files.values import Field, Row, boolean_of, columns_of, folded, looking_like, splits_at_bars

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
_LIKE_REFERENCE = re.compile(r"answer|reference(?!.*(?:context|id))|truth|gold|expect|target|ideal|정답|모범")
_LIKE_PASSAGES = re.compile(r"(?:chunk|passage|context|doc(?:ument)?|relevant|evidence|support\w*)(?:_?ids?|_?gt|s)?$")
BUILT_IN_CHECKS = (
    "should_not_hallucinate",
    "should_correct_premise",
    "should_not_fabricate_data",
    "should_provide_accurate_disclaimer",
)
MOST_HOPS = 1_000
_PHRASE_KEYS = ("all_of", "any_of", "none_of")


def _fields(row: Row) -> dict[str, Any]:
    """The optional fields of a question as arguments of ``QuestionSpec``; absent ones keep its defaults. An ``answer``
    that is still there is the reference (:func:`_settle_answers` looked for what speaks against that)."""
    fields: dict[str, Any] = {
        "references": row.texts(*REFERENCE) or row.texts("answer"),
        "check": row.name("check"),
        "check_phrases": _check_phrases(row),
        "aggregation_type": row.name("aggregation_type"),
        "inference_type": row.name("inference_type"),
        "required_info": row.texts("required_info"),
        "nuggets": tuple(map(_nugget, _items(row, "nuggets"))),
        "ground_truth_chunk_ids": _passages(row),
        "persona": row.text("persona"),
        "history": tuple(map(_turn, _items(row, "history"))),
        "clarification_ok": row.boolean("clarification_ok", False),
        "tags": row.texts("tags"),
    }
    if (keywords := row.take("expected_keywords")) is not None:
        fields["keywords"] = keywords.keywords()
    hops = row.peek("hops")
    if hops is not None and hops.kind is not Kind.LIST:
        fields["hops"] = row.integer("hops", MOST_HOPS)
    return fields


def _passages(row: Row) -> tuple[str, ...]:
    """Ids of passages; of AutoRAG's list of lists, in which an inner one holds alternatives, all."""
    taken = row.take(*PASSAGES)
    return taken.flat_texts() if taken else ()


def _offers_alternatives(row: Row) -> bool:
    """Whether the passages that should be found are a list of lists of which one has several."""
    nodes = [node for name in PASSAGES if (node := row.peek(name)) is not None]
    inner = [one for node in nodes for one in Field(node, "", Problems("")).expanded().node.elements]
    return any(len(one.elements) > 1 for one in inner)


def _check_phrases(row: Row) -> CheckPhrases | None:
    """``{all_of, any_of, none_of}``; a plain list means ``any_of``."""
    taken = row.take("check_phrases")
    if taken is None:
        return None
    found = taken.expanded()
    if found.node.kind is not Kind.MAP:
        phrases = {"any_of": found.texts()}
    else:
        inside = {key: found.at(node, f".{key}") for key, node in found.node.entries.items() if not node.absent}
        for key, node in found.node.entries.items():
            if key not in _PHRASE_KEYS:
                found.at(node).note("unknown_key", key=key, known=", ".join(_PHRASE_KEYS))
        phrases = {key: field.texts() for key, field in inside.items() if key in _PHRASE_KEYS}
    return CheckPhrases(**phrases) if any(phrases.values()) else None


def _items(row: Row, name: str) -> list[Field]:
    """The elements of a list field; a single text is a list of one."""
    taken = row.take(name)
    if taken is None:
        return []
    found = taken.expanded()
    return found.items() if found.node.kind in {Kind.LIST, Kind.NULL} else [found.at(found.node, "[0]")]


def _nugget(field: Field) -> Nugget:
    """A name, or ``{name, alternatives, vital}``; ``importance: vital | okay`` says the same as ``vital``."""
    if field.node.kind is not Kind.MAP:
        return Nugget(name=_required(field.text(), field))
    inner = Row(field.node, field.problems)
    name = _required(inner.text("name", "text"), field)
    given, importance = inner.take("vital"), inner.name("importance").lower()
    vital = importance != "okay"
    if given:
        truth = boolean_of(given.node)
        if truth is None:
            field.at(given.node, ".vital").note("not_boolean", value=str(plain(given.node))[:80])
        vital = bool(truth)
    if importance not in {"", "vital", "okay"}:
        field.note("unknown_choice", value=importance, known="vital, okay")
    alternatives = inner.texts("alternatives")
    for key in inner.rest():
        field.note("unknown_key", key=key, known="name, alternatives, vital, importance")
    return Nugget(name=name, alternatives=alternatives, vital=vital)


def _required(text: str, field: Field) -> str:
    if not text.strip():
        field.note("empty_item")
    return text.strip()


def _turn(field: Field) -> str:
    """An earlier turn: a text, or ``{role, content}`` written as ``role: content``."""
    if field.node.kind is not Kind.MAP:
        return _required(field.text(), field)
    inner = Row(field.node, field.problems)
    role, content = inner.name("role", "speaker"), inner.text("content", "text")
    return _required(f"{role}: {content}" if role and content else content, field)


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A question set as a file gives it, in the file's order.

    ``lines``, ``metadata``: by question id. ``set_metadata``: what the file says about the set (name, version, notes
    of categories). ``metadata_keys``: the fields of rows that no part of the product knows, for the preview.
    ``remarks`` refuse nothing and belong into the preview too. ``encoding``: ``cp949`` wants a confirmation. ``shape``:
    the title of the known shape or map by which it was read. ``columns``: what became of each of the file's columns.
    """

    questions: tuple[QuestionSpec, ...]
    lines: Mapping[str, int]
    metadata: Mapping[str, Mapping[str, Any]]
    set_metadata: Mapping[str, Any]
    metadata_keys: tuple[str, ...]
    remarks: tuple[Problem, ...]
    format: str
    encoding: str
    shape: str = ""
    columns: Columns = ()


@dataclass(frozen=True, slots=True)
class _Read:
    """A row that was read: the question, whether its id was derived, and what is left."""

    question: QuestionSpec
    line: int
    derived: bool
    metadata: dict[str, Any]


def is_negative(category: str) -> bool:
    """Whether questions of the category ask for a refusal or correction (source 000: ``negative``)."""
    return category.strip().casefold() == "negative"


def derive_id(category: str, text: str) -> str:
    """The id of a question that has none: stable from category and text, whatever the order of the file."""
    return "q-" + content_hash([category, text])[:16]


def question_file(tree: FileTree, problems: Problems, *, group_by: str) -> QuestionFile:
    """Read the questions of a tree. ``group_by`` names the field whose equal values make questions dependent.

    :raises InvalidFile: with every problem of every row.
    """
    placed, set_metadata = place_rows(tree.root, problems)
    if not placed and not problems.found:
        problems.add("no_rows", tree.root.line)
    rows = [(place, Row(place.node, problems)) for place in placed]
    split = sum(_splits_reference(row) for _, row in rows)
    alternative = sum(_offers_alternatives(row) for _, row in rows)
    _settle_answers([row for _, row in rows], problems)
    _check_group(rows, group_by, problems)
    read = [found for place, row in rows if (found := _read(place, row, group_by))]
    _refuse_duplicates(read, problems)
    problems.refuse_if_any()
    keys = sorted({key for found in read for key in found.metadata})
    _remark(read, keys, problems)
    if split:
        problems.remark("references_split", rows=split)
    if alternative:
        problems.remark("passages_alternative", rows=alternative)
    return QuestionFile(
        questions=tuple(found.question for found in read),
        lines={found.question.id: found.line for found in read},
        metadata={found.question.id: found.metadata for found in read},
        set_metadata=set_metadata,
        metadata_keys=tuple(keys),
        remarks=tuple(problems.remarks),
        format=tree.format,
        encoding=tree.encoding,
        shape=tree.shape,
        columns=tree.columns or columns_of({k: field for _, row in rows for k, field in row.became.items()}, keys),
    )


def _settle_answers(rows: Sequence[Row], problems: Problems) -> None:
    """``answer`` is the reference only where nothing a system gave stands beside it. Where some row names its
    reference otherwise, the file holds questions and answers, and ``answer`` is the system's."""
    if any(row.has(*REFERENCE) for row in rows):
        for row in rows:
            row.set_aside("answer")
        return
    guilty = [row for row in rows if row.has("answer") and row.has(*SYSTEM_FIELDS)]
    if guilty:
        names = ", ".join(guilty[0].has(*SYSTEM_FIELDS))
        problems.add("looks_like_answers", guilty[0].line, "answer", rows=len(guilty), names=names)


def _splits_reference(row: Row) -> bool:
    """Whether a table's cell stands for several expected answers, which a reader of ``P(A|B)`` should be told."""
    nodes = [row.peek(name) for name in (*REFERENCE, "answer")]
    return any(splits_at_bars(node) for node in nodes if node is not None)


def _check_group(rows: Sequence[tuple[Placed, Row]], group_by: str, problems: Problems) -> None:
    name = folded(group_by)
    if not name or name == "category":
        return
    missing = sum(row.peek(name) is None for _, row in rows)
    if rows and missing == len(rows):
        problems.add("group_field_unknown", None, group_by, name=group_by)
    elif missing:
        problems.remark("group_missing", None, group_by, name=group_by, rows=missing)


def _read(place: Placed, row: Row, group_by: str) -> _Read | None:
    group = _group(row, folded(group_by))
    text = row.required_text(*TEXT)
    category = _category(place, row)
    group = category if folded(group_by) == "category" else group
    given = row.name(*ID)
    difficulty = row.name("difficulty")
    if place.difficulty is not None and not difficulty:
        difficulty = Field(place.difficulty, "difficulty", row.problems).short_text()
    fields = _fields(row)
    _check_rules(category, fields, row)
    if not text:
        return None
    question = QuestionSpec(
        id=given or derive_id(category, text),
        category=category,
        text=text,
        difficulty=difficulty,
        group=group,
        **fields,
    )
    return _Read(question, row.line, not given, row.rest())


def _category(place: Placed, row: Row) -> str:
    """The section's name; in flat lists ``category``, else ``question_type``."""
    own = row.name("category")
    if place.category is None:
        return own or row.name("question_type")
    if own and own != place.category:
        row.note("category_conflict", "category", section=place.category, category=own)
    return place.category


def _group(row: Row, group_by: str) -> str:
    """The value of the field named by ``group_by``, which keeps its place; without one the row's ``group``."""
    if group_by in {"", "group"}:
        return row.name("group")
    node = row.peek(group_by)
    if node is None or group_by == "category":
        return ""
    aliases = next((names for names in (ID, TEXT, REFERENCE) if group_by in names), ())
    if len(row.has(*aliases)) > 1:
        row.set_aside(group_by)
    return node.spelling if node.kind is Kind.INTEGER else Field(node, group_by, row.problems).short_text()


def _check_rules(category: str, fields: Mapping[str, Any], row: Row) -> None:
    check = fields["check"]
    if is_negative(category) and not check:
        row.note("check_missing", "check")
    if check == "should_correct_premise" and fields["check_phrases"] is None:
        row.note("check_phrases_missing", "check_phrases", check=check)


def _refuse_duplicates(read: Sequence[_Read], problems: Problems) -> None:
    """Ids are compared composed (NFC). Equal texts under different ids are allowed."""
    first: dict[str, _Read] = {}
    for found in read:
        id_ = unicodedata.normalize("NFC", found.question.id)
        earlier = first.setdefault(id_, found)
        if earlier is found:
            continue
        if found.derived and earlier.derived:
            problems.add("duplicate_question", found.line, "question", first_line=earlier.line)
        else:
            problems.add("duplicate_id", found.line, "id", id=found.question.id, first_line=earlier.line)


def _remark(read: Sequence[_Read], keys: Sequence[str], problems: Problems) -> None:
    """What the preview should say about a set that has no problem."""
    counts = {
        "category_empty": sum(not found.question.category for found in read),
        "ids_derived": sum(found.derived for found in read),
        "hops_kept": sum("hops" in found.metadata for found in read),
    }
    for code, rows in counts.items():
        if rows:
            problems.remark(code, rows=rows)
    if keys:
        problems.remark("metadata_kept", keys=", ".join(keys))
    if problems.lists:
        problems.remark("lists_read", names=", ".join(problems.lists), rows=max(problems.lists.values()))
    questions = [found.question for found in read]
    if not any(one.references for one in questions) and (names := looking_like(_LIKE_REFERENCE, keys)):
        problems.remark("reference_not_found", names=names)
    if not any(one.ground_truth_chunk_ids for one in questions) and (names := looking_like(_LIKE_PASSAGES, keys)):
        problems.remark("passages_not_found", names=names)
    if system := [key for key in keys if folded(key) in {"answer", *SYSTEM_FIELDS}]:
        problems.remark("system_fields_kept", names=", ".join(system))
    checks = {found.question.check for found in read} - {"", *BUILT_IN_CHECKS}
    if checks:
        problems.remark("check_not_built_in", checks=", ".join(map(_with_near, sorted(checks))))


def _with_near(check: str) -> str:
    near = get_close_matches(check, BUILT_IN_CHECKS, n=1)
    return f"{check} ({near[0]}?)" if near else check
