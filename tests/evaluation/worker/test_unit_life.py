"""Property: for any order of worker actions, the result of each unit is written exactly once."""

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
from tests.examples import max_examples
from tests.factories import make_draft_run, make_units

pytestmark = pytest.mark.both_databases

ASK = [WorkUnit.Kind.ASK]


class UnitLife(RuleBasedStateMachine):
    """Workers claim, finish, fail, release or crash; leases expire; results are counted by unit."""

    def __init__(self) -> None:
        super().__init__()
        self.run = make_draft_run()
        Run.objects.filter(pk=self.run.pk).update(state=Run.State.RUNNING)
        make_units(self.run, 3)
        self.claimed_units: list[WorkUnit] = []
        self.result_counts: dict[int, int] = {}

    @rule(size=st.integers(1, 3), suspects=st.booleans())
    def claim(self, size: int, suspects: bool) -> None:
        self.claimed_units += units.claim(self.run.pk, ASK, size, suspects=suspects)

    @rule(pick=st.integers(0, 99))
    def finish(self, pick: int) -> None:
        if self.claimed_units and units.end({(unit := self.claimed_units.pop(pick % len(self.claimed_units))): ""}):
            self.result_counts[unit.pk] = self.result_counts.get(unit.pk, 0) + 1

    @rule(pick=st.integers(0, 99))
    def fail(self, pick: int) -> None:
        if self.claimed_units and units.end(
            {(unit := self.claimed_units.pop(pick % len(self.claimed_units))): "parse"}
        ):
            self.result_counts[unit.pk] = self.result_counts.get(unit.pk, 0) + 1

    @rule(pick=st.integers(0, 99))
    def give_back(self, pick: int) -> None:
        if self.claimed_units:
            units.give_back(self.claimed_units.pop(pick % len(self.claimed_units)))

    @rule()
    def expire_all_leases(self) -> None:
        WorkUnit.objects.filter(run=self.run, state=State.LEASED).update(lease_until=Now() - timedelta(seconds=1))

    @invariant()
    def nothing_is_written_twice(self) -> None:
        assert all(count == 1 for count in self.result_counts.values())

    @invariant()
    def rows_match_written_results(self) -> None:
        ended_units = WorkUnit.objects.filter(run=self.run, state__in=[State.DONE, State.FAILED])
        assert set(ended_units.values_list("pk", flat=True)) == set(self.result_counts)

    @invariant()
    def tries_never_pass_the_limit(self) -> None:
        assert not WorkUnit.objects.filter(run=self.run, tries__gt=MAX_TRIES).exists()


class UnitLifeTest(TestCase):
    """Runs the state machine, each example in its own transaction."""

    def test_each_unit_is_written_once_in_any_order_of_events(self) -> None:
        run_state_machine_as_test(
            UnitLife,
            settings=settings(
                max_examples=max_examples(40),
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            ),
        )
