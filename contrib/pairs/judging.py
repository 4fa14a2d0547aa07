"""Judges compare the pairs of a set, each in both orders. The calls are made and written down as those of a run are,
so that a comparison that was stopped goes on where it stood and pays for nothing twice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from django.conf import settings
from django.db.models.functions import Now

from contrib.pairs.models import PairAttempt, PairJudging, PairPreflight, PairSet, Preference
from contrib.pairs.pairwise import FAMILY, baseline_preference, joined
from contrib.pairs.session import (
    KeptPairReplies,
    PairSession,
    Setting,
    Turn,
    Waiting,
    preference_row,
    question_of,
    waiting_in,
    with_attempts,
)
from evaluation.core.errors import Refused
from evaluation.judges.clients import client_of
from evaluation.judges.preflight import pin, pinned_columns
from evaluation.judges.shipping import shipped_rubric_row
from evaluation.judging.calls import Rung
from evaluation.judging.probing import Probed
from evaluation.judging.rubric import shipped_rubric
from evaluation.models import Endpoint, JudgeVersion
from evaluation.network.outcomes import Outcome
from evaluation.network.pool import CallPool
from evaluation.runs.progress import Spending, altogether, spending_before, spending_of
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.shares import Share

AT_ONCE = 32
TURN_LOST = "turn_lost"
LONGEST_NAP_SECONDS = 1.0  # while an endpoint rests: the turn has to be kept
Told = Callable[[int, int], None]


class Compared(NamedTuple):
    """What became of a comparison: ``done`` pairs have ended, ``left`` wait. ``reason`` is why a person is needed."""

    done: int
    left: int = 0
    reason: str = ""


def judge_pairs(
    found: PairSet, judge: JudgeVersion, *, use_cache: bool = True, told: Told = lambda done, of: None
) -> Compared:
    """Have the judge compare every pair it has no value for yet. ``told`` hears how far it is.

    :raises Refused: ``comparison_in_work`` while another process is at it, ``jury_compares_nothing``.
    """
    if judge.is_jury:
        raise Refused("jury_compares_nothing")
    waiting = waiting_in(found, judge, shipped_rubric_row(FAMILY, judge.language))
    if judge.endpoint is None:
        return _by_baseline(found, judge, waiting, told)
    return _by_calls(found, judge, judge.endpoint, waiting, told, use_cache=use_cache) if waiting else Compared(0)


def spending_on(found: PairSet, judge: JudgeVersion) -> Spending:
    """What the judge's calls about the pairs cost, with the few before them. Two queries."""
    before = PairPreflight.objects.filter(judging__pair_set=found, judge_version=judge)
    calls = PairAttempt.objects.filter(judging__pair_set=found, judging__judge_version=judge)
    return altogether([spending_of(calls), *map(spending_before, before)])


def spending_by_judge(found: PairSet) -> dict[str, Spending]:
    """The same of every judge that was called, by its name and version."""
    called = PairJudging.objects.filter(pair_set=found).select_related("judge_version").order_by("id")
    return {str(one.judge_version): spending_on(found, one.judge_version) for one in called}


def _by_baseline(found: PairSet, judge: JudgeVersion, waiting: Sequence[Waiting], told: Told) -> Compared:
    """No calls. Where it has nothing to say (a pair without a reference) it never will have, so that is said once."""
    rubric = shipped_rubric_row(FAMILY, judge.language)
    new = [one for one in waiting if one.round == 0]
    rows = []
    for one in new:
        question, a, b = question_of(one.pair), one.pair.text_a, one.pair.text_b
        orders = [baseline_preference(question, a, b), baseline_preference(question, b, a)]
        rows.append(preference_row(one.pair, judge, rubric, one.round, joined(*orders), orders))
    Preference.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
    told(len(new), len(new))
    return Compared(len(new))


def _by_calls(
    found: PairSet, judge: JudgeVersion, endpoint: Endpoint, waiting: Sequence[Waiting], told: Told, *, use_cache: bool
) -> Compared:
    rubric = shipped_rubric_row(FAMILY, judge.language)
    judging, _ = PairJudging.objects.get_or_create(pair_set=found, judge_version=judge, rubric_version=rubric)
    turn = Turn(judging)
    if not retry_on_db_error(turn.begin):
        raise Refused("comparison_in_work")
    try:
        return _in_turn(judging, turn, endpoint, with_attempts(judging, waiting), told, use_cache=use_cache)
    finally:
        retry_on_db_error(turn.end)


def _in_turn(
    judging: PairJudging, turn: Turn, endpoint: Endpoint, todo: dict[int, Waiting], told: Told, *, use_cache: bool
) -> Compared:
    of, pins = len(todo), _Pins(judging)
    rung = _pinned(judging, turn, endpoint, pins)
    if rung is None:
        return Compared(0, of, pins.reason or TURN_LOST)
    setting = Setting(judging.judge_version, shipped_rubric(FAMILY, judging.judge_version.language), rung)
    kept = KeptPairReplies(judging.pair_set.project_id, endpoint.pk) if use_cache else None
    reason = ""
    while todo and not reason:
        if not retry_on_db_error(turn.holds):
            return Compared(of - len(todo), len(todo), TURN_LOST)
        share = Share(endpoint, None, AT_ONCE, project_id=judging.pair_set.project_id)
        try:
            with CallPool(client_of(judging.judge_version), retry_on_db_error(share.renew).allowance) as pool:
                session = PairSession(
                    judging=judging,
                    turn=turn,
                    setting=setting,
                    todo=todo,
                    pool=pool,
                    deadline=float("inf"),
                    lease_seconds=settings.CONCORD_LEASE_SECONDS,
                    kept=kept,
                    share=share,
                )
                session.tick = lambda: told(of - len(todo) - session.in_hands, of)  # noqa: B023 -- called within
                session.work()
        finally:
            retry_on_db_error(share.leave)
        reason = session.reason
        told(of - len(todo), of)
        if todo and not reason:
            due = min(one.due for one in todo.values()) - time.monotonic()
            _rest(turn, max(due, retry_on_db_error(partial(_rest_of, endpoint))))
    return Compared(of - len(todo), len(todo), reason)


def _pinned(judging: PairJudging, turn: Turn, endpoint: Endpoint, pins: _Pins) -> Rung | None:
    """How the judge is asked, for the whole comparison; ``None`` where it cannot be, or the turn was lost."""

    def alive() -> None:
        retry_on_db_error(turn.holds)

    while (rung := retry_on_db_error(pins.rung)) is None and not pins.reason and retry_on_db_error(turn.holds):
        if not pin(judging.judge_version, pins, float("inf"), random.Random(), alive) and not pins.reason:
            _rest(turn, max(pins.wait, retry_on_db_error(partial(_rest_of, endpoint))))
    return rung


def _rest(turn: Turn, seconds: float) -> None:
    """Wait so long with the turn in hands."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and retry_on_db_error(turn.holds):
        time.sleep(min(left, LONGEST_NAP_SECONDS))


def _rest_of(endpoint: Endpoint) -> float:
    """Seconds until the endpoint may be called again."""
    until, now = Endpoint.objects.annotate(now=Now()).values_list("cooldown_until", "now").get(pk=endpoint.pk)
    return (until - now).total_seconds() if until else 0.0


@dataclass
class _Pins:
    """A judge's rows in a comparison. ``wait`` is how many seconds the judge wants to be left alone; ``reason`` why a
    person is needed."""

    judging: PairJudging
    wait: float = 0.0
    reason: str = ""
    run_id: None = None
    _tries: int = 0

    def rung(self) -> Rung | None:
        pinned = PairPreflight.objects.filter(judging=self.judging, outcome=Outcome.OK).values_list("rung", flat=True)
        return next(map(Rung, pinned), None)

    def tries(self) -> int:
        return self._tries

    def keep(self, found: Probed, wait: float | None) -> None:
        self._tries, self.wait = self._tries + 1, wait or 0.0
        row = PairPreflight(judging=self.judging, **pinned_columns(self.judging.judge_version, found, wait))
        PairPreflight.objects.bulk_create([row], ignore_conflicts=found.outcome == Outcome.OK)

    def stop(self, reason: str) -> None:
        self.reason = reason
