"""Taking a look: who has it in hands, asking the judge as far as that is not done, and the end. A command works on one
itself; pages and REST ask for one, and workers take it in turns of one task's time. A turn that is lost to a crash is
taken again once its lease is over, and nothing that was heard is asked twice."""

from __future__ import annotations

import time
from collections.abc import Iterator

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from evaluation.core.errors import Refused
from evaluation.models import Answer, JudgeVersion, RubricVersion, User
from evaluation.scoring.aside import judged_aside, reach
from evaluation.work.dispatch import ring_for
from evaluation.work.shares import ENDPOINT_BUSY
from review.calibration.accepting import (
    Answered,
    close_look,
    hold_out_items,
    keep_sealed,
    open_look,
    versions_of,
)
from review.calibration.turns import TurnInHands, keep_model, turn_at
from review.models import GoldSet, Look, LookTurn, SealedVerdict
from review.statistics.acceptance import Claim

WORK = "review.calibration.looking.work_on"


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
    look = open_look(gold_set, judge, candidate, by=by, claim=claim, repeat=repeat, since=since, beside=beside)
    told = _worked(look, deadline=float("inf"))
    if told is None:
        raise Refused("look_in_hands", look=str(look))
    return told


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
    LookTurn.objects.filter(look=look).update(reason="")
    ring_for(WORK, look.pk)
    return look


def work_on(look_id: int) -> None:
    """A worker's turn: one task's time, then the next. Why it cannot go on is kept with the look."""
    look = Look.objects.select_related("gold_set", "judge_version__endpoint").get(pk=look_id)
    try:
        done = _worked(look, deadline=time.monotonic() + settings.CONCORD_BUDGET_SECONDS)
    except Refused as refused:
        reason = str(refused.params.get("reason", refused.code))
        LookTurn.objects.filter(look=look).update(reason=reason[:100])
        return
    if done is None and LookTurn.objects.filter(look=look, token=None).exists():
        ring_for(WORK, look_id)


def ring_waiting() -> None:
    """Wake workers for looks that nobody has in hands and that wait for no person."""
    waiting = Look.objects.filter(result=None).filter(Q(turn__until=None) | Q(turn__until__lt=Now()))
    for pk in waiting.filter(Q(turn=None) | Q(turn__reason__in=["", ENDPOINT_BUSY])).values_list("pk", flat=True):
        ring_for(WORK, pk)


def _worked(look: Look, deadline: float) -> Answered | None:
    """How the look ended; ``None`` where time ran out before, or somebody else is at it."""
    LookTurn.objects.get_or_create(look=look)
    with turn_at(LookTurn.objects.filter(look=look), deadline) as turn:
        if turn is None or not _ask(look, turn):
            return None
        return close_look(look, LookTurn.objects.get(look=look).model)


def _ask(look: Look, turn: TurnInHands) -> bool:
    """Have the hold-out judged by every version, as far as it is not yet; whether it is now."""
    items = hold_out_items(look.gold_set, look.candidate, look.since).values()
    held = {one.answer_id for several in items for one in several}
    answers = Answer.objects.filter(pk__in=held).select_related("question").prefetch_related("contexts").in_bulk()
    left = list(_left(look, set(answers)))
    if not left:
        return True
    judge = look.judge_version
    found = reach(judge)
    keep_model(turn.rows, found.model)
    for rubric, repeat, missing in left:
        several = [answers[pk] for pk in missing]
        for answer, results in judged_aside(judge, rubric.rubric, several, rung=found.rung, more=turn.more):
            keep_sealed(look, rubric, answer, repeat, results)
    return not any(_left(look, set(answers)))


def _left(look: Look, held: set[int]) -> Iterator[tuple[RubricVersion, int, list[int]]]:
    """What is still to be judged: by which version, the how-manieth time, which answers."""
    for rubric in versions_of(look):
        for repeat in range(1, look.repeat + 1):
            rows = SealedVerdict.objects.filter(look=look, rubric_version=rubric, repeat=repeat)
            if missing := sorted(held - set(rows.values_list("answer_id", flat=True))):
                yield rubric, repeat, missing
