"""Matching the rows of an answer file to questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import islice

from evaluation.core.canonical import normalize_nfc
from evaluation.core.errors import InvalidFile, Problem
from evaluation.formats.answer_rows import AnswerFile, AnswerRow
from evaluation.formats.tree import MAX_PROBLEMS
from evaluation.models import QuestionSet

# Near matches are searched only this often, because each search compares with all ids.
MAX_HINTS = 20
MAX_NAMED = 5
_UNKNOWN = {"question_unknown", "question_unknown_near"}
# Remark that none of the file's passages is an expected one, so that a person can confirm the file.
PASSAGES_UNMATCHED = "passages_unmatched"


def _shorten(names: Iterable[str]) -> str:
    """The first names, shortened, as one text."""
    first = [name[:80] for name in islice(names, MAX_NAMED + 1)]
    return ", ".join(first[:MAX_NAMED]) + (", …" if len(first) > MAX_NAMED else "")


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """A row with its question."""

    row: AnswerRow
    question_pk: int
    external_id: str


class QuestionMatcher:
    """Finds the question of each row by id, or else by a text that only one question has. Holds only ids and text
    hashes, because a set may have as many questions as there are answers."""

    def __init__(self, question_set: QuestionSet, file_name: str) -> None:
        self._question_set, self._file_name = question_set, file_name
        self._problems: list[Problem] = []
        # Lines by question and sample.
        self._lines: dict[tuple[int, int], int] = {}
        self._answered_questions: set[int] = set()
        self._differing_texts = 0
        # Names of questions that are not in the set, each once.
        self._unmatched: list[str] = []
        # Ids of passages, until an expected one is found.
        self._passages: dict[str, None] = {}
        self._passages_known = False

    @cached_property
    def _by_id(self) -> Mapping[str, tuple[int, str, int]]:
        rows = self._question_set.questions.order_by("position").values_list("pk", "external_id", "text")
        return {normalize_nfc(id_): (pk, id_, hash(normalize_nfc(text).strip())) for pk, id_, text in rows.iterator()}

    @cached_property
    def _by_text(self) -> Mapping[str, Sequence[str]]:
        ids_by_text: dict[str, list[str]] = {}
        for id_, text in (
            self._question_set.questions.order_by("position").values_list("external_id", "text").iterator()
        ):
            ids_by_text.setdefault(normalize_nfc(text).strip(), []).append(normalize_nfc(id_))
        return ids_by_text

    @cached_property
    def _expected(self) -> frozenset[str]:
        """The ids of all expected passages."""
        specs = self._question_set.questions.values_list("spec__ground_truth_chunk_ids", flat=True)
        return frozenset(str(id_) for ids in specs.iterator() if isinstance(ids, list) for id_ in ids)

    def match(self, row: AnswerRow) -> MatchedRow | None:
        """The row with its question; ``None`` if it names no question, several, or one that another row already
        answered.
        :meth:`finish` reports those rows.

        :raises InvalidFile: if there are too many problems."""
        matched_row = self._resolve(row)
        if isinstance(matched_row, Problem):
            self._add_problem(matched_row, row)
            return None
        key = (matched_row.question_pk, row.sample)
        if key in self._lines:
            params = {"question": matched_row.external_id, "sample": row.sample, "first_line": self._lines[key]}
            self._add_problem(Problem("duplicate_answer", field="sample", params=params), row)
            return None
        self._lines[key] = row.line
        self._answered_questions.add(matched_row.question_pk)
        text = self._by_id[normalize_nfc(matched_row.external_id)][2]
        self._differing_texts += bool(row.question) and hash(normalize_nfc(row.question).strip()) != text
        self._look_for_passages(row)
        return matched_row

    def _look_for_passages(self, row: AnswerRow) -> None:
        if self._passages_known:
            return
        retrieved, contexts = row.answer.retrieved_ids, row.answer.contexts
        passage_ids = [context.chunk_id for context in contexts or ()] if retrieved is None else retrieved
        ids = dict.fromkeys(filter(None, passage_ids))
        if not ids:
            return
        # Without expected passages there is nothing to check.
        self._passages_known = not self._expected or not self._expected.isdisjoint(ids)
        if len(self._passages) < MAX_NAMED:
            self._passages |= ids

    def finish(self) -> tuple[tuple[str, ...], list[Problem]]:
        """The ids of questions without an answer, and remarks for the user.

        :raises InvalidFile: with every row that could not be matched."""
        if self._problems:
            raise InvalidFile(self._grouped_problems())
        missing = tuple(id_ for pk, id_, _ in self._by_id.values() if pk not in self._answered_questions)
        remarks = []
        if missing:
            shortened = ", ".join(missing[:MAX_NAMED]) + (", …" if len(missing) > MAX_NAMED else "")
            remarks.append(
                Problem("answers_missing", self._file_name, params={"questions": len(missing), "ids": shortened})
            )
        if self._differing_texts:
            remarks.append(Problem("question_text_differs", self._file_name, params={"rows": self._differing_texts}))
        if self._passages and not self._passages_known:
            ids = {"given": _shorten(self._passages), "expected": _shorten(sorted(self._expected))}
            remarks.append(Problem(PASSAGES_UNMATCHED, self._file_name, params=ids))
        return missing, remarks

    def _grouped_problems(self) -> list[Problem]:
        """The problems; a single one if several rows were read and none of them names a question of the set."""
        if (
            self._answered_questions
            or len(self._problems) < 2
            or any(problem.code not in _UNKNOWN for problem in self._problems)
        ):
            return self._problems
        ids = (id_ for _, id_, _ in self._by_id.values())
        params = {"rows": len(self._problems), "given": _shorten(self._unmatched), "ids": _shorten(ids)}
        return [Problem("questions_unmatched", self._file_name, field="question_id", params=params)]

    def _add_problem(self, problem: Problem, row: AnswerRow) -> None:
        self._problems.append(replace(problem, file=self._file_name, line=row.line))
        if len(self._problems) == MAX_PROBLEMS:
            raise InvalidFile(self._grouped_problems())

    def _resolve(self, row: AnswerRow) -> MatchedRow | Problem:
        id_ = normalize_nfc(row.question_id)
        if not id_:
            ids = self._by_text.get(normalize_nfc(row.question).strip(), ())
            if len(ids) > 1:
                return Problem("question_ambiguous", field="question", params={"ids": ", ".join(ids[:MAX_NAMED])})
            if not ids:
                return Problem("question_text_unknown", field="question", params={"question": row.question[:80]})
            id_ = ids[0]
        if id_ not in self._by_id:
            if len(self._unmatched) <= MAX_NAMED and id_ not in self._unmatched:
                self._unmatched.append(id_)
            near = get_close_matches(id_, self._by_id, n=3) if len(self._problems) < MAX_HINTS else []
            if near:
                params = {"id": id_, "near": ", ".join(near)}
                return Problem("question_unknown_near", field="question_id", params=params)
            return Problem("question_unknown", field="question_id", params={"id": id_})
        pk, external_id, _ = self._by_id[id_]
        return MatchedRow(row, pk, external_id)


def match_rows(
    question_set: QuestionSet, file: AnswerFile, file_name: str
) -> tuple[list[MatchedRow], tuple[str, ...], list[Problem]]:
    """All rows of a file with their questions, and the results of :meth:`QuestionMatcher.finish`.

    :raises InvalidFile: see there."""
    matching = QuestionMatcher(question_set, file_name)
    rows = [matched_row for row in file if (matched_row := matching.match(row)) is not None]
    return rows, *matching.finish()
