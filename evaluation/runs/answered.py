"""Which question of a set each row of an answer file answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from evaluation.core.errors import InvalidFile, Problem
from evaluation.files.answer_rows import AnswerFile, AnswerRow
from evaluation.models import QuestionSet
from evaluation.questions.difference import composed

MOST_HINTS = 20  # near matches are looked for this often: each look walks over all ids
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Answered:
    """A row with the question it answers."""

    row: AnswerRow
    question_pk: int
    external_id: str


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """The rows in the file's order, the ids of questions without any row, and what a person should be told."""

    rows: tuple[Answered, ...]
    missing: tuple[str, ...]
    remarks: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """The questions of the set, to be found by id and by text, both composed (NFC)."""

    by_id: Mapping[str, tuple[int, str, str]]
    by_text: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, question_set: QuestionSet) -> _Known:
        by_id: dict[str, tuple[int, str, str]] = {}
        by_text: dict[str, list[str]] = {}
        rows = question_set.questions.order_by("position").values_list("pk", "external_id", "text")
        for pk, external_id, text in rows:
            by_id[composed(external_id)] = (pk, external_id, composed(text).strip())
            by_text.setdefault(composed(text).strip(), []).append(composed(external_id))
        return cls(by_id, by_text)


def match_answers(question_set: QuestionSet, file: AnswerFile, file_name: str) -> MatchedFile:
    """Find the question of every row, by its id, else by its text where only one question has it.

    :raises InvalidFile: with every row that names no question, several, or one that another row answered already.
    """
    known = _Known.of(question_set)
    problems: list[Problem] = []
    rows: list[Answered] = []
    first: dict[tuple[str, int], int] = {}
    for row in file.answers:
        found = _resolve(row, known, len(problems) < MOST_HINTS)
        if isinstance(found, Problem):
            problems.append(_placed(found, file_name, row))
            continue
        key = (found.external_id, row.sample)
        if key in first:
            about = {"question": found.external_id, "sample": row.sample, "first_line": first[key]}
            problems.append(Problem("duplicate_answer", file_name, row.line, "sample", about))
            continue
        first[key] = row.line
        rows.append(found)
    if problems:
        raise InvalidFile(problems)
    there = {found.external_id for found in rows}
    missing = tuple(id_ for _, id_, _ in known.by_id.values() if id_ not in there)
    return MatchedFile(tuple(rows), missing, tuple(_remarks(rows, missing, known, file_name)))


def _resolve(row: AnswerRow, known: _Known, hint: bool) -> Answered | Problem:
    id_ = composed(row.question_id)
    if not id_:
        ids = known.by_text.get(composed(row.question).strip(), ())
        if len(ids) > 1:
            return Problem("question_ambiguous", field="question", params={"ids": ", ".join(ids[:MOST_NAMED])})
        if not ids:
            return Problem("question_text_unknown", field="question", params={"question": row.question[:80]})
        id_ = ids[0]
    if id_ not in known.by_id:
        near = get_close_matches(id_, known.by_id, n=3) if hint else []
        if near:
            return Problem("question_unknown_near", field="question_id", params={"id": id_, "near": ", ".join(near)})
        return Problem("question_unknown", field="question_id", params={"id": id_})
    pk, external_id, _ = known.by_id[id_]
    return Answered(row, pk, external_id)


def _placed(problem: Problem, file_name: str, row: AnswerRow) -> Problem:
    return Problem(problem.code, file_name, row.line, problem.field, problem.params)


def _remarks(rows: Sequence[Answered], missing: Sequence[str], known: _Known, file_name: str) -> list[Problem]:
    remarks = []
    if missing:
        shown = ", ".join(missing[:MOST_NAMED]) + (", …" if len(missing) > MOST_NAMED else "")
        remarks.append(Problem("answers_missing", file_name, params={"questions": len(missing), "ids": shown}))
    other = sum(
        bool(found.row.question) and composed(found.row.question).strip() != known.by_id[composed(found.external_id)][2]
        for found in rows
    )
    if other:
        remarks.append(Problem("question_text_differs", file_name, params={"rows": other}))
    return remarks
