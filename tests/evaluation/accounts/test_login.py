"""Failed logins are throttled by name and address."""

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
    request_meta = {"REMOTE_ADDR": address}
    return (
        (browser or Client()).post(reverse(path), {"username": name, "password": password}, **request_meta).status_code
    )  # type: ignore[arg-type]


def test_repeated_failures_also_block_the_right_password() -> None:
    kim = make_user(username="kim")
    statuses = [attempt("kim", "wrong") for _ in range(20)]
    # the tenth failure is the last that is looked at; its answer says already to wait
    assert statuses == [200] * 9 + [429] * 11
    assert attempt("kim", RIGHT) == 429
    assert FailedLogin.objects.count() == 10
    FailedLogin.objects.update(created_at=timezone.now() - timedelta(minutes=16))
    assert attempt("kim", RIGHT) == 302
    assert kim.is_active


def test_page_states_the_wait_and_hides_whether_the_name_exists() -> None:
    for _ in range(10):
        attempt("nobody", "wrong")
    page = Client().post(reverse("login"), {"username": "Nobody ", "password": "x"}, REMOTE_ADDR="10.0.0.1")
    assert "Wait 15 minutes" in page.content.decode()


def test_other_addresses_and_names_are_not_blocked() -> None:
    make_user(username="kim"), make_user(username="lee")
    for _ in range(12):
        attempt("kim", "wrong")
    assert attempt("lee", RIGHT) == 302
    assert attempt("kim", RIGHT, "10.0.0.2") == 302


def test_name_tried_from_many_addresses_is_blocked_everywhere() -> None:
    for number in range(50):
        record_failure("kim", f"10.0.1.{number}")
    assert blocked_until("kim", "10.0.9.9") is not None
    assert blocked_until("lee", "10.0.9.9") is None


def test_login_clears_earlier_failures() -> None:
    make_user(username="kim")
    for _ in range(9):
        attempt("kim", "wrong")
    assert attempt("kim", RIGHT) == 302
    assert not FailedLogin.objects.exists()


def test_admin_login_redirects_to_the_login_page() -> None:
    make_user(username="kim", is_superuser=True, is_staff=True)
    browser, admin_login = Client(), reverse("admin:login") + "?next=/admin/evaluation/run/"
    for response in (browser.get(admin_login), browser.post(admin_login, {"username": "kim", "password": RIGHT})):
        assert response.headers["Location"].startswith(reverse("login") + "?next=")
        assert "_auth_user_id" not in browser.session
    response_after_login = browser.post(
        browser.get(admin_login).headers["Location"], {"username": "kim", "password": RIGHT}
    )
    assert response_after_login.headers["Location"] == "/admin/evaluation/run/"
    assert browser.get(admin_login).headers["Location"] == reverse("admin:index")
    make_user(username="lee")
    other_browser = Client()
    attempt("lee", RIGHT, browser=other_browser)
    assert other_browser.get("/admin/", follow=True).status_code == 403


def test_names_and_addresses_are_stored_hashed_for_one_day() -> None:
    record_failure("kim", "10.0.0.1")
    row = FailedLogin.objects.get()
    assert "kim" not in row.name
    assert "10.0" not in row.address
    FailedLogin.objects.update(created_at=timezone.now() - timedelta(hours=25))
    record_failure("lee", "10.0.0.1")
    assert FailedLogin.objects.count() == 1


def test_many_names_from_one_address_are_blocked() -> None:
    make_user(username="kim")
    statuses = [attempt(f"name-{number}", "wrong") for number in range(32)]
    assert statuses == [200] * 29 + [429] * 3  # the thirtieth name is the last that is looked at
    assert attempt("kim", RIGHT) == 429
    assert attempt("kim", RIGHT, "10.0.0.2") == 302


def test_earlier_login_does_not_exempt_a_browser_from_the_limits() -> None:
    make_user(username="kim")
    browser = Client()
    assert attempt("kim", RIGHT, browser=browser) == 302
    browser.post(reverse("logout"))
    assert set(browser.cookies) <= {"sessionid", "csrftoken", "messages"}
    for number in range(50):
        record_failure("kim", f"10.0.1.{number}")
    assert attempt("kim", RIGHT, browser=browser) == 429


def test_audit_log_records_logins_and_failures_without_names() -> None:
    kim = make_user(username="kim")
    attempt("kim", "wrong"), attempt("nobody", "wrong"), attempt("kim", RIGHT)
    rows = AuditEvent.objects.order_by("pk").values_list("verb", "actor", "detail")
    assert [row for row in rows if row[0].startswith("login")] == [
        ("login.failed", None, {"person": kim.pk}),
        ("login.failed", None, {"person": None}),
        ("login.succeeded", kim.pk, {}),
    ]
