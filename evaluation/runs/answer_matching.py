"""Which question each row of an answer file answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property

from evaluation.core.canonical import composed
from evaluation.core.errors import InvalidFile, Problem
from evaluation.files.answer_rows import AnswerFile, AnswerRow
from evaluation.files.tree import MOST_PROBLEMS
from evaluation.models import QuestionSet

MOST_HINTS = 20  # near matches are looked for this often: each look walks over all ids
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Answered:
    """A row with the question it answers."""

    row: AnswerRow
    question_pk: int
    external_id: str


class Matching:
    """Finds the question of one row after the other, by its id, else by its text where only one question has it. Holds
    of a question no more than its ids and a hash of its text: there may be as many as answers."""

    def __init__(self, question_set: QuestionSet, file_name: str) -> None:
        self._set, self._file = question_set, file_name
        self._problems: list[Problem] = []
        self._first: dict[tuple[int, int], int] = {}  # line by question and sample
        self._there: set[int] = set()
        self._other_text = 0

    @cached_property
    def _by_id(self) -> Mapping[str, tuple[int, str, int]]:
        rows = self._set.questions.order_by("position").values_list("pk", "external_id", "text")
        return {composed(id_): (pk, id_, hash(composed(text).strip())) for pk, id_, text in rows.iterator()}

    @cached_property
    def _by_text(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for id_, text in self._set.questions.order_by("position").values_list("external_id", "text").iterator():
            found.setdefault(composed(text).strip(), []).append(composed(id_))
        return found

    def match(self, row: AnswerRow) -> Answered | None:
        """The row with its question; ``None`` where it names no question, several, or one that another row answered
        already, which :meth:`finish` tells.

        :raises InvalidFile: when there are more problems than anybody reads.
        """
        found = self._resolve(row)
        if isinstance(found, Problem):
            self._refuse(found, row)
            return None
        key = (found.question_pk, row.sample)
        if key in self._first:
            about = {"question": found.external_id, "sample": row.sample, "first_line": self._first[key]}
            self._refuse(Problem("duplicate_answer", field="sample", params=about), row)
            return None
        self._first[key] = row.line
        self._there.add(found.question_pk)
        text = self._by_id[composed(found.external_id)][2]
        self._other_text += bool(row.question) and hash(composed(row.question).strip()) != text
        return found

    def finish(self) -> tuple[tuple[str, ...], list[Problem]]:
        """The ids of questions without an answer, and what a person should be told.

        :raises InvalidFile: with every row that could not be matched.
        """
        if self._problems:
            raise InvalidFile(self._problems)
        missing = tuple(id_ for pk, id_, _ in self._by_id.values() if pk not in self._there)
        told = []
        if missing:
            shown = ", ".join(missing[:MOST_NAMED]) + (", …" if len(missing) > MOST_NAMED else "")
            told.append(Problem("answers_missing", self._file, params={"questions": len(missing), "ids": shown}))
        if self._other_text:
            told.append(Problem("question_text_differs", self._file, params={"rows": self._other_text}))
        return missing, told

    def _refuse(self, problem: Problem, row: AnswerRow) -> None:
        self._problems.append(replace(problem, file=self._file, line=row.line))
        if len(self._problems) == MOST_PROBLEMS:
            raise InvalidFile(self._problems)

    def _resolve(self, row: AnswerRow) -> Answered | Problem:
        id_ = composed(row.question_id)
        if not id_:
            ids = self._by_text.get(composed(row.question).strip(), ())
            if len(ids) > 1:
                return Problem("question_ambiguous", field="question", params={"ids": ", ".join(ids[:MOST_NAMED])})
            if not ids:
                return Problem("question_text_unknown", field="question", params={"question": row.question[:80]})
            id_ = ids[0]
        if id_ not in self._by_id:
            near = get_close_matches(id_, self._by_id, n=3) if len(self._problems) < MOST_HINTS else []
            if near:
                about = {"id": id_, "near": ", ".join(near)}
                return Problem("question_unknown_near", field="question_id", params=about)
            return Problem("question_unknown", field="question_id", params={"id": id_})
        pk, external_id, _ = self._by_id[id_]
        return Answered(row, pk, external_id)


def matched(
    question_set: QuestionSet, file: AnswerFile, file_name: str
) -> tuple[list[Answered], tuple[str, ...], list[Problem]]:
    """All rows of a file with their questions, and what :meth:`Matching.finish` tells.

    :raises InvalidFile: as that does.
    """
    matching = Matching(question_set, file_name)
    rows = [found for row in file if (found := matching.match(row)) is not None]
    return rows, *matching.finish()
