"""Property: whatever workers do, in whatever order, each unit's result is written exactly once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from evaluation.models import Run, WorkUnit
from evaluation.worker import units
from evaluation.worker.units import MAX_TRIES, State
from tests.examples import examples
from tests.factories import make_draft_run, make_units

pytestmark = pytest.mark.both_databases

ASK = [WorkUnit.Kind.ASK]


class UnitLife(RuleBasedStateMachine):
    """Workers claim, finish, fail, give back or die; leases lapse; finished work is recorded per fence."""

    def __init__(self) -> None:
        super().__init__()
        self.run = make_draft_run()
        Run.objects.filter(pk=self.run.pk).update(state=Run.State.RUNNING)
        make_units(self.run, 3)
        self.held: list[WorkUnit] = []
        self.written: dict[int, int] = {}

    @rule(size=st.integers(1, 3), suspects=st.booleans())
    def claim(self, size: int, suspects: bool) -> None:
        self.held += units.claim(self.run.pk, ASK, size, suspects=suspects)

    @rule(pick=st.integers(0, 99))
    def finish(self, pick: int) -> None:
        if self.held and units.end({(unit := self.held.pop(pick % len(self.held))): ""}):
            self.written[unit.pk] = self.written.get(unit.pk, 0) + 1

    @rule(pick=st.integers(0, 99))
    def fail(self, pick: int) -> None:
        if self.held and units.end({(unit := self.held.pop(pick % len(self.held))): "parse"}):
            self.written[unit.pk] = self.written.get(unit.pk, 0) + 1

    @rule(pick=st.integers(0, 99))
    def give_back(self, pick: int) -> None:
        if self.held:
            units.give_back(self.held.pop(pick % len(self.held)))

    @rule()
    def all_leases_lapse(self) -> None:
        WorkUnit.objects.filter(run=self.run, state=State.LEASED).update(lease_until=Now() - timedelta(seconds=1))

    @invariant()
    def nothing_is_written_twice(self) -> None:
        assert all(count == 1 for count in self.written.values())

    @invariant()
    def rows_tell_what_was_written(self) -> None:
        ended = WorkUnit.objects.filter(run=self.run, state__in=[State.DONE, State.FAILED])
        assert set(ended.values_list("pk", flat=True)) == set(self.written)

    @invariant()
    def tries_never_pass_the_limit(self) -> None:
        assert not WorkUnit.objects.filter(run=self.run, tries__gt=MAX_TRIES).exists()


class UnitLifeTest(TestCase):
    """Runs the machine, each example in a transaction of its own."""

    def test_each_unit_is_written_once_in_any_order_of_events(self) -> None:
        run_state_machine_as_test(
            UnitLife,
            settings=settings(
                max_examples=examples(40),
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            ),
        )
