"""Erasure of a person and of old replies: figures, audit chain and seals stay, and no text is left."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from io import StringIO
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from evaluation.accounts import audit, erasure
from evaluation.core.errors import DomainError
from evaluation.models import ApiToken, Attempt, AuditEvent, Reply, User
from evaluation.runs.progress import spending
from evaluation.scoring.replies import CachedReplies
from evaluation.storage import append_only, integrity
from review.models import Draft, ItemEvent, Rating
from tests.factories import make_draft_run, make_queue, make_units, make_user
from tests.review.clients import GOOD, members

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
SECRET = "Kim said so"


def texts() -> str:
    """Every text in every table, joined."""
    table_texts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            table_texts.append(repr(cursor.fetchall()))
    return "".join(table_texts)


@pytest.fixture
def reviewer() -> User:
    """A reviewer with a comment on a rating, a remark on a flag, and a draft."""
    queue = make_queue()
    caller = members(queue)[0]
    User.objects.filter(pk=caller.user.pk).update(username="kim", first_name="Seoyeon", email="kim@example.org")
    item = caller.next(queue)["id"]
    form = {"values": GOOD, "comment": SECRET, "suggestion": SECRET, "idempotency_key": "k"}
    assert caller.post(f"items/{item}/submit/", form, key="kim").status_code == 200
    token = ApiToken.objects.create(
        user=caller.user, project=queue.project, name=SECRET, sha256="0", scope="read", expires_at=timezone.now()
    )
    boss = make_user("admin", queue.project)
    rows = [User.objects.get(pk=caller.user.pk), *caller.user.grants.select_related("user"), token]
    for row in rows:
        LogEntry.objects.log_actions(boss.pk, [row], 1, single_object=True)
    item = caller.next(queue)["id"]
    assert caller.post(f"items/{item}/draft/", {"values": GOOD, "comment": SECRET}).status_code == 204
    assert caller.post(f"items/{item}/flag/", {"kind": "unsafe", "comment": SECRET}).status_code == 204
    audit.seal_rows()
    return User.objects.get(pk=caller.user.pk)


def test_erased_person_leaves_only_figures(reviewer: User) -> None:
    figures = list(Rating.objects.values_list("pk", "value", "reviewer", "created_at"))
    assert all(personal_text in texts() for personal_text in (SECRET, "kim@example.org", "Seoyeon", "kim: reviewer"))
    head = audit.chain_head()
    output = StringIO()
    lead = make_user("admin", reviewer.grants.first().project)
    call_command("purge", person="kim", by=lead.username, stdout=output)
    remaining_text = texts()
    assert not [
        personal_text
        for personal_text in (SECRET, "kim@example.org", "Seoyeon", "'kim'", "kim: reviewer")
        if personal_text in remaining_text
    ]
    assert list(Rating.objects.values_list("pk", "value", "reviewer", "created_at")) == figures
    assert (Draft.objects.count(), ItemEvent.objects.get(verb="flag").comment) == (0, erasure.ERASED)
    event = AuditEvent.objects.get(verb=erasure.PERSON_ERASED)
    assert (event.actor, event.object_id) == (lead, str(reviewer.pk))
    assert event.detail["rows"]["review_rating"] == Rating.objects.filter(comment=erasure.ERASED).count() > 0
    assert "review_rating: " in output.getvalue()
    reviewer.refresh_from_db()
    assert (reviewer.username, reviewer.is_active, reviewer.has_usable_password()) == (
        f"erased-{reviewer.pk}",
        False,
        False,
    )
    assert reviewer.tokens.filter(revoked_at=None).count() == 0
    assert list(audit.flaws(head)) == []  # the seals leave out what people wrote
    assert append_only.tables_without_triggers() == []
    assert erasure.erase_person(reviewer, by=None) == {}  # nothing is left to do


def test_person_is_erased_although_the_name_is_taken(reviewer: User) -> None:
    make_user(username=f"erased-{reviewer.pk}")
    erasure.erase_person(reviewer, by=None)
    reviewer.refresh_from_db()
    assert reviewer.username == f"erased-{reviewer.pk}-"


def test_last_administrator_is_not_erased(reviewer: User) -> None:
    boss = User.objects.create_superuser("boss")
    with pytest.raises(DomainError, match="last_superuser"):
        erasure.erase_person(boss, by=None)
    with pytest.raises(CommandError, match="last administrator"):
        call_command("purge", person="boss")
    User.objects.create_superuser("second")
    erasure.erase_person(boss, by=None)
    assert not User.objects.filter(username="boss").exists()


def test_failed_erasure_is_rolled_back_with_the_triggers(reviewer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(erasure.audit, "record", failing)
    with pytest.raises(RuntimeError):
        erasure.erase_person(reviewer, by=None)
    assert User.objects.filter(username="kim").exists()
    assert Rating.objects.filter(comment=SECRET).exists()
    assert integrity.altered_triggers() == {}
    with pytest.raises(DatabaseError), transaction.atomic():
        Rating.objects.update(comment="")


def test_old_replies_lose_their_texts_and_are_not_reused(settings: Any) -> None:
    run = make_draft_run()
    units = make_units(run, 2)
    for unit, age in zip(units, (40, 1), strict=True):
        attempt = Attempt.objects.create(unit=unit, number=1, fence=1, round=0)
        created_at = timezone.now() - timedelta(days=age)
        Reply.objects.create(
            attempt=attempt, outcome="ok", raw=f"old {age}", request_hash="h", cost=1, created_at=created_at
        )
    output = StringIO()
    call_command("purge", stdout=output)
    assert "CONCORD_REPLY_RETENTION_DAYS is 0" in output.getvalue()
    assert not Reply.objects.filter(raw="").exists()
    settings.CONCORD_REPLY_RETENTION_DAYS = 30
    call_command("purge", stdout=output)
    assert "older than 30 days: 1 emptied" in output.getvalue()
    assert list(Reply.objects.order_by("pk").values_list("raw", "cost", "request_hash")) == [
        ("", 1, "h"),
        ("old 1", 1, "h"),
    ]
    event = AuditEvent.objects.get(verb=erasure.REPLIES_PURGED)
    assert event.detail["rows"] == 1
    assert event.detail["sha256"] == sha256(b"old 40").hexdigest()
    assert list(audit.flaws()) == []
    assert CachedReplies(run.project_id, 1).find(["h"]) == {}
    call_command("purge", stdout=output)
    assert AuditEvent.objects.filter(verb=erasure.REPLIES_PURGED).count() == 1


def test_unsent_calls_are_deleted_and_calls_of_unknown_cost_stay() -> None:
    run = make_draft_run()
    units = make_units(run, 4)
    attempts = [Attempt.objects.create(unit=unit, number=1, fence=1, round=0) for unit in units]
    replies = [("not_sent", 2), ("not_sent", 0), ("ok", 2)]  # the others have no reply
    for attempt, (outcome, days) in zip(attempts, replies, strict=False):
        created_at = timezone.now() - timedelta(days=days)
        Reply.objects.create(attempt=attempt, outcome=outcome, cost=0, created_at=created_at)
    initial_spending = spending(run)
    output = StringIO()
    call_command("purge", stdout=output)
    assert output.getvalue().startswith("Calls planned more than a day ago and never sent: 1 deleted")
    assert list(Attempt.objects.order_by("pk")) == attempts[1:]
    assert list(Reply.objects.order_by("pk").values_list("attempt", flat=True)) == [row.pk for row in attempts[1:3]]
    assert spending(run) == initial_spending
    event = AuditEvent.objects.get(verb=erasure.UNSENT_PURGED)
    assert (event.object_id, event.detail) == (str(attempts[0].pk), {"rows": 1})
    assert append_only.tables_without_triggers() == []
    call_command("purge", stdout=output)
    assert AuditEvent.objects.filter(verb=erasure.UNSENT_PURGED).count() == 1


def test_page_shows_the_retention_time(client: Client, settings: Any, django_assert_max_num_queries: Any) -> None:
    client.force_login(make_user())
    settings.CONCORD_REPLY_RETENTION_DAYS = 45
    with django_assert_max_num_queries(6):
        page = client.get("/account/data-retention/", headers={"accept-language": "en"}).content.decode()
    assert "45 days" in page
    assert "until the person is erased" in page
    settings.CONCORD_REPLY_RETENTION_DAYS = 0
    assert "45 days" not in client.get("/account/data-retention/").content.decode()
