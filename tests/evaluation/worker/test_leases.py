"""Leases tell who holds them: those of processes that are gone end at once, all others are left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from evaluation.models import WorkUnit
from evaluation.worker import leases, units
from tests.factories import make_draft_run, make_units

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="Linux only"),
    pytest.mark.both_databases,
]


def token_of(pid: int) -> uuid.UUID:
    """A token as the process of that number makes one."""
    mine = leases.new_token().bytes
    return uuid.UUID(bytes=mine[:8] + pid.to_bytes(4, "big") + mine[12:])


@pytest.fixture
def ended() -> int:
    """The number of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_token_names_its_process_and_no_two_are_the_same(ended: int) -> None:
    low, high = leases.local_token_range() or (uuid.UUID(int=0), uuid.UUID(int=0))
    tokens = [leases.new_token() for _ in range(100)]
    assert len(set(tokens)) == 100
    assert all(low <= token <= high and not leases.is_dead(token) for token in tokens)
    assert leases.is_dead(token_of(ended))
    assert not leases.is_dead(token_of(1))  # somebody else's process is there as well


def test_a_process_that_nobody_has_looked_after_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended and is still in the table
    assert leases.is_dead(token_of(process.pid))
    process.wait()


def test_where_processes_cannot_be_told_apart_a_token_names_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_host_mark", lambda: b"")
    assert leases.local_token_range() is None
    assert leases.new_token().version == 4


@pytest.mark.django_db
def test_only_leases_of_processes_that_are_gone_end(ended: int) -> None:
    run = make_draft_run()
    made = make_units(run, 4)
    later, before = (timezone.now() + timedelta(seconds=away) for away in (60, -1))
    dead, alive, elsewhere, old = made
    tokens = {dead: token_of(ended), alive: leases.new_token(), elsewhere: uuid.UUID("f" * 32), old: token_of(ended)}
    for unit, token in tokens.items():
        WorkUnit.objects.filter(pk=unit.pk).update(
            state="leased", tries=1, lease_token=token, lease_until=later if unit != old else before
        )
    assert units.expire_leases_of_dead_workers() == 1
    assert list(WorkUnit.objects.filter(units.lease_expired(), lease_until__lt=timezone.now()).order_by("pk")) == [
        dead,
        old,
    ]
    dead.refresh_from_db()
    assert (dead.state, dead.tries) == ("leased", 1)  # taken like any other lapsed one, and counted
    assert units.expire_leases_of_dead_workers() == 0
