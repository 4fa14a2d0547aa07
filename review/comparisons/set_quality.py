"""How good the questions of a set are: those that are worded alike, that give themselves away, whose expected answers
disagree or are doubted by experts, and which of them tell systems apart.

Two questions are alike as ``evaluation.datasets.checks.alike`` says; only pairs that share a third of their words are
looked at, so that a thousand questions take a second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from django.db.models import OuterRef, Subquery

from evaluation.core.samples import QuestionSpec
from evaluation.datasets.checks import ALIKE, alike, leaked
from evaluation.extensions import features
from evaluation.judging.catalogue import judge_metrics
from evaluation.metrics.normalise import content_tokens
from evaluation.models import MetricDefinition, QuestionSet, Score
from review.evidence.experts import agreement_ratings, read_beside
from review.evidence.rating_input import FlagKind, OverrideReason
from review.evidence.seals import readable
from review.models import EventRuling, ItemEvent, Rating
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.statistic import Rating as AgreedRating

MOST_QUESTIONS = 3_000  # that are compared with each other
FAR = 0.5  # of a scale; experts who lie that far apart on one answer are shown
APART = 0.2  # expected answers of one question that share less are shown
_SHARED_WORDS = 1 / 3
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
class Doubted:
    """An expected answer of which ``against`` of the ``experts`` who rated answers to the question said that it is
    wrong, by a flag that no lead dismissed or as the reason of a changed rating; ``upheld``: a lead agreed."""

    question: QuestionSpec
    experts: int
    against: int
    upheld: bool


@dataclass(frozen=True, slots=True)
class Agreed:
    """How far experts agree, blind, when they hold ``answers`` against expected ones on a metric: the statistic of its
    scale, ``None`` where it is undefined. Each answer has two ratings or more."""

    title: Mapping[str, str]
    answers: int
    statistic: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Experts:
    """What experts think of the expected answers: of ``rated`` questions with a rating, those with a ``doubted`` one,
    the agreement by metric, and where they lie ``apart``: questions with the largest distance of two experts on one
    answer, as a share of the scale."""

    rated: int
    doubted: tuple[Doubted, ...]
    agreed: tuple[Agreed, ...]
    apart: tuple[tuple[QuestionSpec, float], ...]


@dataclass(frozen=True, slots=True)
class SetQuality:
    """What was found. ``leaks`` are questions with the words that give them away; ``apart`` those whose expected
    answers are least alike, ``experts`` what people said of these; ``compared`` is false where the set is too large to
    compare its questions with each other. ``difficulties`` are of questions that two systems or more were asked."""

    questions: int
    compared: bool
    duplicates: tuple[Pair, ...]
    leaks: tuple[tuple[QuestionSpec, str], ...]
    apart: tuple[tuple[QuestionSpec, float], ...]
    referenced: int
    experts: Experts
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
        _experts(questions, rows),
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
    """The texts of the passages that the questions name, as far as installed features have them."""
    ids = sorted({id_ for spec in specs for id_ in spec.ground_truth_chunk_ids})
    several = (feature.passages(questions.project_id, ids) for feature in features() if feature.passages)
    return {id_: text for texts in several for id_, text in texts.items()}


def _experts(questions: QuestionSet, specs: Mapping[int, QuestionSpec]) -> Experts:
    """From ratings of metrics that hold answers against the expected one. Four queries."""
    names = [spec.name for spec in judge_metrics() if "reference" in spec.inputs]
    given = Rating.objects.filter(answer__answer_set__question_set=questions, metric__name__in=names)
    rows = list(read_beside(readable(given), "answer__question", "reason_code"))
    question_of = {row.answer_id: question for row, (question, _) in rows}
    raters, against, upheld = defaultdict(set), defaultdict(set), set()
    for row, (question, reason) in rows:
        raters[question].add(row.rater)
        if reason == OverrideReason.REFERENCE_WRONG:
            against[question].add(row.rater)
    flags = ItemEvent.objects.filter(verb="flag", kind=FlagKind.BAD_REFERENCE)
    ruled = EventRuling.objects.filter(event=OuterRef("pk")).order_by("-seq").values("upheld")[:1]
    by_item = "assignment__item__answer__"
    told = flags.filter(**{f"{by_item}answer_set__question_set": questions}).annotate(ruled=Subquery(ruled))
    for question, reviewer, verdict in told.values_list(f"{by_item}question", "assignment__reviewer", "ruled"):
        if verdict is not False:
            against[question].add(f"expert_{reviewer}")
            raters[question].add(f"expert_{reviewer}")
        if verdict:
            upheld.add(question)
    doubted = (Doubted(specs[pk], len(raters[pk]), len(who), pk in upheld) for pk, who in against.items())
    metrics = MetricDefinition.objects.in_bulk({row.metric_id for row, _ in rows})
    by_metric: dict[int, list[AgreedRating]] = defaultdict(list)
    apart: dict[int, float] = {}
    for (answer, pk), said in agreement_ratings(row for row, _ in rows).items():
        scale = metrics[pk].read_scale()
        if len(said) < 2 or len({one.rater for one in said}) < len(said):
            continue
        by_metric[pk] += [AgreedRating(answer, one.rater, one.answer) for one in said if one.answer is not None]
        values = [one.value for one in said if one.value is not None]
        if len(values) > 1 and scale.width > 0:
            gap = (max(values) - min(values)) / scale.width
            apart[question_of[answer]] = max(gap, apart.get(question_of[answer], 0.0))
    return Experts(
        len(raters),
        tuple(sorted(doubted, key=lambda one: (-one.upheld, -one.against, one.question.id))),
        tuple(_agreed(metrics[pk], ratings) for pk, ratings in sorted(by_metric.items())),
        tuple(sorted(((specs[pk], gap) for pk, gap in apart.items() if gap >= FAR), key=lambda one: -one[1])),
    )


def _agreed(metric: MetricDefinition, ratings: Sequence[AgreedRating]) -> Agreed:
    scale = metric.read_scale()
    found, name = compare_experts(ratings, scale), headline_statistic(scale)
    return Agreed(metric.title, found.n, name, found.statistics[name].value)


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
