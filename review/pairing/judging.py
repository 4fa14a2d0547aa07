"""Judges compare the pairs of a set: each pair in both orders, stored as it comes, so that a stopped comparison goes
on where it stood and pays for nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from evaluation.canonical import content_hash
from evaluation.judges.clients import client_of
from evaluation.judges.models import JudgeVersion, RubricVersion
from evaluation.judges.prices import price_table
from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.pacing import Allowance
from evaluation.judging.pairwise import FAMILY, baseline_preference, joined, pairwise_ask, read_preference
from evaluation.judging.pool import CallPool
from evaluation.judging.pricing import cost_of
from evaluation.judging.prompt import judge_call
from evaluation.judging.reading import hear
from evaluation.judging.rubric import Rubric, shipped_rubric
from evaluation.samples import AnswerSpec, QuestionSpec, Result
from evaluation.shipping import shipped_rubric_row
from review.models.pairs import Pair, PairSet, Preference

AT_ONCE = 32
_WAIT_SECONDS = 1.0
_Key = tuple[int, bool]  # pair, whether B is shown first


def judge_pairs(
    found: PairSet, judge: JudgeVersion, *, told: Callable[[int, int], None] = lambda done, of: None
) -> int:
    """Have the judge compare every pair it has no value for yet; how many that were. ``told`` hears how far it is.

    :raises Refused: ``origin_not_allowed``, ``key_missing``, ``key_unreadable``.
    """
    rubric = shipped_rubric(FAMILY, judge.language)
    row = shipped_rubric_row(FAMILY, judge.language)
    rows = Preference.objects.filter(pair__pair_set=found, judge_version=judge, rubric_version=row)
    valued = set(rows.filter(value__isnull=False).values_list("pair_id", flat=True))
    rounds = dict(rows.order_by("round").values_list("pair_id", "round"))
    pairs = [pair for pair in found.pairs.order_by("position") if pair.pk not in valued]
    verdicts = _by_baseline(pairs) if judge.is_baseline else _by_calls(judge, rubric, pairs)
    for done, (pair, forward, backward, detail) in enumerate(verdicts, start=1):
        _store(pair, judge, row, forward, backward, detail, rounds.get(pair.pk, -1) + 1)
        told(done, len(pairs))
    return len(pairs)


_Verdict = tuple[Pair, Result, Result, dict[str, Any]]


def _by_baseline(pairs: Sequence[Pair]) -> Iterator[_Verdict]:
    for pair in pairs:
        question = _question(pair)
        forward = baseline_preference(question, pair.text_a, pair.text_b)
        yield pair, forward, baseline_preference(question, pair.text_b, pair.text_a), {}


def _by_calls(judge: JudgeVersion, rubric: Rubric, pairs: Sequence[Pair]) -> Iterator[_Verdict]:
    """Both calls of a pair at the same time, pairs as their second reply comes."""
    by_key = {pair.pk: pair for pair in pairs}
    calls = {(pair.pk, swapped): _call(judge, rubric, pair, swapped) for pair in pairs for swapped in (False, True)}
    limit = judge.endpoint.max_concurrency if judge.endpoint else AT_ONCE
    keys: dict[Hashable, _Key] = {f"{pk} {swapped}": (pk, swapped) for pk, swapped in calls}
    replies: dict[_Key, JudgeReply] = {}
    with CallPool(client_of(judge), Allowance(min(limit, AT_ONCE))) as pool:
        pool.submit((f"{pk} {swapped}", call) for (pk, swapped), call in calls.items())
        while pool.in_hands:
            for key, reply in pool.collect(_WAIT_SECONDS):
                pk, _ = named = keys[key]
                replies[named] = reply
                both = (pk, False), (pk, True)
                if all(each in replies for each in both):
                    heard = [read_preference(rubric, hear(replies[each], calls[each].ask)) for each in both]
                    yield by_key[pk], heard[0], heard[1], _detail(judge, [replies[each] for each in both])


def _call(judge: JudgeVersion, rubric: Rubric, pair: Pair, swapped: bool) -> JudgeCall:
    first, second = (pair.text_b, pair.text_a) if swapped else (pair.text_a, pair.text_b)
    ask = pairwise_ask(rubric, pair.question_text, pair.reference, first, second)
    return judge_call(rubric, _question(pair), AnswerSpec(first), ask, model=judge.model, parameters=judge.params)


def _question(pair: Pair) -> QuestionSpec:
    references = (pair.reference,) if pair.reference else ()
    return QuestionSpec(id=pair.external_id, category="", text=pair.question_text, references=references)


def _detail(judge: JudgeVersion, replies: Sequence[JudgeReply]) -> dict[str, Any]:
    """Raw replies, tokens and cost of both calls; what is unknown is null."""
    costs = [cost_of(judge.model, reply, table=price_table()) for reply in replies]
    known = [cost for cost in costs if cost is not None]
    return {
        "raw": [reply.raw for reply in replies],
        "outcomes": [str(reply.outcome) for reply in replies],
        "models": [reply.model_returned for reply in replies],
        "tokens_in": [reply.tokens_in for reply in replies],
        "tokens_out": [reply.tokens_out for reply in replies],
        "cost": str(sum(known, Decimal(0))) if len(known) == len(costs) else None,
    }


def _store(
    pair: Pair,
    judge: JudgeVersion,
    rubric: RubricVersion,
    forward: Result,
    backward: Result,
    detail: dict[str, Any],
    number: int,
) -> None:
    both = joined(forward, backward)
    said = {"forward": forward.value, "backward": backward.value, "orders_disagree": both.disagree}
    Preference.objects.create(
        pair=pair,
        by_judge=True,
        judge_version=judge,
        rubric_version=rubric,
        author=str(judge),
        value=both.value,
        failure=both.failure,
        reason=forward.reason,
        detail=said | detail,
        origin=content_hash(["preference", pair.pk, "preference", judge.pk, rubric.pk]),
        round=number,
    )
