"""Logs of the queue: known errors are one line, unknown ones keep their traceback."""

from __future__ import annotations

import logging
from datetime import timedelta
from multiprocessing import Event, Queue

import pytest
from django.core.signing import BadSignature
from django.db import OperationalError
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.models import OrmQ
from django_q.pusher import pusher
from django_q.signing import SignedPackage

from config.logs import JsonLines


@pytest.mark.django_db
def test_task_of_another_key_is_one_line_of_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_q.conf.Conf.SECRET_KEY", "the key of yesterday" * 3)
    payload = SignedPackage.dumps({"id": "1", "name": "task", "func": "evaluation.tasks.beat", "args": (0,)})
    monkeypatch.undo()
    broker = ORM(list_key="concord")
    broker.enqueue(payload)
    OrmQ.objects.update(lock=timezone.now() - timedelta(seconds=1))
    last_task = Event()
    last_task.set()
    pusher(Queue(), last_task, broker)
    (record,) = caplog.records
    assert "SECRET_KEY" in record.getMessage()
    assert "Traceback" not in caplog.text
    assert not OrmQ.objects.exists()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OperationalError("database is locked"), "Failed to pull task: database is locked"),
        (BadSignature("no match"), "SECRET_KEY"),
    ],
)
def test_known_errors_lose_their_traceback(error: Exception, line: str, caplog: pytest.LogCaptureFixture) -> None:
    log_error(error)
    (record,) = caplog.records
    assert line in record.getMessage()
    assert "trace" not in JsonLines().format(record)


def test_unknown_errors_keep_their_traceback(caplog: pytest.LogCaptureFixture) -> None:
    log_error(ZeroDivisionError("a bug"))
    assert "Traceback" in caplog.text
    assert "Failed to pull task" in caplog.text


def log_error(error: Exception) -> None:
    try:
        raise error
    except Exception:
        logging.getLogger("django-q").exception("Failed to pull %s", "task")
