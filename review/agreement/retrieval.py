"""What a run retrieved, by depth: curves over all questions, by category and by the number of facts to link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics.depths import means_by_depth
from evaluation.metrics.retrieval import Ranking, ranking
from evaluation.models import Answer, Context, Run
from review.evidence.answers import RunAnswer, run_answers

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Curves:
    """The means of some questions by metric, at k = 1 to the depth of the run. ``name`` is empty for all questions;
    ``hops`` is given where they are told apart by it."""

    name: str
    count: int
    values: Mapping[str, tuple[float, ...]]
    hops: int | None = None


@dataclass(frozen=True, slots=True)
class RetrievalByDepth:
    """``overall`` is ``None`` where no question has a ranking. ``unlabelled`` questions name no relevant passage,
    ``missing`` have no answer or one without passages; neither is in any figure."""

    depth: int
    overall: Curves | None
    by_category: tuple[Curves, ...]
    by_hops: tuple[Curves, ...]
    unlabelled: int
    missing: int


def retrieval_by_depth(run: Run) -> RetrievalByDepth:
    """The curves of a run, from the ids that its answers retrieved."""
    answers = run_answers(run)
    depth = run.answer_set.k
    retrieved, truth = _retrieved(answers), _truth(run)
    settings = RuleSettings(k=depth)
    ranked: list[tuple[RunAnswer, Ranking]] = []
    unlabelled = missing = 0
    for answer in answers:
        asked = QuestionSpec(id="", category="", text="", ground_truth_chunk_ids=truth.get(answer.question_pk, ()))
        found = ranking(asked, AnswerSpec("", None, retrieved.get(answer.answer_id)), settings)
        if isinstance(found, Ranking) and not answer.failed:
            ranked.append((answer, found))
        elif asked.ground_truth_chunk_ids:
            missing += 1
        else:
            unlabelled += 1
    categories: dict[str, list[Ranking]] = defaultdict(list)
    hops: dict[int, list[Ranking]] = defaultdict(list)
    for answer, found in ranked:
        categories[answer.category].append(found)
        if answer.hops is not None:
            hops[answer.hops].append(found)
    return RetrievalByDepth(
        depth,
        _curves("", [found for _, found in ranked], depth) if ranked else None,
        tuple(_curves(name, those, depth) for name, those in categories.items()),
        tuple(_curves("", hops[count], depth, count) for count in sorted(hops)),
        unlabelled,
        missing,
    )


def _curves(name: str, rankings: Sequence[Ranking], depth: int, hops: int | None = None) -> Curves:
    return Curves(name, len(rankings), means_by_depth(rankings, depth), hops)


def _truth(run: Run) -> dict[int, tuple[str, ...]]:
    rows = run.answer_set.question_set.questions.values_list("pk", "spec__ground_truth_chunk_ids")
    return {pk: tuple(map(str, ids)) for pk, ids in rows if ids}


def _retrieved(answers: Sequence[RunAnswer]) -> dict[int, tuple[str, ...]]:
    """The ids that each answer retrieved, in order; those without any id are left out."""
    found: dict[int, tuple[str, ...]] = {}
    keys = [answer.answer_id for answer in answers]
    for first in range(0, len(keys), _AT_ONCE):
        part = keys[first : first + _AT_ONCE]
        told = Answer.objects.filter(pk__in=part).values_list("pk", "retrieves", "retrieved_ids")
        passages: dict[int, list[str]] = defaultdict(list)
        for pk, chunk_id in (
            Context.objects.filter(answer__in=part).order_by("position").values_list("answer_id", "chunk_id")
        ):
            passages[pk].append(chunk_id)
        for pk, retrieves, ids in told:
            if ids is not None:
                found[pk] = tuple(map(str, ids))
            elif retrieves and (any(passages[pk]) or not passages[pk]):
                found[pk] = tuple(passages[pk])
    return found
