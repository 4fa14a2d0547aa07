"""How good the questions of a set are: those that are worded alike, that give themselves away, whose expected answers
disagree, and which of them tell systems apart.

Two questions are alike by the rule of generated ones (``generation.filters.alike``); only pairs that share a third of
their words are looked at, so that a thousand questions take a second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evaluation.core.samples import QuestionSpec
from evaluation.corpora.coverage import newest_corpora
from evaluation.metrics.normalise import content_tokens
from evaluation.models import Chunk, QuestionSet, Score
from review.generation.filters import ALIKE, alike, leaked

MOST_QUESTIONS = 3_000  # that are compared with each other
APART = 0.2  # expected answers of one question that share less are shown
_SHARED_WORDS = 1 / 3
_AT_ONCE = 500
FOUND = "hit_at_k"  # what tells systems apart: whether a relevant passage was retrieved; without passages, the keywords
ANSWERED = "keyword_hit"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions that are worded alike, and how much."""

    one: QuestionSpec
    other: QuestionSpec
    share: float


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How many of the systems got a question right by ``metric``, over the newest run of each."""

    question: QuestionSpec
    metric: str
    right: int
    systems: int


@dataclass(frozen=True, slots=True)
class SetQuality:
    """What was found. ``leaks`` are questions with the words that give them away; ``apart`` those whose expected
    answers are least alike; ``compared`` is false where the set is too large to compare its questions with each other.
    ``difficulties`` are of questions that two systems or more were asked."""

    questions: int
    compared: bool
    duplicates: tuple[Pair, ...]
    leaks: tuple[tuple[QuestionSpec, str], ...]
    apart: tuple[tuple[QuestionSpec, float], ...]
    referenced: int
    difficulties: tuple[Difficulty, ...]

    @property
    def never(self) -> tuple[Difficulty, ...]:
        """Questions that no system got right: too hard, or wrong themselves."""
        return tuple(one for one in self.difficulties if one.right == 0)

    @property
    def always(self) -> tuple[Difficulty, ...]:
        """Questions that every system got right."""
        return tuple(one for one in self.difficulties if one.right == one.systems)

    @property
    def telling(self) -> int:
        """How many questions some systems got right and others did not."""
        return len(self.difficulties) - len(self.never) - len(self.always)


def set_quality(questions: QuestionSet) -> SetQuality:
    """Look at every question of a version of a set."""
    rows = {row.pk: row.read() for row in questions.questions.order_by("position")}
    specs = list(rows.values())
    compared = len(specs) <= MOST_QUESTIONS
    passages = _passages(questions, specs)
    leaks = (
        (spec, leaked(spec, [passages[id_] for id_ in spec.ground_truth_chunk_ids if id_ in passages]))
        for spec in specs
    )
    several = [spec for spec in specs if len(spec.references) > 1]
    nearness = ((spec, max(alike(a, b) for a, b in combinations(spec.references, 2))) for spec in several)
    return SetQuality(
        len(specs),
        compared,
        tuple(_duplicates(specs)) if compared else (),
        tuple((spec, words) for spec, words in leaks if words),
        tuple(sorted(((spec, share) for spec, share in nearness if share < APART), key=lambda one: one[1])),
        len(several),
        tuple(_difficulties(questions, rows)),
    )


def _duplicates(specs: Sequence[QuestionSpec]) -> list[Pair]:
    from scipy.sparse import csr_array  # imported when it is needed, as everywhere

    words = [frozenset(content_tokens(spec.text)) for spec in specs]
    places = {word: place for place, word in enumerate({word for one in words for word in one})}
    rows = [row for row, one in enumerate(words) for _ in one]
    columns = [places[word] for one in words for word in one]
    table = csr_array((np.ones(len(rows), np.int32), (rows, columns)), shape=(len(specs), max(1, len(places))))
    shared = (table @ table.T).tocoo()
    found = []
    for one, other, both in zip(shared.row, shared.col, shared.data, strict=True):
        if one < other and both >= _SHARED_WORDS * (len(words[one]) + len(words[other]) - both):
            share = alike(specs[one].text, specs[other].text)
            if share >= ALIKE:
                found.append(Pair(specs[one], specs[other], share))
    return sorted(found, key=lambda pair: -pair.share)


def _passages(questions: QuestionSet, specs: Sequence[QuestionSpec]) -> dict[str, str]:
    """The texts of the passages that the questions name, as far as the project's corpora have them."""
    ids = sorted({id_ for spec in specs for id_ in spec.ground_truth_chunk_ids})
    corpora = list(newest_corpora(questions.project_id).values_list("pk", flat=True))
    found: dict[str, str] = {}
    for first in range(0, len(ids), _AT_ONCE):
        rows = Chunk.objects.filter(corpus__in=corpora, chunk_id__in=ids[first : first + _AT_ONCE])
        found |= dict(rows.values_list("chunk_id", "text"))
    return found


def _difficulties(questions: QuestionSet, rows: Mapping[int, QuestionSpec]) -> list[Difficulty]:
    scores = Score.objects.filter(run__answer_set__question_set=questions, metric__name__in=[FOUND, ANSWERED])
    told = scores.filter(status="scored", judge_version=None, author="").order_by("run_id", "round")
    columns = ("answer__question_id", "metric__name", "run__answer_set__system_version__system_id", "value")
    newest: dict[tuple[int, str], dict[int, float]] = defaultdict(dict)
    for question, metric, system, value in told.values_list(*columns):
        newest[question, metric][system] = value
    found = []
    for pk, spec in rows.items():
        metric = FOUND if spec.ground_truth_chunk_ids else ANSWERED
        values = newest.get((pk, metric), {})
        if len(values) > 1:
            found.append(Difficulty(spec, metric, sum(value >= 1 for value in values.values()), len(values)))
    return found
