"""Taking a look: who has it in hands, asking the judge as far as that is not done, and the end. A command works on one
itself; pages and REST ask for one, and workers take it in turns (:mod:`evaluation.worker.turns`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from evaluation.core.errors import Refused
from evaluation.models import JudgeVersion, RubricVersion, User
from evaluation.worker.dispatch import ring_for
from evaluation.worker.shares import ENDPOINT_BUSY
from evaluation.worker.turns import take_turn, turn_at
from review.calibration.accepting import (
    Answered,
    close_look,
    hold_out_items,
    keep_sealed,
    open_look,
    versions_of,
)
from review.calibration.anchors import keep_reference
from review.calibration.turns import Left, judge_left
from review.models import GoldSet, Look, LookResult, LookTurn, SealedVerdict
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
    """A worker's turn at a look."""
    look = Look.objects.select_related("gold_set", "judge_version__endpoint").get(pk=look_id)
    take_turn(LookTurn.objects.filter(look=look), lambda deadline: _worked(look, deadline), WORK, look_id)


def ring_waiting() -> None:
    """Wake workers for looks that nobody has in hands and that wait for no person."""
    waiting = Look.objects.filter(result=None).filter(Q(turn__until=None) | Q(turn__until__lt=Now()))
    for pk in waiting.filter(Q(turn=None) | Q(turn__reason__in=["", ENDPOINT_BUSY])).values_list("pk", flat=True):
        ring_for(WORK, pk)


def _worked(look: Look, deadline: float) -> Answered | None:
    """How the look ended; ``None`` where time ran out before, or somebody else is at it."""
    LookTurn.objects.get_or_create(look=look)
    with turn_at(LookTurn.objects.filter(look=look), deadline) as turn:
        if turn is None:
            return None
        items = hold_out_items(look.gold_set, look.candidate, look.since).values()
        held = {one.answer_id for several in items for one in several}
        if not judge_left(turn, look.judge_version, lambda: _left(look, held), partial(keep_sealed, look)):
            return None
        answered = close_look(look, LookTurn.objects.get(look=look).model)
        if answered.outcome == LookResult.Outcome.ACCEPTED:
            keep_reference(LookResult.objects.get(look=look))
        return answered


def _left(look: Look, held: set[int]) -> Iterator[Left]:
    for rubric in versions_of(look):
        for repeat in range(1, look.repeat + 1):
            rows = SealedVerdict.objects.filter(look=look, rubric_version=rubric, repeat=repeat)
            if missing := sorted(held - set(rows.values_list("answer_id", flat=True))):
                yield rubric, repeat, missing
