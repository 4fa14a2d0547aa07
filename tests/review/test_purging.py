"""Erasing a person and emptying old replies leaves figures, chain and seals as they are, and no text."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from evaluation.accounts import audit, erasure
from evaluation.core.errors import DomainError
from evaluation.models import Attempt, AuditEvent, Reply, User
from evaluation.runs.progress import spending
from evaluation.scoring.replies import CachedReplies
from evaluation.storage import append_only, integrity
from review.models import Draft, ItemEvent, Rating
from tests.factories import make_draft_run, make_queue, make_units, make_user
from tests.review.clients import GOOD, members

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
SECRET = "Kim said so"


def texts() -> str:
    """Every text in every table, as one."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            found.append(repr(cursor.fetchall()))
    return "".join(found)


@pytest.fixture
def wrote() -> User:
    """A reviewer who wrote a comment with a rating, a remark with a flag, and a draft."""
    queue = make_queue()
    caller = members(queue)[0]
    User.objects.filter(pk=caller.user.pk).update(username="kim", first_name="Seoyeon", email="kim@example.org")
    item = caller.next(queue)["id"]
    sent = {"values": GOOD, "comment": SECRET, "suggestion": SECRET, "idempotency_key": "k"}
    assert caller.post(f"items/{item}/submit/", sent).status_code == 200
    item = caller.next(queue)["id"]
    assert caller.post(f"items/{item}/draft/", {"values": GOOD, "comment": SECRET}).status_code == 204
    assert caller.post(f"items/{item}/flag/", {"kind": "unsafe", "comment": SECRET}).status_code == 204
    audit.seal_rows()
    return User.objects.get(pk=caller.user.pk)


def test_of_an_erased_person_nothing_is_left_but_figures(wrote: User) -> None:
    figures = list(Rating.objects.values_list("pk", "value", "reviewer", "created_at"))
    assert all(word in texts() for word in (SECRET, "kim@example.org", "Seoyeon"))
    head = audit.chain_head()
    said = StringIO()
    lead = make_user("admin", wrote.grants.first().project)
    call_command("purge", person="kim", by=lead.username, stdout=said)
    left = texts()
    assert not [word for word in (SECRET, "kim@example.org", "Seoyeon", "'kim'") if word in left]
    assert list(Rating.objects.values_list("pk", "value", "reviewer", "created_at")) == figures
    assert (Draft.objects.count(), ItemEvent.objects.get(verb="flag").comment) == (0, erasure.ERASED)
    event = AuditEvent.objects.get(verb=erasure.PERSON_ERASED)
    assert (event.actor, event.object_id) == (lead, str(wrote.pk))
    assert event.detail["rows"]["review_rating"] == Rating.objects.filter(comment=erasure.ERASED).count() > 0
    assert "review_rating: " in said.getvalue()
    wrote.refresh_from_db()
    assert (wrote.username, wrote.is_active, wrote.has_usable_password()) == (f"erased-{wrote.pk}", False, False)
    assert wrote.tokens.filter(revoked_at=None).count() == 0
    assert list(audit.flaws(head)) == []  # the seals leave out what people wrote
    assert append_only.tables_without_triggers() == []
    assert erasure.erase_person(wrote, by=None) == {}  # nothing is left to do


def test_the_last_administrator_of_the_site_stays(wrote: User) -> None:
    boss = User.objects.create_superuser("boss")
    with pytest.raises(DomainError, match="last_superuser"):
        erasure.erase_person(boss, by=None)
    with pytest.raises(CommandError, match="last administrator"):
        call_command("purge", person="boss")
    User.objects.create_superuser("second")
    erasure.erase_person(boss, by=None)
    assert not User.objects.filter(username="boss").exists()


def test_what_fails_halfway_is_taken_back_with_the_triggers(wrote: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(erasure.audit, "record", failing)
    with pytest.raises(RuntimeError):
        erasure.erase_person(wrote, by=None)
    assert User.objects.filter(username="kim").exists()
    assert Rating.objects.filter(comment=SECRET).exists()
    assert integrity.altered_triggers() == {}
    with pytest.raises(DatabaseError), transaction.atomic():
        Rating.objects.update(comment="")


def test_old_replies_lose_their_texts_and_answer_no_call_any_more(settings: Any) -> None:
    run = make_draft_run()
    units = make_units(run, 2)
    for unit, age in zip(units, (40, 1), strict=True):
        attempt = Attempt.objects.create(unit=unit, number=1, fence=1, round=0)
        made = timezone.now() - timedelta(days=age)
        Reply.objects.create(attempt=attempt, outcome="ok", raw=f"old {age}", request_hash="h", cost=1, created_at=made)
    said = StringIO()
    call_command("purge", stdout=said)
    assert "CONCORD_REPLY_RETENTION_DAYS is 0" in said.getvalue()
    assert not Reply.objects.filter(raw="").exists()
    settings.CONCORD_REPLY_RETENTION_DAYS = 30
    call_command("purge", stdout=said)
    assert "1 replies" in said.getvalue()
    assert list(Reply.objects.order_by("pk").values_list("raw", "cost", "request_hash")) == [
        ("", 1, "h"),
        ("old 1", 1, "h"),
    ]
    event = AuditEvent.objects.get(verb=erasure.REPLIES_PURGED)
    assert event.detail["rows"] == 1
    assert event.detail["sha256"] == sha256(b"old 40").hexdigest()
    assert list(audit.flaws()) == []
    assert CachedReplies(run.project_id, 1).find(["h"]) == {}
    call_command("purge", stdout=said)
    assert AuditEvent.objects.filter(verb=erasure.REPLIES_PURGED).count() == 1


def test_calls_that_were_never_sent_are_taken_out_and_those_of_unknown_cost_stay() -> None:
    run = make_draft_run()
    units = make_units(run, 4)
    attempts = [Attempt.objects.create(unit=unit, number=1, fence=1, round=0) for unit in units]
    told = [("not_sent", 2), ("not_sent", 0), ("ok", 2)]  # the others have no reply
    for attempt, (outcome, days) in zip(attempts, told, strict=False):
        made = timezone.now() - timedelta(days=days)
        Reply.objects.create(attempt=attempt, outcome=outcome, cost=0, created_at=made)
    spent = spending(run)
    said = StringIO()
    call_command("purge", stdout=said)
    assert said.getvalue().startswith("1 calls")
    assert list(Attempt.objects.order_by("pk")) == attempts[1:]
    assert list(Reply.objects.order_by("pk").values_list("attempt", flat=True)) == [one.pk for one in attempts[1:3]]
    assert spending(run) == spent
    event = AuditEvent.objects.get(verb=erasure.UNSENT_PURGED)
    assert (event.object_id, event.detail) == (str(attempts[0].pk), {"rows": 1})
    assert append_only.tables_without_triggers() == []
    call_command("purge", stdout=said)
    assert AuditEvent.objects.filter(verb=erasure.UNSENT_PURGED).count() == 1


def test_the_page_says_for_how_long(client: Client, settings: Any, django_assert_max_num_queries: Any) -> None:
    client.force_login(make_user())
    settings.CONCORD_REPLY_RETENTION_DAYS = 30
    with django_assert_max_num_queries(6):
        page = client.get("/account/data-retention/", headers={"accept-language": "en"}).content.decode()
    assert "30 days" in page
    assert "until the person is erased" in page
    settings.CONCORD_REPLY_RETENTION_DAYS = 0
    assert "30 days" not in client.get("/account/data-retention/").content.decode()
