"""Taking a look: who has it in hands, asking the judge as far as that is not done, and the end. A command works on one
itself; pages and REST ask for one, which is a job of workers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from django.db import transaction

from evaluation.core.errors import Refused
from evaluation.models import JudgeVersion, RubricVersion, User
from evaluation.worker.jobs import AT_ONCE, Lease, job
from review.calibration.accepting import (
    Answered,
    close_look,
    hold_out_items,
    keep_sealed,
    open_look,
    versions_of,
)
from review.calibration.anchors import keep_reference
from review.calibration.turns import Left, judge_left, model_of
from review.models import GoldSet, Look, LookResult, SealedVerdict
from review.statistics.acceptance import Claim


def accept(
    gold_set: GoldSet,
    judge: JudgeVersion,
    candidate: RubricVersion,
    *,
    by: User | None,
    claim: Claim = Claim.BETTER,
    repeat: int = 1,
    since: int = 1,
    beside: JudgeVersion | None = None,
) -> Answered:
    """Take a look here and now, or go on with the same one that was interrupted.

    :raises Refused: see :func:`open_look`; ``judge_away`` where the judge cannot be asked, which leaves the look open;
        ``look_in_hands`` where somebody is at it.
    """
    with transaction.atomic():
        look = open_look(gold_set, judge, candidate, by=by, claim=claim, repeat=repeat, since=since, beside=beside)
        take_look.add(look.pk)
    with take_look.claimed(look.pk) as lease:
        if lease is None or (answered := _judge_hold_out(look, lease)) is None:
            raise Refused("look_in_hands", look=str(look))
        lease.done = True
        return answered


@transaction.atomic
def ask_for_look(
    gold_set: GoldSet,
    judge: JudgeVersion,
    candidate: RubricVersion,
    *,
    by: User | None,
    claim: Claim = Claim.BETTER,
    repeat: int = 1,
    since: int = 1,
    beside: JudgeVersion | None = None,
) -> Look:
    """Have a worker take a look, or go on with the same one that stands still.

    :raises Refused: see :func:`open_look`.
    """
    look = open_look(gold_set, judge, candidate, by=by, claim=claim, repeat=repeat, since=since, beside=beside)
    take_look.enqueue(look.pk)
    return look


@job("look")
def take_look(look_id: int, lease: Lease) -> timedelta | None:
    """Judge the hold-out, and end the look."""
    look = Look.objects.select_related("gold_set", "judge_version__endpoint").get(pk=look_id)
    return AT_ONCE if _judge_hold_out(look, lease) is None else None


def _judge_hold_out(look: Look, lease: Lease) -> Answered | None:
    """How the look ended; ``None`` where time ran out before, or another worker has it."""
    items = hold_out_items(look.gold_set, look.candidate, look.since).values()
    held = {one.answer_id for several in items for one in several}
    if not judge_left(lease, look.judge_version, lambda: _left(look, held), partial(keep_sealed, look)):
        return None
    answered = close_look(look, model_of(lease))
    if answered.outcome == LookResult.Outcome.ACCEPTED:
        keep_reference(LookResult.objects.get(look=look))
    return answered


def _left(look: Look, held: set[int]) -> Iterator[Left]:
    for rubric in versions_of(look):
        for repeat in range(1, look.repeat + 1):
            rows = SealedVerdict.objects.filter(look=look, rubric_version=rubric, repeat=repeat)
            if missing := sorted(held - set(rows.values_list("answer_id", flat=True))):
                yield rubric, repeat, missing
