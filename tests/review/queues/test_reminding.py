"""Reminders: one for each number of hours while work is left; a failure is stored and retried."""

from __future__ import annotations

import smtplib
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluation.tasks import sweep_all
from review.models import Reminder, ReviewQueue
from review.queues.creation import close_queue
from review.queues.reassignment import ReminderCounts, remind_all
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _server(settings: Any) -> None:
    settings.CONCORD_MAIL = {"EMAIL_BACKEND": "anything"}
    settings.CONCORD_REMIND_HOURS = [24, 72]
    settings.CONCORD_SITE_URL = "https://concord.example/"


def queue_due_in(hours: float, **fields: object) -> ReviewQueue:
    run = make_scored_run(make_answer_set(make_question_set(specs=3)))
    queue = make_queue(run, deadline=timezone.now() + timedelta(hours=hours), **fields)
    for member in queue.members.select_related("reviewer"):
        member.reviewer.email = f"{member.reviewer.username}@example.org"
        member.reviewer.save()
    return queue


def test_reviewer_is_reminded_once_for_each_number_of_hours() -> None:
    queue = queue_due_in(71)
    assert remind_all() == ReminderCounts(sent=1)
    assert remind_all() == ReminderCounts()
    assert remind_all(timezone.now() + timedelta(hours=48)) == ReminderCounts(sent=1)
    assert remind_all(timezone.now() + timedelta(hours=49)) == ReminderCounts()
    assert list(Reminder.objects.order_by("pk").values_list("hours", "state")) == [(72, "sent"), (24, "sent")]
    (first, _) = mail.outbox
    assert "3 answers left" in first.body
    assert f"https://concord.example/review/{queue.pk}/" in first.body
    assert queue.name in first.subject


def test_no_reminder_is_sent_too_early_or_too_late() -> None:
    queue_due_in(73)
    queue_due_in(-1)
    assert remind_all() == ReminderCounts()


def test_late_first_check_sends_one_mail() -> None:
    queue_due_in(2)
    assert remind_all() == ReminderCounts(sent=1)
    assert remind_all() == ReminderCounts()


def test_no_reminder_without_open_items_or_for_a_closed_queue() -> None:
    done_queue = queue_due_in(2)
    done_queue.items.update(state="done")
    close_queue(queue_due_in(2), by=None)
    assert remind_all() == ReminderCounts()


def test_mail_is_in_the_readers_language() -> None:
    queue = queue_due_in(2)
    user = queue.members.get().reviewer
    user.language = "ko"
    user.save()
    remind_all()
    assert "년" in mail.outbox[0].body  # the deadline, as it is written in Korean


def test_failed_mail_keeps_the_reason_and_is_tried_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    queue_due_in(2)
    monkeypatch.setattr("django.core.mail.EmailMessage.send", _raise_disconnected)
    assert [remind_all() for _ in range(4)] == [ReminderCounts(failed=1)] * 3 + [ReminderCounts()]
    row = Reminder.objects.get()
    assert (row.state, row.tries) == ("failed", 3)
    assert "SMTPServerDisconnected" in row.problem


def _raise_disconnected(*_: object) -> None:
    raise smtplib.SMTPServerDisconnected("gone")


@pytest.mark.parametrize("address", ["kim@example.org\nBcc: all@example.org", "kim@", "김@example.org\r", "a b@c d"])
def test_invalid_address_does_not_keep_mails_from_others(address: str) -> None:
    queue = queue_due_in(2, reviewers=2)
    first, second = (member.reviewer for member in queue.members.order_by("pk"))
    type(first).objects.filter(pk=first.pk).update(email=address)
    counts = remind_all()
    assert counts.sent + counts.failed == 2
    assert [message.to for message in mail.outbox if second.email in message.to] == [[second.email]]
    if "\n" in address:
        assert "BadHeaderError" in Reminder.objects.get(reviewer=first).problem


def test_reviewer_without_an_address_is_a_named_failure() -> None:
    queue = queue_due_in(2)
    queue.members.get().reviewer.__class__.objects.update(email="")
    assert remind_all() == ReminderCounts(failed=1)
    assert Reminder.objects.get().problem == "no_address"


def test_reminder_of_a_dead_sender_is_retried_after_ten_minutes() -> None:
    queue = queue_due_in(2)
    row = Reminder.objects.create(queue=queue, reviewer=queue.members.get().reviewer, deadline=queue.deadline, hours=24)
    assert remind_all() == ReminderCounts()
    Reminder.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(minutes=11))
    assert remind_all() == ReminderCounts(sent=1)


def test_moved_deadline_is_reminded_again() -> None:
    queue = queue_due_in(2)
    remind_all()
    ReviewQueue.objects.filter(pk=queue.pk).update(deadline=timezone.now() + timedelta(hours=20))
    assert remind_all() == ReminderCounts(sent=1)


def test_periodic_tasks_send_reminders() -> None:
    queue_due_in(2)
    sweep_all()
    assert len(mail.outbox) == 1


def test_command_prints_counts_and_requires_a_mail_server(settings: Any) -> None:
    queue_due_in(2)
    output = StringIO()
    call_command("remind_reviewers", "--format", "json", stdout=output)
    assert output.getvalue().strip() == '{"sent": 1, "failed": 0}'
    settings.CONCORD_MAIL = {}
    with pytest.raises(CommandError, match="EMAIL_URL"):
        call_command("remind_reviewers")
