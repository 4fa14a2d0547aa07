"""Which question each row of an answer file answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import islice

from evaluation.core.canonical import composed
from evaluation.core.errors import InvalidFile, Problem
from evaluation.formats.answer_rows import AnswerFile, AnswerRow
from evaluation.formats.tree import MOST_PROBLEMS
from evaluation.models import QuestionSet

MOST_HINTS = 20  # near matches are looked for this often: each look walks over all ids
MOST_NAMED = 5
_UNKNOWN = {"question_unknown", "question_unknown_near"}
PASSAGES_UNMATCHED = "passages_unmatched"  # asks whether a file in which nothing was found is meant so


def _some(names: Iterable[str]) -> str:
    """The first of the names, shortened."""
    first = [name[:80] for name in islice(names, MOST_NAMED + 1)]
    return ", ".join(first[:MOST_NAMED]) + (", …" if len(first) > MOST_NAMED else "")


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
        self._unmatched: list[str] = []  # names of questions that are not in the set, each once
        self._passages: dict[str, None] = {}  # ids of passages, until one is among those that should be found
        self._passages_known = False

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

    @cached_property
    def _expected(self) -> frozenset[str]:
        """The ids of all passages that should be found."""
        specs = self._set.questions.values_list("spec__ground_truth_chunk_ids", flat=True)
        return frozenset(str(id_) for ids in specs.iterator() if isinstance(ids, list) for id_ in ids)

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
        self._look_for_passages(row)
        return found

    def _look_for_passages(self, row: AnswerRow) -> None:
        if self._passages_known:
            return
        retrieved, contexts = row.answer.retrieved_ids, row.answer.contexts
        named = [context.chunk_id for context in contexts or ()] if retrieved is None else retrieved
        ids = dict.fromkeys(filter(None, named))
        if not ids:
            return
        # Without any that should be found there is nothing to know.
        self._passages_known = not self._expected or not self._expected.isdisjoint(ids)
        if len(self._passages) < MOST_NAMED:
            self._passages |= ids

    def finish(self) -> tuple[tuple[str, ...], list[Problem]]:
        """The ids of questions without an answer, and what a person should be told.

        :raises InvalidFile: with every row that could not be matched.
        """
        if self._problems:
            raise InvalidFile(self._told())
        missing = tuple(id_ for pk, id_, _ in self._by_id.values() if pk not in self._there)
        told = []
        if missing:
            shown = ", ".join(missing[:MOST_NAMED]) + (", …" if len(missing) > MOST_NAMED else "")
            told.append(Problem("answers_missing", self._file, params={"questions": len(missing), "ids": shown}))
        if self._other_text:
            told.append(Problem("question_text_differs", self._file, params={"rows": self._other_text}))
        if self._passages and not self._passages_known:
            ids = {"given": _some(self._passages), "expected": _some(sorted(self._expected))}
            told.append(Problem(PASSAGES_UNMATCHED, self._file, params=ids))
        return missing, told

    def _told(self) -> list[Problem]:
        """The problems; where not one of several rows names a question of the set, a single one."""
        if self._there or len(self._problems) < 2 or any(one.code not in _UNKNOWN for one in self._problems):
            return self._problems
        ids = (id_ for _, id_, _ in self._by_id.values())
        about = {"rows": len(self._problems), "given": _some(self._unmatched), "ids": _some(ids)}
        return [Problem("questions_unmatched", self._file, field="question_id", params=about)]

    def _refuse(self, problem: Problem, row: AnswerRow) -> None:
        self._problems.append(replace(problem, file=self._file, line=row.line))
        if len(self._problems) == MOST_PROBLEMS:
            raise InvalidFile(self._told())

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
            if len(self._unmatched) <= MOST_NAMED and id_ not in self._unmatched:
                self._unmatched.append(id_)
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
