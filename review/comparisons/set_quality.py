"""Quality of a question set: similar questions, leaked answers, disagreeing references, and difficulty.

Similarity is ``evaluation.datasets.question_checks.alike``. Only pairs that share a third of their words are compared,
so that a thousand questions take a second."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from django.db.models import OuterRef, Subquery

from evaluation.core.samples import QuestionSpec
from evaluation.datasets.question_checks import SIMILARITY_THRESHOLD, find_leak, trigram_similarity
from evaluation.extensions import features
from evaluation.judging.catalogue import judge_metrics
from evaluation.metrics.normalise import content_tokens
from evaluation.models import MetricDefinition, QuestionSet, Score
from review.evidence.experts import agreement_ratings, is_standing, read_ratings_with
from review.evidence.rating_input import FlagKind, OverrideReason
from review.evidence.seals import readable
from review.models import EventRuling, ItemEvent, Rating
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.statistic import Rating as AgreedRating

# Larger sets are not searched for similar questions.
MAX_QUESTIONS = 3_000
# Share of the scale between two experts from which an answer is listed.
MIN_EXPERT_GAP = 0.5
# References of one question with less similarity are listed.
MIN_REFERENCE_SIMILARITY = 0.2
_SHARED_WORDS = 1 / 3
# Metric of difficulty: a relevant passage was retrieved, or keywords where the question names no passages.
RETRIEVAL_METRIC = "hit_at_k"
ANSWER_METRIC = "keyword_hit"


@dataclass(frozen=True, slots=True)
class QuestionPair:
    """Two similarly worded questions and their similarity."""

    first: QuestionSpec
    second: QuestionSpec
    share: float


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Number of systems that solved a question by ``metric``, over the newest run of each."""

    question: QuestionSpec
    metric: str
    solved_by: int
    systems: int


@dataclass(frozen=True, slots=True)
class DoubtedReference:
    """A reference that experts call wrong, by a flag that no lead dismissed or as the reason of a changed rating.

    ``rejections`` counts them among the ``experts`` who rated answers to the question; ``upheld``: a lead agreed."""

    question: QuestionSpec
    experts: int
    rejections: int
    upheld: bool


@dataclass(frozen=True, slots=True)
class ReferenceAgreement:
    """Agreement of blind ratings against references on a metric.

    ``statistic`` is that of its scale; ``value`` is ``None`` where undefined. Each answer has two ratings or more."""

    title: Mapping[str, str]
    answers: int
    statistic: str
    value: float | None


@dataclass(frozen=True, slots=True)
class ReferenceReview:
    """Expert opinion on references.

    ``rated`` counts questions with a rating. ``expert_gaps`` are the questions with the largest distance of two experts
    on one answer, as a share of the scale."""

    rated: int
    doubted: tuple[DoubtedReference, ...]
    agreements: tuple[ReferenceAgreement, ...]
    expert_gaps: tuple[tuple[QuestionSpec, float], ...]


@dataclass(frozen=True, slots=True)
class SetQuality:
    """Findings about a question set.

    ``leaks`` are questions with the words that give the answer away; ``divergent_references`` those whose references
    are least similar, out of ``referenced`` with several. ``compared`` is false if the set is too large to search for
    duplicates. ``difficulties`` cover questions answered by two systems or more."""

    questions: int
    compared: bool
    duplicates: tuple[QuestionPair, ...]
    leaks: tuple[tuple[QuestionSpec, str], ...]
    divergent_references: tuple[tuple[QuestionSpec, float], ...]
    referenced: int
    reference_review: ReferenceReview
    difficulties: tuple[Difficulty, ...]

    @property
    def unsolved(self) -> tuple[Difficulty, ...]:
        """Questions that no system solved: too hard, or wrong."""
        return tuple(difficulty for difficulty in self.difficulties if difficulty.solved_by == 0)

    @property
    def always_solved(self) -> tuple[Difficulty, ...]:
        return tuple(difficulty for difficulty in self.difficulties if difficulty.solved_by == difficulty.systems)

    @property
    def discriminating(self) -> int:
        """Number of questions that only some systems solved."""
        return len(self.difficulties) - len(self.unsolved) - len(self.always_solved)


def set_quality(questions: QuestionSet) -> SetQuality:
    """Check every question of a set version."""
    rows = {row.pk: row.read() for row in questions.questions.order_by("position")}
    specs = list(rows.values())
    compared = len(specs) <= MAX_QUESTIONS
    passages = _passages(questions, specs)
    leaks = (
        (spec, find_leak(spec, [passages[id_] for id_ in spec.ground_truth_chunk_ids if id_ in passages]))
        for spec in specs
    )
    with_references = [spec for spec in specs if len(spec.references) > 1]
    similarities = (
        (spec, max(trigram_similarity(a, b) for a, b in combinations(spec.references, 2))) for spec in with_references
    )
    return SetQuality(
        len(specs),
        compared,
        tuple(_duplicates(specs)) if compared else (),
        tuple((spec, words) for spec, words in leaks if words),
        tuple(
            sorted(
                ((spec, share) for spec, share in similarities if share < MIN_REFERENCE_SIMILARITY),
                key=lambda pair: pair[1],
            )
        ),
        len(with_references),
        _reference_review(questions, rows),
        tuple(_difficulties(questions, rows)),
    )


def _duplicates(specs: Sequence[QuestionSpec]) -> list[QuestionPair]:
    # SciPy is slow to import.
    from scipy.sparse import csr_array

    words = [frozenset(content_tokens(spec.text)) for spec in specs]
    word_columns = {word: index for index, word in enumerate({word for tokens in words for word in tokens})}
    rows = [row for row, tokens in enumerate(words) for _ in tokens]
    columns = [word_columns[word] for tokens in words for word in tokens]
    table = csr_array((np.ones(len(rows), np.int32), (rows, columns)), shape=(len(specs), max(1, len(word_columns))))
    shared = (table @ table.T).tocoo()
    pairs = []
    for first, second, shared_count in zip(shared.row, shared.col, shared.data, strict=True):
        if first < second and shared_count >= _SHARED_WORDS * (len(words[first]) + len(words[second]) - shared_count):
            share = trigram_similarity(specs[first].text, specs[second].text)
            if share >= SIMILARITY_THRESHOLD:
                pairs.append(QuestionPair(specs[first], specs[second], share))
    return sorted(pairs, key=lambda pair: -pair.share)


def _passages(questions: QuestionSet, specs: Sequence[QuestionSpec]) -> dict[str, str]:
    """Return the texts of passages named by the questions, from installed features."""
    ids = sorted({id_ for spec in specs for id_ in spec.ground_truth_chunk_ids})
    by_feature = (feature.passages(questions.project_id, ids) for feature in features() if feature.passages)
    return {id_: text for texts in by_feature for id_, text in texts.items()}


def _reference_review(questions: QuestionSet, specs: Mapping[int, QuestionSpec]) -> ReferenceReview:
    """Review references by the ratings of metrics that compare answers with them. Four queries."""
    names = [spec.name for spec in judge_metrics() if "reference" in spec.inputs]
    reference_ratings = Rating.objects.filter(
        is_standing(), answer__answer_set__question_set=questions, metric__name__in=names
    )
    rows = list(read_ratings_with(readable(reference_ratings), "answer__question", "reason_code"))
    question_of = {row.answer_id: question for row, (question, _) in rows}
    raters, rejections, upheld = defaultdict(set), defaultdict(set), set()
    for row, (question, reason) in rows:
        raters[question].add(row.rater)
        if reason == OverrideReason.REFERENCE_WRONG:
            rejections[question].add(row.rater)
    flags = ItemEvent.objects.filter(verb="flag", kind=FlagKind.BAD_REFERENCE)
    rulings = EventRuling.objects.filter(event=OuterRef("pk")).order_by("-seq").values("upheld")[:1]
    by_item = "assignment__item__answer__"
    flag_rows = flags.filter(**{f"{by_item}answer_set__question_set": questions}).annotate(ruled=Subquery(rulings))
    for question, reviewer, verdict in flag_rows.values_list(f"{by_item}question", "assignment__reviewer", "ruled"):
        if verdict is not False:
            rejections[question].add(f"expert_{reviewer}")
            raters[question].add(f"expert_{reviewer}")
        if verdict:
            upheld.add(question)
    doubted = (
        DoubtedReference(specs[pk], len(raters[pk]), len(rejecting), pk in upheld)
        for pk, rejecting in rejections.items()
    )
    metrics = MetricDefinition.objects.in_bulk({row.metric_id for row, _ in rows})
    by_metric: dict[int, list[AgreedRating]] = defaultdict(list)
    expert_gaps: dict[int, float] = {}
    for (answer, pk), answer_ratings in agreement_ratings(row for row, _ in rows).items():
        scale = metrics[pk].read_scale()
        if len(answer_ratings) < 2 or len({rating.rater for rating in answer_ratings}) < len(answer_ratings):
            continue
        by_metric[pk] += [
            AgreedRating(answer, rating.rater, rating.value_or_label)
            for rating in answer_ratings
            if rating.value_or_label is not None
        ]
        values = [rating.value for rating in answer_ratings if rating.value is not None]
        if len(values) > 1 and scale.width > 0:
            gap = (max(values) - min(values)) / scale.width
            expert_gaps[question_of[answer]] = max(gap, expert_gaps.get(question_of[answer], 0.0))
    return ReferenceReview(
        len(raters),
        tuple(sorted(doubted, key=lambda reference: (-reference.upheld, -reference.rejections, reference.question.id))),
        tuple(_reference_agreement(metrics[pk], ratings) for pk, ratings in sorted(by_metric.items())),
        tuple(
            sorted(
                ((specs[pk], gap) for pk, gap in expert_gaps.items() if gap >= MIN_EXPERT_GAP),
                key=lambda pair: -pair[1],
            )
        ),
    )


def _reference_agreement(metric: MetricDefinition, ratings: Sequence[AgreedRating]) -> ReferenceAgreement:
    scale = metric.read_scale()
    agreement, name = compare_experts(ratings, scale), headline_statistic(scale)
    return ReferenceAgreement(metric.title, agreement.n, name, agreement.statistics[name].value)


def _difficulties(questions: QuestionSet, rows: Mapping[int, QuestionSpec]) -> list[Difficulty]:
    scores = Score.objects.filter(
        run__answer_set__question_set=questions, metric__name__in=[RETRIEVAL_METRIC, ANSWER_METRIC]
    )
    rule_scores = scores.filter(status="scored", judge_version=None, author="").order_by("run_id", "round")
    columns = ("answer__question_id", "metric__name", "run__answer_set__system_version__system_id", "value")
    newest: dict[tuple[int, str], dict[int, float]] = defaultdict(dict)
    for question, metric, system, value in rule_scores.values_list(*columns):
        newest[question, metric][system] = value
    difficulties = []
    for pk, spec in rows.items():
        metric = RETRIEVAL_METRIC if spec.ground_truth_chunk_ids else ANSWER_METRIC
        values = newest.get((pk, metric), {})
        if len(values) > 1:
            difficulties.append(Difficulty(spec, metric, sum(value >= 1 for value in values.values()), len(values)))
    return difficulties
