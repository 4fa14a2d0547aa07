"""After a restore, leases are expired and repeated calls are counted."""

from __future__ import annotations

import pytest

from evaluation.models import WorkUnit
from evaluation.worker import units
from evaluation.worker.backups import calls_to_repeat
from tests.factories import make_draft_run, make_units

pytestmark = pytest.mark.both_databases


@pytest.mark.django_db
def test_leased_units_are_counted_and_released() -> None:
    run = make_draft_run()
    work_units = make_units(run, 3)
    assert calls_to_repeat() == (0, [(run.pk, "draft", 3)])
    type(run).objects.filter(pk=run.pk).update(state="running")
    units.claim(run.pk, [WorkUnit.Kind.ASK], 2)
    WorkUnit.objects.filter(pk=work_units[2].pk).update(state="done")
    assert calls_to_repeat() == (2, [(run.pk, "running", 2)])
    assert units.claim(run.pk, [WorkUnit.Kind.ASK], 2) == []
    assert units.expire_all_leases() == 2
    assert len(units.claim(run.pk, [WorkUnit.Kind.ASK], 2)) == 2
