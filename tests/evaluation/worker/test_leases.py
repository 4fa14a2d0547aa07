"""Leases identify their process: leases of dead processes end at once, and all others are kept."""

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
    """A lease token of the process with this id."""
    own_token = leases.new_token().bytes
    return uuid.UUID(bytes=own_token[:8] + pid.to_bytes(4, "big") + own_token[12:])


@pytest.fixture
def dead_pid() -> int:
    """Id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_tokens_are_unique_and_identify_their_process(dead_pid: int) -> None:
    low, high = leases.local_token_range() or (uuid.UUID(int=0), uuid.UUID(int=0))
    tokens = [leases.new_token() for _ in range(100)]
    assert len(set(tokens)) == 100
    assert all(low <= token <= high and not leases.is_dead(token) for token in tokens)
    assert leases.is_dead(token_of(dead_pid))
    assert not leases.is_dead(token_of(1))  # somebody else's process is there as well


def test_zombie_process_counts_as_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended and is still in the table
    assert leases.is_dead(token_of(process.pid))
    process.wait()


def test_token_is_random_if_processes_cannot_be_identified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_host_hash", lambda: b"")
    assert leases.local_token_range() is None
    assert leases.new_token().version == 4


@pytest.mark.django_db
def test_only_leases_of_dead_processes_end(dead_pid: int) -> None:
    run = make_draft_run()
    work_units = make_units(run, 4)
    future, past = (timezone.now() + timedelta(seconds=seconds) for seconds in (60, -1))
    dead_unit, live_unit, remote_unit, expired_unit = work_units
    tokens = {
        dead_unit: token_of(dead_pid),
        live_unit: leases.new_token(),
        remote_unit: uuid.UUID("f" * 32),
        expired_unit: token_of(dead_pid),
    }
    for unit, token in tokens.items():
        WorkUnit.objects.filter(pk=unit.pk).update(
            state="leased", tries=1, lease_token=token, lease_until=future if unit != expired_unit else past
        )
    assert units.expire_leases_of_dead_workers() == 1
    assert list(WorkUnit.objects.filter(units.lease_expired(), lease_until__lt=timezone.now()).order_by("pk")) == [
        dead_unit,
        expired_unit,
    ]
    dead_unit.refresh_from_db()
    assert (dead_unit.state, dead_unit.tries) == ("leased", 1)  # taken like any other lapsed one, and counted
    assert units.expire_leases_of_dead_workers() == 0
