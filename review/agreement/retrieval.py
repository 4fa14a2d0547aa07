"""Retrieval metrics of a run by depth: curves for all questions, by category and by number of facts to link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics.depth_curves import means_by_depth
from evaluation.metrics.retrieval import Ranking, ranking
from evaluation.models import Answer, Context, Run
from review.evidence.answers import RunAnswer, run_answers

_BATCH_SIZE = 500


@dataclass(frozen=True, slots=True)
class DepthCurves:
    """Mean by metric at k = 1 to the depth of the run. ``name`` is empty for all questions; ``hops`` is set in splits
    by it."""

    name: str
    count: int
    values: Mapping[str, tuple[float, ...]]
    hops: int | None = None


@dataclass(frozen=True, slots=True)
class RetrievalByDepth:
    """Curves of a run; ``overall`` is ``None`` if no question has a ranking.

    ``unlabelled`` questions name no relevant passage; ``missing`` ones have no answer, or one without passages. Neither
    is in any figure."""

    depth: int
    overall: DepthCurves | None
    by_category: tuple[DepthCurves, ...]
    by_hops: tuple[DepthCurves, ...]
    unlabelled: int
    missing: int


def retrieval_by_depth(run: Run) -> RetrievalByDepth:
    answers = run_answers(run)
    depth = run.answer_set.k
    retrieved, relevant = _retrieved_passages(answers), _relevant_passages(run)
    settings = RuleSettings(k=depth)
    ranked: list[tuple[RunAnswer, Ranking]] = []
    unlabelled = missing = 0
    for answer in answers:
        question = QuestionSpec(
            id="", category="", text="", ground_truth_chunk_ids=relevant.get(answer.question_pk, ())
        )
        answer_ranking = ranking(question, AnswerSpec("", None, retrieved.get(answer.answer_id)), settings)
        if isinstance(answer_ranking, Ranking) and not answer.failed:
            ranked.append((answer, answer_ranking))
        elif question.ground_truth_chunk_ids:
            missing += 1
        else:
            unlabelled += 1
    categories: dict[str, list[Ranking]] = defaultdict(list)
    hops: dict[int, list[Ranking]] = defaultdict(list)
    for answer, answer_ranking in ranked:
        categories[answer.category].append(answer_ranking)
        if answer.hops is not None:
            hops[answer.hops].append(answer_ranking)
    return RetrievalByDepth(
        depth,
        _depth_curves("", [answer_ranking for _, answer_ranking in ranked], depth) if ranked else None,
        tuple(_depth_curves(name, category_rankings, depth) for name, category_rankings in categories.items()),
        tuple(_depth_curves("", hops[count], depth, count) for count in sorted(hops)),
        unlabelled,
        missing,
    )


def _depth_curves(name: str, rankings: Sequence[Ranking], depth: int, hops: int | None = None) -> DepthCurves:
    return DepthCurves(name, len(rankings), means_by_depth(rankings, depth), hops)


def _relevant_passages(run: Run) -> dict[int, tuple[str, ...]]:
    rows = run.answer_set.question_set.questions.values_list("pk", "spec__ground_truth_chunk_ids")
    return {pk: tuple(map(str, ids)) for pk, ids in rows if ids}


def _retrieved_passages(answers: Sequence[RunAnswer]) -> dict[int, tuple[str, ...]]:
    """Ids that each answer retrieved, in order; answers without ids are left out."""
    retrieved: dict[int, tuple[str, ...]] = {}
    keys = [answer.answer_id for answer in answers]
    for start in range(0, len(keys), _BATCH_SIZE):
        batch = keys[start : start + _BATCH_SIZE]
        columns = Answer.objects.filter(pk__in=batch).values_list("pk", "retrieves", "retrieved_ids")
        passages: dict[int, list[str]] = defaultdict(list)
        for pk, chunk_id in (
            Context.objects.filter(answer__in=batch).order_by("position").values_list("answer_id", "chunk_id")
        ):
            passages[pk].append(chunk_id)
        for pk, retrieves, ids in columns:
            if ids is not None:
                retrieved[pk] = tuple(map(str, ids))
            elif retrieves and (any(passages[pk]) or not passages[pk]):
                retrieved[pk] = tuple(passages[pk])
    return retrieved
