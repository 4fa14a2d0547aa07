"""The life of a unit of work: claims, fences, leases, tries, and what waits for what."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluation.models import Attempt, Run, WorkUnit
from evaluation.worker import units
from evaluation.worker.units import MAX_TRIES, SUSPECT_TRIES, State
from tests.factories import make_draft_run, make_units

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
ASK = [WorkUnit.Kind.ASK]


@pytest.fixture
def run() -> Run:
    made = make_draft_run()
    Run.objects.filter(pk=made.pk).update(state=Run.State.RUNNING)
    return made


def lapse(*claimed: WorkUnit) -> None:
    WorkUnit.objects.filter(pk__in=[u.pk for u in claimed]).update(lease_until=Now() - timedelta(seconds=1))


def test_a_claimed_unit_is_not_claimed_again_while_its_lease_holds(run: Run) -> None:
    make_units(run, 3)
    first = units.claim(run.pk, ASK, 2)
    second = units.claim(run.pk, ASK, 2)
    assert len(first) == 2
    assert len(second) == 1
    assert not {u.pk for u in first} & {u.pk for u in second}


def test_a_lapsed_unit_is_claimed_again_with_a_higher_fence_and_one_more_try(run: Run) -> None:
    make_units(run, 1)
    (first,) = units.claim(run.pk, ASK, 1)
    lapse(first)
    (second,) = units.claim(run.pk, ASK, 1)
    assert (second.fence, second.tries) == (first.fence + 1, 2)


def test_who_lost_the_claim_can_neither_finish_nor_fail_nor_give_back(run: Run) -> None:
    make_units(run, 1)
    (zombie,) = units.claim(run.pk, ASK, 1)
    lapse(zombie)
    (holder,) = units.claim(run.pk, ASK, 1)
    assert not units.end({zombie: ""})
    assert not units.end({zombie: "late"})
    assert not units.give_back(zombie)
    assert units.end({holder: ""})
    assert not units.end({holder: ""})


def test_a_unit_that_never_ends_is_no_longer_claimed_after_its_last_try(run: Run) -> None:
    make_units(run, 1)
    for tries in range(MAX_TRIES):
        (unit,) = units.claim(run.pk, ASK, 1, suspects=tries >= SUSPECT_TRIES)
        lapse(unit)
    assert units.claim(run.pk, ASK, 1) == units.claim(run.pk, ASK, 1, suspects=True) == []
    assert list(units.crash_looping()) == [unit]


def test_a_unit_whose_claims_did_not_end_is_claimed_apart_from_the_others(run: Run) -> None:
    make_units(run, 2)
    for _ in range(SUSPECT_TRIES):
        lapse(units.claim(run.pk, ASK, 1)[0])
    (fresh,) = units.claim(run.pk, ASK, 5)
    (suspect,) = units.claim(run.pk, ASK, 5, suspects=True)
    assert (fresh.tries, suspect.tries) == (1, SUSPECT_TRIES + 1)


def test_giving_back_keeps_a_unit_out_of_the_crash_count_and_may_defer_it(run: Run) -> None:
    make_units(run, 1)
    (unit,) = units.claim(run.pk, ASK, 1)
    assert units.give_back(unit, after_seconds=60)
    assert units.claim(run.pk, ASK, 1) == []
    WorkUnit.objects.update(not_before=Now() - timedelta(seconds=1))
    (again,) = units.claim(run.pk, ASK, 1)
    assert again.tries == 1


@pytest.mark.parametrize("state", [s for s in Run.State.values if s != Run.State.RUNNING])
def test_units_of_a_run_that_does_not_run_are_not_claimed(run: Run, state: str) -> None:
    make_units(run, 1)
    Run.objects.filter(pk=run.pk).update(state=state)
    assert units.claim(run.pk, ASK, 1) == []


def test_a_blocked_unit_opens_when_the_one_it_needs_is_done(run: Run) -> None:
    first, second = make_units(run, 2)
    WorkUnit.objects.filter(pk=second.pk).update(needs=first, state=State.BLOCKED)
    (claimed,) = units.claim(run.pk, ASK, 5)
    assert claimed.pk == first.pk
    assert units.end({claimed: ""})
    assert [u.pk for u in units.claim(run.pk, ASK, 5)] == [second.pk]


def test_the_first_attempt_of_a_judge_unit_is_written_with_its_claim(run: Run) -> None:
    make_units(run, 1, WorkUnit.Kind.JUDGE)
    (unit,) = units.claim(run.pk, [WorkUnit.Kind.JUDGE], 1)
    attempt = Attempt.objects.get()
    assert (attempt.unit_id, attempt.fence, attempt.number) == (unit.pk, 1, 1)


def test_an_attempt_that_was_never_sent_is_said_to_have_cost_nothing(run: Run) -> None:
    make_units(run, 1, WorkUnit.Kind.JUDGE)
    (unit,) = units.claim(run.pk, [WorkUnit.Kind.JUDGE], 1)
    units.mark_unsent(units.first_attempts([unit]).values())
    reply = Attempt.objects.get().reply
    assert (reply.outcome, reply.cost) == ("not_sent", 0)


@pytest.mark.parametrize(
    "broken",
    [{"state": "failed", "reason": ""}, {"state": "skipped"}, {"state": "leased"}, {"state": "lost"}],
)
def test_the_database_refuses_states_that_make_no_sense(run: Run, broken: dict[str, str]) -> None:
    (unit,) = make_units(run, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        WorkUnit.objects.filter(pk=unit.pk).update(**broken)


def test_the_same_step_cannot_be_planned_twice_although_it_has_no_answer_yet(run: Run) -> None:
    (unit,) = make_units(run, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        WorkUnit.objects.create(run=run, kind="ask", question=unit.question, key=unit.key, answer=None)
