"""The calls of a search by which a model rewrites a rubric: each is written down before it is made, and what it gave
and cost after it; a reply that is there is not asked for again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evaluation.core.errors import Refused
from evaluation.judging.catalogue import family_for
from evaluation.judging.drafting import check_draft
from evaluation.judging.prompt import data_blocks
from evaluation.judging.rewriting import rewriting_call, rewritten
from evaluation.judging.rubric import Rubric
from evaluation.models import RubricVersion, Run
from evaluation.network.outcomes import Outcome
from evaluation.runs.draining import rung_of
from evaluation.scoring.side_calls import Ledger, hear_all
from review.calibration.workbench import Bench, Disagreement, Wanted, comments_on, disagreements
from review.models import Search, SearchCall, SearchReply
from review.statistics.gold_split import Split

CASES = 8
LONGEST_CASES = 24_000  # characters of all cases


def rewrite(search: Search, phase: int, bench: Bench, version: RubricVersion, run: Run) -> Rubric | None:
    """The version as the judge's model writes it anew after the largest disagreements on the examples part, asked as in
    the run; ``None`` where there are none, no reply could be read, or what it says is no draft.

    :raises Refused: ``judge_away`` where the model cannot be asked now.
    """
    cases = _cases(bench, version)
    if not cases:
        return None
    judge = search.judge_version
    rung = rung_of(run, judge)
    call = rewriting_call(version.rubric, cases, model=judge.model, parameters=judge.parameters, rung=rung)
    heard = dict(hear_all(_ledger(search, phase), judge, {str(phase): call}, rung=rung))[str(phase)]
    if heard.outcome is not Outcome.OK:
        return None
    rubric = rewritten(version.rubric, heard.parts)
    try:
        check_draft(rubric)
    except Refused:
        return None
    return rubric


def _cases(bench: Bench, version: RubricVersion) -> list[dict[str, Any]]:
    """The largest disagreements of a version on examples, one an answer, as the model is shown them."""
    found: dict[int, Disagreement] = {}
    for one in disagreements(bench, version, Wanted()):
        if one.item.split == Split.EXAMPLES and one.by.pk == version.pk:
            found.setdefault(one.item.answer_id, one)
    chosen = list(found.values())[:CASES]
    comments = comments_on([one.item for one in chosen])
    given = family_for(version.rubric).given
    inputs = {name for spec in given for name in (*spec.inputs, *spec.optional_inputs)}
    cases, length = list[dict[str, Any]](), 0
    for one in chosen:
        case = data_blocks(one.item.answer.question.read(), one.item.answer.read(), inputs) | {
            "metric": one.item.metric.name,
            "judge": {"value": one.given.value, "reason": one.given.reason},
            "experts": [value for _, value in one.item.ratings],
            "why": list(_comments(comments.get((one.item.answer_id, one.item.metric_id), ()))),
        }
        length += len(str(case))
        if length > LONGEST_CASES and cases:
            break
        cases.append(case)
    return cases


def _comments(rows: Iterable[Any]) -> Iterable[str]:
    return (row.comment for row in rows if row.comment)


def _ledger(search: Search, phase: int) -> Ledger:
    kept = SearchReply.objects.filter(attempt__search=search, attempt__phase=phase).order_by("pk")
    return Ledger(
        begin=lambda step: SearchCall.objects.create(search=search, phase=int(step)).pk,
        kept=lambda: ((str(phase), outcome, raw) for outcome, raw in kept.values_list("outcome", "raw")),
        replies=SearchReply,
    )
