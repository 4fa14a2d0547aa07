"""After a restore: who held units holds them no more, and the calls that are paid again are told."""

from __future__ import annotations

import pytest

from evaluation.models import WorkUnit
from evaluation.worker import units
from evaluation.worker.backups import calls_to_repeat
from tests.factories import make_draft_run, make_units

pytestmark = pytest.mark.both_databases


@pytest.mark.django_db
def test_it_says_which_calls_are_paid_again_and_who_held_them_holds_them_no_more() -> None:
    run = make_draft_run()
    made = make_units(run, 3)
    assert calls_to_repeat() == (0, [(run.pk, "draft", 3)])
    type(run).objects.filter(pk=run.pk).update(state="running")
    units.claim(run.pk, [WorkUnit.Kind.ASK], 2)
    WorkUnit.objects.filter(pk=made[2].pk).update(state="done")
    assert calls_to_repeat() == (2, [(run.pk, "running", 2)])
    assert units.claim(run.pk, [WorkUnit.Kind.ASK], 2) == []
    assert units.expire_all_leases() == 2
    assert len(units.claim(run.pk, [WorkUnit.Kind.ASK], 2)) == 2
