"""Failed logins are throttled by name and address."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.db.models import Sum
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from config.environment import read_networks
from evaluation.accounts.login import blocked_until, record_failure, users_with_address
from evaluation.models import AuditEvent, FailedLogin
from tests.factories import make_user
from tests.pages.world import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
RIGHT = "a good password"


def failure_count() -> int:
    return int(FailedLogin.objects.aggregate(total=Sum("count"))["total"] or 0)


def attempt(
    name: str, password: str, address: str = "10.0.0.1", path: str = "login", browser: Client | None = None
) -> int:
    request_meta = {"REMOTE_ADDR": address}
    return (
        (browser or Client()).post(reverse(path), {"username": name, "password": password}, **request_meta).status_code
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "is_found"),
    [
        ("kim@github.example", True),
        ("KIM@GitHub.example", True),
        ("k\u0131m@github.example", False),  # dotless i
        ("kim@g\u0131thub.example", False),
        ("\u212aim@github.example", False),  # Kelvin sign
        ("kim@github.example\u200b", False),
        ("kim@github.ex\u0430mple", False),  # Cyrillic a
    ],
)
def test_address_is_compared_without_letters_that_only_look_alike(address: str, is_found: bool) -> None:
    kim = make_user(email="kim@github.example")
    make_user(email="kim@github.example", is_active=False)
    assert users_with_address(address) == ([kim] if is_found else [])


def test_repeated_failures_also_block_the_right_password() -> None:
    kim = make_user(username="kim")
    statuses = [attempt("kim", "wrong") for _ in range(20)]
    # the tenth failure is the last that is looked at; its answer says already to wait
    assert statuses == [200] * 9 + [429] * 11
    assert attempt("kim", RIGHT) == 429
    assert failure_count() == 10
    FailedLogin.objects.update(created_at=timezone.now() - timedelta(minutes=16))
    assert attempt("kim", RIGHT) == 302
    assert kim.is_active


def test_page_states_the_wait_and_hides_whether_the_name_exists() -> None:
    for _ in range(10):
        attempt("nobody", "wrong")
    page = Client().post(reverse("login"), {"username": "Nobody ", "password": "x"}, REMOTE_ADDR="10.0.0.1")
    assert "Try again in 15 minutes" in page.content.decode()


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


def test_login_ends_the_count_of_failures_but_keeps_their_record() -> None:
    make_user(username="kim")
    for _ in range(2):
        assert [attempt("kim", "wrong") for _ in range(9)] == [200] * 9
        assert attempt("kim", RIGHT) == 302
    assert not FailedLogin.objects.filter(cleared=False).exists()
    assert failure_count() == 18


@pytest.mark.parametrize("proxied", [False, True])
def test_addresses_of_one_ipv6_network_count_as_one(proxied: bool, settings: Any, monkeypatch: Any) -> None:
    """Attempts of 34 addresses: 34 names, and then one name; directly and through a trusted proxy."""
    monkeypatch.setenv("CONCORD_TRUSTED_PROXIES", "127.0.0.1")
    settings.CONCORD_TRUSTED_PROXIES = read_networks("CONCORD_TRUSTED_PROXIES")
    make_user(username="kim")

    def attempt_from(address: str, name: str, password: str = "wrong") -> int:
        if not proxied:
            return attempt(name, password, address)
        return attempt(name, password, "127.0.0.1", browser=Client(headers={"x-forwarded-for": address}))

    names = [attempt_from(f"2001:db8::{number:x}", f"name-{number}") for number in range(1, 35)]
    assert names == [200] * 29 + [429] * 5
    assert attempt_from("2001:db8::ffff:ffff:1", "kim", RIGHT) == 429
    one_name = [attempt_from(f"2001:db8:0:1:{number:x}::", "kim") for number in range(1, 15)]
    assert one_name == [200] * 9 + [429] * 5
    assert attempt_from("2001:db8:0:1::77", "kim", RIGHT) == 429
    assert attempt_from("2001:db8:0:2::1", "kim", RIGHT) == 302
    assert [attempt_from("::ffff:192.0.2.1", "lee"), *(attempt_from("192.0.2.1", "lee") for _ in range(9))][-1] == 429


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


def test_names_and_addresses_are_stored_hashed_for_thirty_days() -> None:
    record_failure("kim", "10.0.0.1")
    row = FailedLogin.objects.get()
    assert "kim" not in row.name
    assert "10.0" not in row.address
    FailedLogin.objects.update(created_at=timezone.now() - timedelta(days=29))
    record_failure("lee", "10.0.0.1")
    assert FailedLogin.objects.count() == 2
    FailedLogin.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=31))
    record_failure("park", "10.0.0.1")
    assert FailedLogin.objects.count() == 2


def test_failures_of_a_minute_are_one_row_outside_the_audit_log() -> None:
    initial_events = AuditEvent.objects.count()
    for minutes in (30, 20):
        with time_machine.travel(timezone.now() - timedelta(minutes=minutes), tick=False):
            for _ in range(9):
                record_failure("kim", "2001:db8::1")
                record_failure("kim", "2001:db8::2")
            record_failure("kim", "10.0.0.1")
    assert sorted(FailedLogin.objects.values_list("count", flat=True)) == [1, 1, 18, 18]
    assert AuditEvent.objects.count() == initial_events


def test_purge_deletes_old_failures_and_the_audit_log_stays_intact(capsys: pytest.CaptureFixture[str]) -> None:
    record_failure("kim", "10.0.0.1")
    FailedLogin.objects.update(created_at=timezone.now() - timedelta(days=31))
    FailedLogin.objects.create(name="lee", address="recent")
    call_command("purge")
    assert "Failed log-ins older than 30 days: 1 deleted" in capsys.readouterr().out
    assert FailedLogin.objects.get().address == "recent"
    call_command("verify_audit")


def test_back_office_shows_failures_to_administrators() -> None:
    world, page = make_world(), reverse("admin:evaluation_failedlogin_changelist")
    for _ in range(3):
        record_failure(world.people["lead"].username, "10.0.0.1")
    row = FailedLogin.objects.get()
    response = world.client("admin").get(page)
    assert [result.pk for result in response.context["cl"].result_list] == [row.pk]
    assert row.address in response.content.decode()
    assert (row.count, row.person) == (3, world.people["lead"])
    assert world.client("lead").get(page).status_code == 403


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


def test_audit_log_records_logins_and_their_table_failures_without_names() -> None:
    kim = make_user(username="kim")
    attempt("kim", "wrong"), attempt("nobody", "wrong"), attempt("kim", RIGHT)
    events = AuditEvent.objects.filter(verb__startswith="login").values_list("verb", "actor", "detail")
    assert list(events) == [("login.succeeded", kim.pk, {})]
    failures = FailedLogin.objects.order_by("pk").values_list("person", "by", "count", "cleared")
    assert list(failures) == [(kim.pk, "", 1, True), (None, "", 1, False)]
