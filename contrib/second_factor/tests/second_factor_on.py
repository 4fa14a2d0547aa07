"""Codes after the password (17.7). Run by ``test_log_ins.py`` in a process that has them."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from contrib.second_factor.views import Adapter, code_at
from evaluation.accounts.erasure import erase_person
from evaluation.accounts.login import PROVIDER_SESSION_KEY, new_token, password_link
from evaluation.core.roles import Role
from evaluation.models import ApiToken, AuditEvent, RoleGrant, User
from tests.factories import make_project, make_user
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db
PASSWORD = "a good password"
PLACES = ("/", "/runs/", "/account/", "/account/second-factor/", "/adjudication/", "/admin/", "/api/v1/runs/")
OWN, CODE = "/account/second-factor/", "/login/code/"


def code(secret: str, ahead: int = 0) -> str:
    """What the app shows, some steps from now."""
    return code_at(secret, int(time.time()) // 30 + ahead)


def secret_of(who: User) -> str:
    return Adapter().decrypt(Authenticator.objects.get(user=who, type="totp").data["secret"])


def logged_in(who: User) -> Client:
    """A browser in which the person has given the password."""
    browser = Client()
    browser.post("/login/", {"username": who.username, "password": PASSWORD})
    return browser


def set_up(browser: Client, **told: str) -> Any:
    """Set up what the page shows; the answer."""
    shown = browser.get(OWN).content.decode()
    key = re.search(r"<code>([A-Z2-7 ]+)</code>", shown)
    fields = {"code": code(key[1].replace(" ", "")) if key else "", "password": PASSWORD}
    return browser.post(OWN + "set-up/", fields | told)


def person_with_factor(role: Role | None = None, **fields: Any) -> tuple[User, list[str]]:
    """Somebody with a second factor that was used long ago, and the recovery codes."""
    who = make_user(role, **fields)
    page = set_up(logged_in(who)).content.decode()
    factor = Authenticator.objects.get(user=who, type="totp")
    factor.data["used"] = 1
    factor.save()
    return who, re.findall(r"<li><code>(\d{4} \d{4})</code>", page)


def is_in(browser: Client) -> bool:
    """Whether any place that asks for a person takes the browser for one."""
    seen = [browser.get(place, follow=True) for place in PLACES]
    ins = [one.request["PATH_INFO"] != "/login/" and one.status_code != 401 for one in seen]
    assert len(set(ins)) == 1, [(place, one.status_code) for place, one in zip(PLACES, seen, strict=True)]
    return ins[0]


def events(who: User) -> list[tuple[str, Any]]:
    told = AuditEvent.objects.order_by("pk").values_list("verb", "object_id", "detail")
    about = [(verb, detail) for verb, pk, detail in told if pk == str(who.pk) or detail.get("person") == who.pk]
    return [one for one in about if one[0].startswith(("login", "second_factor"))]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")],
)
def test_codes_are_those_of_rfc_6238(seconds: int, expected: str) -> None:
    """The last six of the eight digits in its appendix B."""
    assert code_at("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", seconds // 30) == expected


def test_setting_up_takes_the_password_and_a_code_and_shows_the_recovery_codes_once() -> None:
    who = make_user()
    browser = logged_in(who)
    page = browser.get(OWN)
    secret = re.search(r"secret=([A-Z2-7]+)", page.content.decode())
    assert secret is not None
    assert "<svg" in page.content.decode()
    assert "style=" not in page.content.decode()
    assert "form-action 'self'" in page.headers["Content-Security-Policy"]
    before = browser.session.session_key
    assert set_up(browser, password="wrong").status_code == 400
    assert set_up(browser, code="000000").status_code == 400
    assert not Authenticator.objects.exists()
    done = set_up(browser)
    codes = re.findall(r"<li><code>(\d{4} \d{4})</code>", done.content.decode())
    assert len(set(codes)) == 10
    assert browser.session.session_key != before
    assert is_in(browser)
    later = browser.get(OWN).content.decode()
    assert "10 recovery codes are left" in later
    assert not [text for text in (*codes, secret[1], *(one.replace(" ", "") for one in codes)) if text in later]
    kept = [str(one) for rows in (Authenticator, AuditEvent) for one in rows.objects.values_list()]
    kept += [str(browser.session.items()), *(row.session_data for row in Session.objects.all())]
    assert not [text for text in kept if secret[1] in text or codes[0].replace(" ", "") in text]
    assert ("second_factor.set_up", {}) in events(who)
    assert set_up(browser, code=codes[0]).headers["Location"] == OWN  # there is one


def test_between_password_and_code_nobody_is_in_and_the_session_is_another_one_after() -> None:
    who, _ = person_with_factor(Role.LEAD)
    browser = Client()
    browser.get("/login/")
    there = browser.post("/login/", {"username": who.username, "password": PASSWORD, "next": "/runs/?page=2"})
    assert there.headers["Location"] == CODE
    assert not is_in(browser)
    waiting = browser.session.session_key
    assert browser.get(CODE).status_code == 200
    assert browser.post(CODE, {"code": "000000"}).status_code == 200
    assert not is_in(browser)
    done = browser.post(CODE, {"code": code(secret_of(who))})
    assert done.headers["Location"] == "/runs/?page=2"
    assert is_in(browser)
    assert browser.session.session_key != waiting
    stolen = Client()
    stolen.cookies["sessionid"] = waiting
    assert not is_in(stolen)
    assert events(who)[-3:] == [
        ("login.password", {}), ("login.failed", {"person": who.pk, "by": "code"}), ("login.succeeded", {"by": "code"}),
    ]  # fmt: skip
    assert browser.get(CODE).headers["Location"] == "/login/"


@pytest.mark.parametrize("wanted", ["//evil.example/", "https://evil.example/", "javascript:alert(1)"])
def test_nobody_is_led_to_another_site(wanted: str, settings: Any) -> None:
    who, _ = person_with_factor()
    browser = Client()
    browser.post("/login/", {"username": who.username, "password": PASSWORD, "next": wanted})
    assert browser.post(CODE, {"code": code(secret_of(who))}).headers["Location"] == "/"
    settings.CONCORD_SECOND_FACTOR = "all"
    page = set_up(logged_in(make_user()), next=wanted).content.decode()
    assert 'href="/account/">I have kept them' in compact(page)


def test_a_code_counts_once_and_none_from_before_it() -> None:
    who = make_user()
    browser = logged_in(who)
    with time_machine.travel("2026-11-25 12:00:10", tick=False):
        set_up(browser)
        secret = secret_of(who)
        seen = logged_in(who)
        assert seen.post(CODE, {"code": code(secret)}).status_code == 200  # used to set it up
        assert seen.post(CODE, {"code": code(secret, -1)}).status_code == 200
        assert seen.post(CODE, {"code": code(secret, 2)}).status_code == 200  # not yet
        assert seen.post(CODE, {"code": code(secret, 1)}).status_code == 302
        again = logged_in(who)
        for one in (1, 0, -1):
            assert again.post(CODE, {"code": code(secret, one)}).status_code == 200
        assert not is_in(again)
    with time_machine.travel("2026-11-25 12:01:05", tick=False):
        third = logged_in(who)
        spaced = code(secret)[:3] + " " + code(secret)[3:]
        assert third.post(CODE, {"code": spaced}).status_code == 302


def test_a_recovery_code_lets_in_once_and_says_how_many_are_left() -> None:
    who, codes = person_with_factor()
    first = logged_in(who)
    there = first.post(CODE, {"code": codes[3]}, follow=True)
    assert "9 recovery codes are left" in there.content.decode()
    assert ("second_factor.recovery_code_used", {"left": 9}) in events(who)
    second = logged_in(who)
    assert second.post(CODE, {"code": codes[3]}).status_code == 200
    assert not is_in(second)
    assert second.post(CODE, {"code": codes[4].replace(" ", "")}).status_code == 302
    assert first.post(OWN + "codes/", {"password": "wrong"}).status_code == 400
    made = re.findall(r"<li><code>(.+?)</code>", first.post(OWN + "codes/", {"password": PASSWORD}).content.decode())
    assert not set(made) & set(codes)
    third = logged_in(who)
    assert third.post(CODE, {"code": codes[5]}).status_code == 200  # worth nothing now
    assert third.post(CODE, {"code": made[0]}).status_code == 302


def test_wrong_codes_have_the_limits_of_wrong_passwords_which_a_right_password_does_not_lift() -> None:
    who, codes = person_with_factor()
    browser = logged_in(who)
    seen = []
    for _ in range(12):
        seen.append(browser.post(CODE, {"code": "1234 5678"}).status_code)
        browser.post("/login/", {"username": who.username, "password": PASSWORD})
    assert seen == [200] * 9 + [429] * 3
    assert browser.post(CODE, {"code": code(secret_of(who))}).status_code == 429  # not even looked at
    assert browser.post(CODE, {"code": codes[0]}).status_code == 429
    assert not is_in(browser)
    elsewhere = Client(REMOTE_ADDR="10.0.0.9")
    elsewhere.post("/login/", {"username": who.username, "password": PASSWORD})
    assert elsewhere.post(CODE, {"code": codes[0]}).status_code == 302


@pytest.mark.parametrize("ended", ["time", "password", "account", "nothing was given"])
def test_a_password_that_was_given_is_good_for_a_while_only(ended: str) -> None:
    who, codes = person_with_factor()
    browser = Client()
    if ended != "nothing was given":
        browser.post("/login/", {"username": who.username, "password": PASSWORD, "next": "/runs/"})
    if ended == "password":
        who.set_password("another good one")
        who.save()
    if ended == "account":
        User.objects.filter(pk=who.pk).update(is_active=False)
    with time_machine.travel(time.time() + (601 if ended == "time" else 0)):
        assert browser.post(CODE, {"code": codes[0]}).headers["Location"] == CODE
        back = "/login/" if ended == "nothing was given" else "/login/?next=/runs/"
        assert browser.get(CODE).headers["Location"] == back
        assert not is_in(browser)


def test_no_other_door_leads_around_it() -> None:
    who, codes = person_with_factor(is_superuser=True)
    door = Client()
    door.post("/admin/login/?next=/admin/", {"username": who.username, "password": PASSWORD})
    assert not is_in(door)
    by_link = Client()
    who.refresh_from_db()
    form = by_link.get(password_link(who), follow=True).request["PATH_INFO"]
    done = by_link.post(form, {"new_password1": "correct horse battery", "new_password2": "correct horse battery"})
    assert done.headers["Location"] == CODE
    assert not is_in(by_link)
    assert by_link.post(CODE, {"code": codes[0]}).status_code == 302
    assert is_in(by_link)
    forced = Client()
    forced.force_login(who)  # whatever logs somebody in without asking
    assert forced.get("/api/v1/runs/").status_code == 401
    assert not is_in(forced)


def test_a_factor_that_is_set_up_ends_the_sessions_without_it_and_its_end_ends_none() -> None:
    who = make_user()
    before, browser = logged_in(who), logged_in(who)
    assert is_in(before)
    set_up(browser)
    assert (is_in(before), is_in(browser)) == (False, True)
    assert browser.post(OWN + "remove/", {"password": "wrong"}).status_code == 400
    assert Authenticator.objects.count() == 2
    browser.post(OWN + "remove/", {"password": PASSWORD})
    assert not Authenticator.objects.exists()
    assert is_in(browser)
    assert is_in(logged_in(who))
    assert ("second_factor.removed", {}) in events(who)


@pytest.mark.parametrize(
    ("told", "role", "needs"),
    [
        ("offered", Role.ADMIN, False), ("leads", Role.ADMIN, True), ("leads", Role.LEAD, True),
        ("leads", Role.EVALUATOR, False), ("leads", Role.REVIEWER, False), ("leads", None, False), ("all", None, True),
    ],
)  # fmt: skip
def test_who_needs_one_is_led_to_set_it_up_and_can_do_nothing_else(
    settings: Any, told: str, role: Role | None, needs: bool
) -> None:
    settings.CONCORD_SECOND_FACTOR = told
    who = make_user(role)
    browser = logged_in(who)
    if not needs:
        assert browser.get("/runs/").status_code == 200
        return
    assert browser.get("/runs/?page=2").headers["Location"] == OWN + "?next=%2Fruns%2F%3Fpage%3D2"
    for place in ("/", "/account/", "/admin/", "/nowhere/", "/account/second-factor/codes/", "/queues/"):
        assert browser.get(place).headers["Location"].startswith(OWN + "?next="), place
        assert browser.post(place).headers["Location"].startswith(OWN + "?next="), place
    assert browser.get("/api/v1/runs/").status_code == 401
    assert browser.post("/account/tokens/", {"name": "x"}).headers["Location"].startswith(OWN)
    page = browser.get(OWN + "?next=/runs/").content.decode()
    assert "Your account needs a second factor" in page
    assert 'href="/runs/"' not in page
    assert browser.post("/language/", {"language": "ko", "next": OWN}).status_code == 302
    assert 'href="/runs/">' in set_up(browser, next="/runs/").content.decode()
    assert browser.get("/runs/").status_code == 200
    browser.post(OWN + "remove/", {"password": PASSWORD})
    assert browser.get("/runs/").headers["Location"].startswith(OWN)  # another one, then
    assert browser.post("/logout/").headers["Location"].startswith("/login/")


def test_a_role_that_needs_one_needs_it_at_once(settings: Any) -> None:
    settings.CONCORD_SECOND_FACTOR = "leads"
    who = make_user(Role.VIEWER)
    browser = logged_in(who)
    assert browser.get("/runs/").status_code == 200
    RoleGrant.objects.create(user=who, project=make_project(), role=Role.LEAD)
    assert browser.get("/runs/").headers["Location"].startswith(OWN)


def test_administrators_reset_that_of_people_they_may_change() -> None:
    project = make_project()
    who, _ = person_with_factor(Role.REVIEWER, project=project)
    address = reverse("admin:person-second-factor", args=[who.pk])
    change = reverse("admin:evaluation_user_change", args=[who.pk])
    root, chief = make_user(is_superuser=True), make_user(Role.ADMIN, project=project)
    others = [(make_user(role, project=project), 404) for role in (Role.LEAD, Role.EVALUATOR)]
    others += [(make_user(Role.ADMIN), 404), (make_user(Role.REVIEWER, project=project), 302), (make_user(), 302)]
    for stranger, status in others:
        assert logged_in(stranger).post(address).status_code == status, stranger.grants.all()
    assert Client().post(address).status_code == 302
    assert Authenticator.objects.filter(user=who).count() == 2
    browser = logged_in(chief)
    assert browser.get(address).status_code == 405
    assert "Reset the second factor" in browser.get(change).content.decode()
    assert browser.post(address).headers["Location"] == change
    assert not Authenticator.objects.filter(user=who).exists()
    last = AuditEvent.objects.get(verb="second_factor.reset")
    assert (last.actor, last.object_id, last.detail) == (chief, str(who.pk), {})
    assert is_in(logged_in(who))
    assert "Reset the second factor" not in browser.get(change).content.decode()
    assert logged_in(root).post(address).status_code == 404  # there is none


def test_tokens_and_whoever_a_provider_vouches_for_are_not_asked(settings: Any) -> None:
    settings.CONCORD_SECOND_FACTOR = "all"
    who, _ = person_with_factor(Role.LEAD)
    text, sha256 = new_token()
    project = who.grants.get().project
    ends = "2999-01-01T00:00Z"
    ApiToken.objects.create(
        user=who, made_by=who, project=project, name="n", scope="read", sha256=sha256, expires_at=ends
    )
    assert Client().get("/api/v1/runs/", headers={"Authorization": f"Bearer {text}"}).status_code == 200
    browser = Client()
    browser.force_login(who)
    session = browser.session
    session[PROVIDER_SESSION_KEY] = True
    session.save()
    assert is_in(browser)
    browser.post("/logout/")
    browser.force_login(who)
    assert not is_in(browser)


def test_another_secret_of_the_site_opens_it_while_the_old_one_is_named(settings: Any) -> None:
    who, codes = person_with_factor()
    secret, old = secret_of(who), settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "x" * 60, [old]
    assert logged_in(who).post(CODE, {"code": code(secret)}).status_code == 302
    settings.SECRET_KEY_FALLBACKS = []
    browser = logged_in(who)
    assert browser.post(CODE, {"code": codes[0]}).status_code == 200
    assert not is_in(browser)


def test_nothing_of_it_is_in_the_back_office_and_erasing_takes_it_away() -> None:
    assert Authenticator not in admin.site._registry
    who, _ = person_with_factor()
    erase_person(who, by=None)
    assert not Authenticator.objects.exists()


def test_a_page_costs_one_more_query(settings: Any) -> None:
    browser = logged_in(make_user())
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as asked:
            assert browser.get("/account/data-retention/").status_code == 200
        counts.append(len(asked))
        settings.MIDDLEWARE = [one for one in settings.MIDDLEWARE if not one.endswith("SecondFactorMiddleware")]
        browser.handler.load_middleware()
    assert counts[0] == counts[1] + 1
