"""Failed log-ins: after ten nobody gets in for a while, whatever the password, and others are not held up (A11)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.accounts.login import blocked_until, record_failure
from evaluation.models import AuditEvent, FailedLogin
from tests.factories import make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
RIGHT = "a good password"


def attempt(
    name: str, password: str, address: str = "10.0.0.1", path: str = "login", browser: Client | None = None
) -> int:
    where = {"REMOTE_ADDR": address}
    return (browser or Client()).post(reverse(path), {"username": name, "password": password}, **where).status_code  # type: ignore[arg-type]


def test_twenty_bad_log_ins_are_throttled_and_then_the_right_password_is_too() -> None:
    kim = make_user(username="kim")
    seen = [attempt("kim", "wrong") for _ in range(20)]
    # the tenth failure is the last that is looked at; its answer says already to wait
    assert seen == [200] * 9 + [429] * 11
    assert attempt("kim", RIGHT) == 429
    assert FailedLogin.objects.count() == 10
    FailedLogin.objects.update(created_at=timezone.now() - timedelta(minutes=16))
    assert attempt("kim", RIGHT) == 302
    assert kim.is_active


def test_the_page_says_how_long_to_wait_and_not_whether_the_name_exists() -> None:
    for _ in range(10):
        attempt("nobody", "wrong")
    page = Client().post(reverse("login"), {"username": "Nobody ", "password": "x"}, REMOTE_ADDR="10.0.0.1")
    assert "Wait 15 minutes" in page.content.decode()


def test_another_address_and_another_name_are_not_held_up() -> None:
    make_user(username="kim"), make_user(username="lee")
    for _ in range(12):
        attempt("kim", "wrong")
    assert attempt("lee", RIGHT) == 302
    assert attempt("kim", RIGHT, "10.0.0.2") == 302


def test_one_name_tried_from_everywhere_has_to_wait_everywhere() -> None:
    for number in range(50):
        record_failure("kim", f"10.0.1.{number}")
    assert blocked_until("kim", "10.0.9.9") is not None
    assert blocked_until("lee", "10.0.9.9") is None


def test_a_log_in_forgets_the_failures_before_it() -> None:
    make_user(username="kim")
    for _ in range(9):
        attempt("kim", "wrong")
    assert attempt("kim", RIGHT) == 302
    assert not FailedLogin.objects.exists()


def test_the_back_office_has_no_door_of_its_own() -> None:
    make_user(username="kim", is_superuser=True, is_staff=True)
    browser, door = Client(), reverse("admin:login") + "?next=/admin/evaluation/run/"
    for answer in (browser.get(door), browser.post(door, {"username": "kim", "password": RIGHT})):
        assert answer.headers["Location"].startswith(reverse("login") + "?next=")
        assert "_auth_user_id" not in browser.session
    there = browser.post(browser.get(door).headers["Location"], {"username": "kim", "password": RIGHT})
    assert there.headers["Location"] == "/admin/evaluation/run/"
    assert browser.get(door).headers["Location"] == reverse("admin:index")
    make_user(username="lee")
    stranger = Client()
    attempt("lee", RIGHT, browser=stranger)
    assert stranger.get("/admin/", follow=True).status_code == 403


def test_names_and_addresses_are_kept_as_hashes_and_for_a_day_only() -> None:
    record_failure("kim", "10.0.0.1")
    row = FailedLogin.objects.get()
    assert "kim" not in row.name
    assert "10.0" not in row.address
    FailedLogin.objects.update(created_at=timezone.now() - timedelta(hours=25))
    record_failure("lee", "10.0.0.1")
    assert FailedLogin.objects.count() == 1


def test_names_tried_one_after_the_other_from_one_address_have_to_wait() -> None:
    make_user(username="kim")
    seen = [attempt(f"name-{number}", "wrong") for number in range(32)]
    assert seen == [200] * 29 + [429] * 3  # the thirtieth name is the last that is looked at
    assert attempt("kim", RIGHT) == 429
    assert attempt("kim", RIGHT, "10.0.0.2") == 302


def test_former_log_in_does_not_exempt_a_browser_from_the_limits() -> None:
    make_user(username="kim")
    browser = Client()
    assert attempt("kim", RIGHT, browser=browser) == 302
    browser.post(reverse("logout"))
    assert set(browser.cookies) <= {"sessionid", "csrftoken", "messages"}
    for number in range(50):
        record_failure("kim", f"10.0.1.{number}")
    assert attempt("kim", RIGHT, browser=browser) == 429


def test_log_ins_and_failures_stand_in_the_audit_log_without_names() -> None:
    kim = make_user(username="kim")
    attempt("kim", "wrong"), attempt("nobody", "wrong"), attempt("kim", RIGHT)
    rows = AuditEvent.objects.order_by("pk").values_list("verb", "actor", "detail")
    assert [row for row in rows if row[0].startswith("login")] == [
        ("login.failed", None, {"person": kim.pk}),
        ("login.failed", None, {"person": None}),
        ("login.succeeded", kim.pk, {}),
    ]
