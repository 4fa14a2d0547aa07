"""Looking at a criterion before it is activated: the prompt for an answer, and a judge's word on a few of them.

Nothing here writes scores. What a trial cost stands in the audit log.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.core.samples import Result
from evaluation.judges.clients import client_of, price_table
from evaluation.judging.baseline import unanswerable
from evaluation.judging.calls import Case, JudgeCall, JudgeReply, Talk
from evaluation.judging.catalogue import family_for
from evaluation.judging.criteria.spec import criterion_rubric
from evaluation.judging.gates import applicability
from evaluation.judging.pricing import cost_of
from evaluation.judging.prompt import hear, judge_call
from evaluation.judging.rubric import Rubric
from evaluation.models import Answer, AnswerSet, CriterionVersion, JudgeVersion, User
from evaluation.work.shares import ENDPOINT_BUSY, Busy, SharedPool

TRIED = 5  # answers of a trial
_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Tried:
    """An answer of a trial with what came of it."""

    answer: Answer
    result: Result


@dataclass(frozen=True, slots=True)
class Trial:
    """What a judge made of some answers. ``cost`` is in US dollars; ``None`` where a price or a count is unknown."""

    tried: tuple[Tried, ...]
    cost: float | None


def draft_rubric(version: CriterionVersion, language: str) -> Rubric:
    """The rubric the version would become, in the language or else in the one it is written in."""
    spec = version.read()
    written = "ko" if language.startswith("ko") else "en"
    wanted = written if written in spec.languages else spec.languages[0]
    return criterion_rubric(spec, wanted, version=version.version, metric_version=1)


def sample_answers(version: CriterionVersion, answer_set: AnswerSet, count: int = TRIED) -> list[Answer]:
    """Up to ``count`` answers to questions of the criterion's categories, spread over the set."""
    answers = Answer.objects.filter(answer_set=answer_set, status="ok").select_related("question")
    categories = version.read().categories
    if categories:
        answers = answers.filter(question__category__in=categories)
    keys = list(answers.order_by("question__position", "sample", "id").values_list("pk", flat=True))
    chosen = [keys[i * len(keys) // count] for i in range(count)] if len(keys) > count else keys
    found = answers.prefetch_related("contexts").in_bulk(chosen)
    return [found[key] for key in chosen]


def preview(rubric: Rubric, answer: Answer, judge: JudgeVersion | None = None) -> JudgeCall | Result:
    """The request for an answer as a judge would get it; where there would be none, the result that stands instead."""
    family = family_for(rubric)
    question, said = answer.question.read(), answer.read()
    parts = applicability(family.given, question, said)
    left_out = dict(parts.not_applicable)
    if judge is not None and judge.is_baseline:
        left_out |= unanswerable(rubric, parts.metrics)
    if left_out:
        return next(iter(left_out.values()))
    ask = Talk(family.judge(Case(rubric, question, said, parts.specs))).ask
    if ask is None:
        raise ValueError("a criterion asks once")
    model, parameters = (judge.model, judge.parameters) if judge else ("", {})
    return judge_call(rubric, question, said, ask, model=model, parameters=parameters)


def try_out(version: CriterionVersion, judge: JudgeVersion, answers: Sequence[Answer], *, by: User | None) -> Trial:
    """Judge these answers once each, at the same time and without a second try. Those that could not be sent within a
    short while, because the endpoint rests or others use it up, fail as ``endpoint_busy``.

    :raises Refused: ``origin_not_allowed``, ``key_missing``, ``jury_asks_nobody``.
    """
    if judge.is_jury:
        raise Refused("jury_asks_nobody")
    rubric = draft_rubric(version, judge.language)
    asked = {answer.pk: preview(rubric, answer, judge) for answer in answers}
    calls = {pk: call for pk, call in asked.items() if isinstance(call, JudgeCall)}
    replies = _replies(judge, calls)
    results: dict[int, Result] = {pk: one for pk, one in asked.items() if isinstance(one, Result)}
    for pk, call in calls.items():
        sent = pk in replies
        results[pk] = _read(rubric, call, replies[pk], expects=judge.expects) if sent else Result.failed(ENDPOINT_BUSY)
    cost = _cost(judge, replies.values())
    tokens = [reply.tokens_in for reply in replies.values()], [reply.tokens_out for reply in replies.values()]
    audit.record(
        by,
        "criterion.tried",
        version,
        judge=judge.pk,
        calls=len(replies),
        tokens_in=_total(tokens[0]),
        tokens_out=_total(tokens[1]),
        cost=cost,
    )
    return Trial(tuple(Tried(answer, results[answer.pk]) for answer in answers), cost)


def _replies(judge: JudgeVersion, calls: dict[int, JudgeCall]) -> dict[int, JudgeReply]:
    """The replies that came within what all workers share of the endpoint; who waits for a page is not kept long."""
    replies: dict[int, JudgeReply] = {}
    if not calls:
        return replies
    with SharedPool(client_of(judge), judge.endpoint, TRIED, project_id=judge.project_id) as pool:
        pool.submit(calls.items())
        while pool.in_hands:
            try:
                replies |= {int(str(pk)): reply for pk, reply in pool.collect(_WAIT_SECONDS)}
            except Busy:
                pool.withdraw()
    return replies


def _read(rubric: Rubric, call: JudgeCall, reply: JudgeReply, *, expects: bool) -> Result:
    family = family_for(rubric)
    talk = Talk(family.judge(Case(rubric, call.question, call.answer, family.given, expects=expects)))
    talk.hear(hear(reply, call.ask))
    (result,) = talk.results.values()
    return result


def _cost(judge: JudgeVersion, replies: Iterable[JudgeReply]) -> float | None:
    costs = [cost_of(judge.model, reply, table=price_table()) for reply in replies]
    return None if None in costs else math.fsum(float(cost) for cost in costs if cost is not None)


def _total(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)
