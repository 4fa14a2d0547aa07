"""The life cycle of a unit of work: claims, fences, leases, tries and dependencies."""

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
    running_run = make_draft_run()
    Run.objects.filter(pk=running_run.pk).update(state=Run.State.RUNNING)
    return running_run


def expire_leases(*claimed: WorkUnit) -> None:
    WorkUnit.objects.filter(pk__in=[u.pk for u in claimed]).update(lease_until=Now() - timedelta(seconds=1))


def test_leased_unit_is_not_claimed_again(run: Run) -> None:
    make_units(run, 3)
    first_units = units.claim(run.pk, ASK, 2)
    second_units = units.claim(run.pk, ASK, 2)
    assert len(first_units) == 2
    assert len(second_units) == 1
    assert not {u.pk for u in first_units} & {u.pk for u in second_units}


def test_expired_unit_is_claimed_with_a_higher_fence_and_one_more_try(run: Run) -> None:
    make_units(run, 1)
    (first_claim,) = units.claim(run.pk, ASK, 1)
    expire_leases(first_claim)
    (second_claim,) = units.claim(run.pk, ASK, 1)
    assert (second_claim.fence, second_claim.tries) == (first_claim.fence + 1, 2)


def test_lost_claim_can_neither_end_nor_release_the_unit(run: Run) -> None:
    make_units(run, 1)
    (lost_claim,) = units.claim(run.pk, ASK, 1)
    expire_leases(lost_claim)
    (current_claim,) = units.claim(run.pk, ASK, 1)
    assert not units.end({lost_claim: ""})
    assert not units.end({lost_claim: "late"})
    assert not units.give_back(lost_claim)
    assert units.end({current_claim: ""})
    assert not units.end({current_claim: ""})


def test_unit_is_not_claimed_after_its_last_try(run: Run) -> None:
    make_units(run, 1)
    for tries in range(MAX_TRIES):
        (unit,) = units.claim(run.pk, ASK, 1, suspects=tries >= SUSPECT_TRIES)
        expire_leases(unit)
    assert units.claim(run.pk, ASK, 1) == units.claim(run.pk, ASK, 1, suspects=True) == []
    assert list(units.crash_looping()) == [unit]


def test_suspect_unit_is_claimed_separately(run: Run) -> None:
    make_units(run, 2)
    for _ in range(SUSPECT_TRIES):
        expire_leases(units.claim(run.pk, ASK, 1)[0])
    (fresh,) = units.claim(run.pk, ASK, 5)
    (suspect,) = units.claim(run.pk, ASK, 5, suspects=True)
    assert (fresh.tries, suspect.tries) == (1, SUSPECT_TRIES + 1)


def test_released_unit_does_not_count_as_crash_and_may_be_deferred(run: Run) -> None:
    make_units(run, 1)
    (unit,) = units.claim(run.pk, ASK, 1)
    assert units.give_back(unit, after_seconds=60)
    assert units.claim(run.pk, ASK, 1) == []
    WorkUnit.objects.update(not_before=Now() - timedelta(seconds=1))
    (reclaimed,) = units.claim(run.pk, ASK, 1)
    assert reclaimed.tries == 1


@pytest.mark.parametrize("state", [s for s in Run.State.values if s != Run.State.RUNNING])
def test_units_of_a_run_that_is_not_running_are_not_claimed(run: Run, state: str) -> None:
    make_units(run, 1)
    Run.objects.filter(pk=run.pk).update(state=state)
    assert units.claim(run.pk, ASK, 1) == []


def test_blocked_unit_opens_when_its_dependency_is_done(run: Run) -> None:
    dependency, blocked_unit = make_units(run, 2)
    WorkUnit.objects.filter(pk=blocked_unit.pk).update(needs=dependency, state=State.BLOCKED)
    (claim,) = units.claim(run.pk, ASK, 5)
    assert claim.pk == dependency.pk
    assert units.end({claim: ""})
    assert [u.pk for u in units.claim(run.pk, ASK, 5)] == [blocked_unit.pk]


def test_first_attempts_belong_to_the_claim(run: Run) -> None:
    make_units(run, 1, WorkUnit.Kind.JUDGE)
    (unit,) = units.claim(run.pk, [WorkUnit.Kind.JUDGE], 1)
    assert not Attempt.objects.exists()
    attempts = units.record_first_attempts([unit])
    attempt = Attempt.objects.get()
    assert attempts == {unit.pk: attempt.pk}
    assert (attempt.unit_id, attempt.fence, attempt.number) == (unit.pk, 1, 1)
    assert units.record_first_attempts([]) == {}


def test_unsent_attempt_costs_nothing(run: Run) -> None:
    make_units(run, 1, WorkUnit.Kind.JUDGE)
    (unit,) = units.claim(run.pk, [WorkUnit.Kind.JUDGE], 1)
    units.mark_unsent(units.record_first_attempts([unit]).values())
    reply = Attempt.objects.get().reply
    assert (reply.outcome, reply.cost) == ("not_sent", 0)


@pytest.mark.parametrize(
    "invalid_fields",
    [{"state": "failed", "reason": ""}, {"state": "skipped"}, {"state": "leased"}, {"state": "lost"}],
)
def test_invalid_state_is_refused_by_the_database(run: Run, invalid_fields: dict[str, str]) -> None:
    (unit,) = make_units(run, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        WorkUnit.objects.filter(pk=unit.pk).update(**invalid_fields)


def test_step_without_an_answer_cannot_be_planned_twice(run: Run) -> None:
    (unit,) = make_units(run, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        WorkUnit.objects.create(run=run, kind="ask", question=unit.question, key=unit.key, answer=None)
