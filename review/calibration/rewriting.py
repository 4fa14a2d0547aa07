"""The calls of a search by which a model rewrites a rubric: each is written down before it is made, and what it gave
and cost after it; a reply that is there is not asked for again."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.db.models import Avg, Count, Q, Sum
from django.utils import timezone

from evaluation.core.errors import Refused
from evaluation.judges.clients import client_of
from evaluation.judging.calls import Heard, JudgeCall, JudgeReply, Rung
from evaluation.judging.catalogue import family_for
from evaluation.judging.drafting import check_draft
from evaluation.judging.prompt import data_blocks, hear, repaired, request_hash
from evaluation.judging.rewriting import rewriting_call, rewritten
from evaluation.judging.rubric import Rubric
from evaluation.models import RubricVersion, Run
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import Defer, NeedsPerson, Retry, decide
from evaluation.runs.draining import rung_of
from evaluation.scoring.aside import PATIENCE_SECONDS
from evaluation.scoring.replies import insert_replies, reply_row
from evaluation.work.shares import ENDPOINT_BUSY, Busy, SharedPool
from review.calibration.workbench import Bench, Disagreement, Wanted, comments_on, disagreements
from review.models import Search, SearchCall, SearchReply
from review.statistics.gold_split import Split

CASES = 8
LONGEST_CASES = 24_000  # characters of all cases
MOST_CALLS = 3  # of a phase
_WAIT_SECONDS = 0.5


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
    parts = _parts(search, phase, call, rung)
    if parts is None:
        return None
    rubric = rewritten(version.rubric, parts)
    try:
        check_draft(rubric)
    except Refused:
        return None
    return rubric


def spent_on_calls(search: Search) -> Decimal:
    """US dollars, a call whose cost is unknown at the mean of the others."""
    unknown = Q(reply=None) | Q(reply__cost=None)
    told = search.calls.aggregate(known=Sum("reply__cost"), mean=Avg("reply__cost"), out=Count("id", filter=unknown))
    return Decimal(told["known"] or 0) + Decimal(told["mean"] or 0) * int(told["out"])


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


def _parts(search: Search, phase: int, call: JudgeCall, rung: Rung) -> dict[str, Any] | None:
    """What the reply holds, out of the ledger or asked for now."""
    kept = SearchReply.objects.filter(attempt__search=search, attempt__phase=phase).order_by("pk")
    outcomes = [Outcome(row.outcome) for row in kept]
    for row in kept:
        if row.outcome == Outcome.OK:
            return dict(hear(JudgeReply(Outcome.OK, raw=row.raw), call.ask, rung).parts)
    while len(outcomes) < MOST_CALLS:
        heard, reply = _asked(search, phase, call, rung)
        if heard.outcome is Outcome.OK:
            return dict(heard.parts)
        decision = decide(heard.outcome, len(outcomes) + 1, reply.retry_after, random.Random(), earlier=outcomes)
        outcomes.append(heard.outcome)
        match decision:
            case NeedsPerson(reason):
                raise Refused("judge_away", reason=reason)
            case Defer():
                raise Refused("judge_away", reason=ENDPOINT_BUSY)
            case Retry(seconds):
                time.sleep(seconds)
            case _:
                return None
        if heard.outcome in {Outcome.PARSE, Outcome.TRUNCATED}:
            call = repaired(call, heard.outcome)
    return None


def _asked(search: Search, phase: int, call: JudgeCall, rung: Rung) -> tuple[Heard, JudgeReply]:
    """One call, written down before and after."""
    judge = search.judge_version
    attempt = SearchCall.objects.create(search=search, phase=phase)
    with SharedPool(
        client_of(judge), judge.endpoint, 1, project_id=judge.project_id, patience=PATIENCE_SECONDS
    ) as pool:
        pool.submit([(attempt.pk, call)])
        replies: list[JudgeReply] = []
        while not replies:
            try:
                replies = [reply for _, reply in pool.collect(_WAIT_SECONDS)]
            except Busy as busy:
                pool.withdraw()
                _keep(attempt, call, JudgeReply(Outcome.NOT_SENT), Heard(Outcome.NOT_SENT, {}))
                raise Refused("judge_away", reason=ENDPOINT_BUSY) from busy
    heard = hear(replies[0], call.ask, rung)
    _keep(attempt, call, replies[0], heard)
    return heard, replies[0]


def _keep(attempt: SearchCall, call: JudgeCall, reply: JudgeReply, heard: Heard) -> None:
    row = reply_row(attempt.pk, request_hash(call), reply, heard, model=call.model, at=timezone.now())
    insert_replies(SearchReply, [row])
