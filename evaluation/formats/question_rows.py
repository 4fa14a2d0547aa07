"""Question files: a tree to a question set. Every row is read, every problem listed, nothing given back unless there is
none.
"""

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
from evaluation.formats.answer_rows import SYSTEM_FIELDS, TEXT
from evaluation.formats.sections import Placed, place_rows
from evaluation.formats.tree import Columns, FileTree, Kind, Node, Problems, plain
from evaluation.formats.values import (
    Field,
    Row,
    boolean_of,
    columns_of,
    folded,
    looking_like,
    looking_like_passages,
    splits_at_bars,
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
#: Further texts that are as good as the reference.
ALTERNATIVES = ("alt_ans", "alternative_answers", "acceptable_answers", "answer_aliases", "answers_alternative")
_LIKE_PASSAGES = re.compile(r"(?:chunk|passage|context|doc(?:ument)?|relevant|evidence|support\w*)(?:_?ids?|_?gt|s)?$")
CORRECT_PREMISE = "should_correct_premise"
BUILT_IN_CHECKS = (
    "should_not_hallucinate",
    CORRECT_PREMISE,
    "should_not_fabricate_data",
    "should_provide_accurate_disclaimer",
)
MOST_HOPS = 1_000
_PHRASE_KEYS = ("all_of", "any_of", "none_of")


def _fields(row: Row) -> dict[str, Any]:
    """The optional fields of a question as arguments of ``QuestionSpec``; absent ones keep its defaults. An ``answer``
    that is still there is the reference (:meth:`QuestionReader.settle` looked for what speaks against that)."""
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
    if hops is not None and hops.kind is not Kind.LIST:
        fields["hops"] = row.integer("hops", MOST_HOPS)
    return fields


def _references(row: Row) -> tuple[str, ...]:
    """The expected answers, with further ones that the row names as alternatives."""
    texts = row.texts(*REFERENCE) or row.texts("answer")
    return tuple(dict.fromkeys((*texts, *(text for name in ALTERNATIVES for text in row.texts(name)))))


def _passages(row: Row) -> tuple[str, ...]:
    """Ids of passages; of AutoRAG's list of lists, in which an inner one holds alternatives, all."""
    taken = row.take(*PASSAGES)
    return taken.flat_names() if taken else ()


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


# The line that begins a turn in a text that holds a whole conversation.
_SPEAKER = re.compile(
    r"^(?:user|human|assistant|ai|bot|system|사용자|질문자|상담원|챗봇)\s*:", re.IGNORECASE | re.MULTILINE
)


def _turns(field: Field) -> list[str]:
    """Earlier turns: ``{role, content}`` written as ``role: content``, or a text, which holds several turns where its
    lines begin with speakers."""
    if field.node.kind is Kind.MAP:
        inner = Row(field.node, field.problems)
        role, content = inner.name("role", "speaker"), inner.text("content", "text")
        return [_required(f"{role}: {content}" if role and content else content, field)]
    text = _required(field.text(), field)
    begins = [match.start() for match in _SPEAKER.finditer(text)]
    if not begins or begins[0]:
        return [text]
    return [text[start:end].strip() for start, end in zip(begins, [*begins[1:], len(text)], strict=True)]


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A question set as a file gives it, in the file's order.

    ``metadata``: by question id. ``set_metadata``: what the file says about the set (name, version, notes
    of categories). ``metadata_keys``: the fields of rows that no part of the product knows, for the preview.
    ``remarks`` refuse nothing and belong into the preview too. ``encoding``: ``cp949`` wants a confirmation. ``shape``:
    the title of the known shape or map by which it was read. ``columns``: what became of each of the file's columns.
    """

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
    reader = QuestionReader(problems, group_by)
    reader.settle(place.node for place in placed)
    read = [found for place in placed if (found := reader.read(place))]
    metadata = {question.id: rest for question, rest in read}
    return reader.file(tree, set_metadata, tuple(question for question, _ in read), metadata)


class QuestionReader:
    """Reads the rows of one file in their order, once :meth:`settle` has seen all of them, and remembers of them what
    has to be said at the end. ``group_by`` as :func:`question_file` takes it."""

    def __init__(self, problems: Problems, group_by: str) -> None:
        self.problems, self.group_by = problems, group_by
        self.seen = 0
        self._answer_is_said = False  # and not expected
        self._group_missing = 0
        self._counts: Counter[str] = Counter()  # rows, by the remark that names them
        self._references = self._passages = False
        self._checks: set[str] = set()
        self._keys: set[str] = set()
        self._became: dict[str, str] = {}
        self._first: dict[str, tuple[int, bool]] = {}  # line and whether the id was derived, by the id

    def settle(self, nodes: Iterable[Node]) -> None:
        """``answer`` is the reference only where nothing a system gave stands beside it. Where some row names its
        reference otherwise, the file holds questions and answers, and ``answer`` is the system's."""
        guilty, first = 0, None
        for node in nodes:
            row = Row(node, self.problems)
            if row.has(*REFERENCE):
                self._answer_is_said = True
                return
            if row.has("answer") and (names := row.has(*SYSTEM_FIELDS)):
                guilty, first = guilty + 1, first or (row.line, ", ".join(names))
        if first:
            self.problems.add("looks_like_answers", first[0], "answer", rows=guilty, names=first[1])

    def read(self, place: Placed) -> tuple[QuestionSpec, dict[str, Any]] | None:
        """The question of a row, with what is left of it."""
        if place.node.kind is not Kind.MAP:
            self.problems.add("row_not_mapping", place.node.line, found=place.node.kind.value)
            return None
        row = Row(place.node, self.problems)
        self.seen += 1
        self._counts["references_split"] += _splits_reference(row)
        self._counts["passages_alternative"] += _offers_alternatives(row)
        self._counts["references_further"] += bool(row.has(*ALTERNATIVES))
        if self._answer_is_said:
            row.set_aside("answer")
        self._group_missing += row.peek(folded(self.group_by)) is None
        found = _read(place, row, self.group_by)
        self._became |= row.became
        if found is None:
            return None
        question, derived = found
        metadata = row.rest()
        self._keys |= metadata.keys()
        self._counts["category_empty"] += not question.category
        self._counts["ids_derived"] += derived
        self._counts["hops_kept"] += "hops" in metadata
        self._counts["check_phrases_missing"] += question.check == CORRECT_PREMISE and not question.check_phrases
        self._references |= bool(question.references)
        self._passages |= bool(question.ground_truth_chunk_ids)
        self._checks.add(question.check)
        self._refuse_second(question.id, row.line, derived)
        return question, metadata

    def _refuse_second(self, id_: str, line: int, derived: bool) -> None:
        """Equal texts under different ids are allowed."""
        if (first := self._first.get(id_)) is None:
            self._first[id_] = line, derived
        elif derived and first[1]:
            self.problems.add("duplicate_question", line, "question", first_line=first[0])
        else:
            self.problems.add("duplicate_id", line, "id", id=id_, first_line=first[0])

    def file(
        self,
        tree: FileTree,
        set_metadata: Mapping[str, Any],
        questions: Sequence[QuestionSpec],
        metadata: Mapping[str, Mapping[str, Any]],
    ) -> QuestionFile:
        """The file, behind its last row; ``tree`` tells the format, ``set_metadata`` what stood beside the rows.

        :raises InvalidFile: with every problem of every row.
        """
        problems, keys = self.problems, tuple(sorted(self._keys))
        if not self.seen and not problems.found:
            problems.add("no_rows", tree.root.line)
        self._check_group()
        problems.refuse_if_any()
        self._remark(keys)
        return QuestionFile(
            questions=questions,
            metadata=metadata,
            set_metadata=set_metadata,
            metadata_keys=keys,
            remarks=tuple(problems.remarks),
            format=tree.format,
            encoding=tree.encoding,
            shape=tree.shape,
            columns=tree.columns or columns_of(self._became, keys),
        )

    def _check_group(self) -> None:
        name, missing = self.group_by, self._group_missing
        if folded(name) in {"", "category"}:
            return
        if self.seen and missing == self.seen:
            self.problems.add("group_field_unknown", None, name, name=name)
        elif missing:
            self.problems.remark("group_missing", None, name, name=name, rows=missing)

    def _remark(self, keys: Sequence[str]) -> None:
        """What the preview should say about a set that has no problem."""
        problems = self.problems
        self._count_remarks("category_empty", "ids_derived", "hops_kept", "check_phrases_missing")
        if keys:
            problems.remark("metadata_kept", keys=", ".join(keys))
        problems.remark_readings()
        system = [key for key in keys if folded(key) in {"answer", *SYSTEM_FIELDS}]
        likely = looking_like("reference", keys) or looking_like("answer", system)
        if not self._references and likely:
            problems.remark("reference_not_found", names=likely)
        if not self._passages and (names := looking_like_passages(_LIKE_PASSAGES, keys)):
            problems.remark("passages_not_found", names=names)
        if system:
            problems.remark("system_fields_kept", names=", ".join(system))
        if checks := self._checks - {"", *BUILT_IN_CHECKS}:
            problems.remark("check_not_built_in", checks=", ".join(map(_with_near, sorted(checks))))
        self._count_remarks("references_split", "references_further", "passages_alternative")

    def _count_remarks(self, *codes: str) -> None:
        for code in codes:
            if rows := self._counts[code]:
                self.problems.remark(code, rows=rows)


def _splits_reference(row: Row) -> bool:
    """Whether a table's cell stands for several expected answers, which a reader of ``P(A|B)`` should be told."""
    nodes = [row.peek(name) for name in (*REFERENCE, "answer")]
    return any(splits_at_bars(node) for node in nodes if node is not None)


def _read(place: Placed, row: Row, group_by: str) -> tuple[QuestionSpec, bool] | None:
    """The question, and whether its id was derived."""
    group = _group(row, folded(group_by))
    text = row.required_text(*TEXT)
    category = _category(place, row)
    group = category if folded(group_by) == "category" else group
    given = row.name(*ID) or row.name("_id")
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
    return question, not given


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


def _with_near(check: str) -> str:
    near = get_close_matches(check, BUILT_IN_CHECKS, n=1)
    return f"{check} ({near[0]}?)" if near else check
