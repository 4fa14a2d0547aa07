"""Calls of a search in which a model rewrites a rubric.

Each call is recorded before it is sent and its reply after it; a stored reply is reused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evaluation.core.errors import DomainError
from evaluation.judging.catalogue import family_for
from evaluation.judging.draft_checks import check_draft
from evaluation.judging.prompt import data_blocks
from evaluation.judging.rewriting import apply_rewriting, rewriting_call
from evaluation.judging.rubric import Rubric
from evaluation.models import RubricVersion, Run
from evaluation.network.outcomes import Outcome
from evaluation.runs.execution import response_format_of
from evaluation.scoring.recorded_calls import CallLedger, run_calls
from review.calibration.workbench import Disagreement, DisagreementFilter, Workbench, disagreements, ratings_of_labels
from review.models import Search, SearchCall, SearchReply
from review.statistics.gold_split import Split

MAX_CASES = 8
# Limit for all cases together.
MAX_CASES_CHARS = 24_000


def rewrite(search: Search, phase: int, workbench: Workbench, version: RubricVersion, run: Run) -> Rubric | None:
    """Have the judge's model rewrite the version from its largest disagreements on examples, with the run's settings.

    Return ``None`` without disagreements, without a readable reply, or if the reply is no valid draft.

    :raises DomainError: ``judge_away`` if the model cannot be reached."""
    cases = _disagreement_cases(workbench, version)
    if not cases:
        return None
    judge = search.judge_version
    response_format = response_format_of(run, judge)
    call = rewriting_call(
        version.rubric, cases, model=judge.model, parameters=judge.parameters, response_format=response_format
    )
    reply = dict(run_calls(_ledger(search, phase), judge, {str(phase): call}, response_format=response_format))[
        str(phase)
    ]
    if reply.outcome is not Outcome.OK:
        return None
    rubric = apply_rewriting(version.rubric, reply.parts)
    try:
        check_draft(rubric)
    except DomainError:
        return None
    return rubric


def _disagreement_cases(workbench: Workbench, version: RubricVersion) -> list[dict[str, Any]]:
    """Return the version's largest disagreements on examples, one for each answer, as shown to the model."""
    by_answer: dict[int, Disagreement] = {}
    for disagreement in disagreements(workbench, version, DisagreementFilter()):
        if disagreement.item.split == Split.EXAMPLES:
            by_answer.setdefault(disagreement.item.answer_id, disagreement)
    chosen = list(by_answer.values())[:MAX_CASES]
    comments = ratings_of_labels([disagreement.item for disagreement in chosen])
    specs = family_for(version.rubric).produced_metrics
    inputs = {name for spec in specs for name in (*spec.inputs, *spec.optional_inputs)}
    cases, length = list[dict[str, Any]](), 0
    for disagreement in chosen:
        case = data_blocks(disagreement.item.answer.question.read(), disagreement.item.answer.read(), inputs) | {
            "metric": disagreement.item.metric.name,
            "judge": {"value": disagreement.score.value, "reason": disagreement.score.reason},
            "experts": [value for _, value in disagreement.item.ratings],
            "why": list(_comment_texts(comments.get((disagreement.item.answer_id, disagreement.item.metric_id), ()))),
        }
        length += len(str(case))
        if length > MAX_CASES_CHARS and cases:
            break
        cases.append(case)
    return cases


def _comment_texts(rows: Iterable[Any]) -> Iterable[str]:
    return (row.comment for row in rows if row.comment)


def _ledger(search: Search, phase: int) -> CallLedger:
    replies = SearchReply.objects.filter(attempt__search=search, attempt__phase=phase).order_by("pk")
    return CallLedger(
        begin=lambda step: SearchCall.objects.create(search=search, phase=int(step)).pk,
        load_replies=lambda: ((str(phase), outcome, raw) for outcome, raw in replies.values_list("outcome", "raw")),
        reply_table=SearchReply,
    )
