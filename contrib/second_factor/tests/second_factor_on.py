"""Codes after the password. ``test_log_ins.py`` runs this file in a process with the feature enabled."""

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
from evaluation.models import ApiToken, AuditEvent, FailedLogin, RoleGrant, User
from tests.factories import make_project, make_user
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db
PASSWORD = "a good password"
PATHS = ("/", "/runs/", "/account/", "/account/second-factor/", "/adjudication/", "/admin/", "/api/v1/runs/")
FACTOR_PATH, CODE_PATH = "/account/second-factor/", "/login/code/"


def code(secret: str, steps: int = 0) -> str:
    """Code of the app, ``steps`` steps from now."""
    return code_at(secret, int(time.time()) // 30 + steps)


def secret_of(user: User) -> str:
    return Adapter().decrypt(Authenticator.objects.get(user=user, type="totp").data["secret"])


def browser_after_password(user: User) -> Client:
    """A browser in which the user has given the password."""
    browser = Client()
    browser.post("/login/", {"username": user.username, "password": PASSWORD})
    return browser


def set_up(browser: Client, **changes: str) -> Any:
    """Submit the setup form of the page; return the response."""
    page = browser.get(FACTOR_PATH).content.decode()
    key = re.search(r"<code>([A-Z2-7 ]+)</code>", page)
    fields = {"code": code(key[1].replace(" ", "")) if key else "", "password": PASSWORD}
    return browser.post(FACTOR_PATH + "set-up/", fields | changes)


def person_with_factor(role: Role | None = None, **fields: Any) -> tuple[User, list[str]]:
    """A user with a second factor that was used long ago, and the recovery codes."""
    user = make_user(role, **fields)
    page = set_up(browser_after_password(user)).content.decode()
    factor = Authenticator.objects.get(user=user, type="totp")
    factor.data["used"] = 1
    factor.save()
    return user, re.findall(r"<li><code>(\d{4} \d{4})</code>", page)


def is_logged_in(browser: Client) -> bool:
    """Return whether the pages take the browser for a logged-in user; they must agree."""
    responses = [browser.get(path, follow=True) for path in PATHS]
    ins = [response.request["PATH_INFO"] != "/login/" and response.status_code != 401 for response in responses]
    assert len(set(ins)) == 1, [(path, response.status_code) for path, response in zip(PATHS, responses, strict=True)]
    return ins[0]


def events(user: User) -> list[tuple[str, Any]]:
    rows = AuditEvent.objects.order_by("pk").values_list("verb", "object_id", "detail")
    about = [(verb, detail) for verb, pk, detail in rows if pk == str(user.pk) or detail.get("person") == user.pk]
    return [event for event in about if event[0].startswith(("login", "second_factor"))]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")],
)
def test_codes_are_those_of_rfc_6238(seconds: int, expected: str) -> None:
    """The last six of the eight digits in its appendix B."""
    assert code_at("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", seconds // 30) == expected


def test_setup_requires_password_and_code_and_shows_recovery_codes_once() -> None:
    user = make_user()
    browser = browser_after_password(user)
    page = browser.get(FACTOR_PATH)
    secret = re.search(r"secret=([A-Z2-7]+)", page.content.decode())
    assert secret is not None
    assert "<svg" in page.content.decode()
    assert "style=" not in page.content.decode()
    assert "form-action 'self'" in page.headers["Content-Security-Policy"]
    initial_key = browser.session.session_key
    assert set_up(browser, password="wrong").status_code == 400
    assert set_up(browser, code="000000").status_code == 400
    assert not Authenticator.objects.exists()
    response = set_up(browser)
    codes = re.findall(r"<li><code>(\d{4} \d{4})</code>", response.content.decode())
    assert len(set(codes)) == 10
    assert browser.session.session_key != initial_key
    assert is_logged_in(browser)
    later_page = browser.get(FACTOR_PATH).content.decode()
    assert "10 recovery codes left" in later_page
    assert not [
        text for text in (*codes, secret[1], *(value.replace(" ", "") for value in codes)) if text in later_page
    ]
    stored_texts = [str(value) for rows in (Authenticator, AuditEvent) for value in rows.objects.values_list()]
    stored_texts += [str(browser.session.items()), *(row.session_data for row in Session.objects.all())]
    assert not [text for text in stored_texts if secret[1] in text or codes[0].replace(" ", "") in text]
    assert ("second_factor.set_up", {}) in events(user)
    assert set_up(browser, code=codes[0]).headers["Location"] == FACTOR_PATH  # there is one


def test_no_access_between_password_and_code_and_a_new_session_after() -> None:
    user, _ = person_with_factor(Role.LEAD)
    browser = Client()
    browser.get("/login/")
    login_response = browser.post("/login/", {"username": user.username, "password": PASSWORD, "next": "/runs/?page=2"})
    assert login_response.headers["Location"] == CODE_PATH
    assert not is_logged_in(browser)
    waiting_key = browser.session.session_key
    assert browser.get(CODE_PATH).status_code == 200
    assert browser.post(CODE_PATH, {"code": "000000"}).status_code == 200
    assert not is_logged_in(browser)
    final_response = browser.post(CODE_PATH, {"code": code(secret_of(user))})
    assert final_response.headers["Location"] == "/runs/?page=2"
    assert is_logged_in(browser)
    assert browser.session.session_key != waiting_key
    stolen = Client()
    stolen.cookies["sessionid"] = waiting_key
    assert not is_logged_in(stolen)
    assert events(user)[-2:] == [("login.password", {}), ("login.succeeded", {"by": "code"})]
    assert list(FailedLogin.objects.values_list("person", "by", "cleared")) == [(user.pk, "code", True)]
    assert browser.get(CODE_PATH).headers["Location"] == "/login/"


@pytest.mark.parametrize("target", ["//evil.example/", "https://evil.example/", "javascript:alert(1)"])
def test_redirect_stays_on_the_site(target: str, settings: Any) -> None:
    user, _ = person_with_factor()
    browser = Client()
    browser.post("/login/", {"username": user.username, "password": PASSWORD, "next": target})
    assert browser.post(CODE_PATH, {"code": code(secret_of(user))}).headers["Location"] == "/"
    settings.CONCORD_SECOND_FACTOR = "all"
    page = set_up(browser_after_password(make_user()), next=target).content.decode()
    assert 'href="/account/">I have saved them' in compact(page)


def test_code_counts_once_and_earlier_codes_not_at_all() -> None:
    user = make_user()
    browser = browser_after_password(user)
    with time_machine.travel("2026-11-25 12:00:10", tick=False):
        set_up(browser)
        secret = secret_of(user)
        first_browser = browser_after_password(user)
        assert first_browser.post(CODE_PATH, {"code": code(secret)}).status_code == 200  # used to set it up
        assert first_browser.post(CODE_PATH, {"code": code(secret, -1)}).status_code == 200
        assert first_browser.post(CODE_PATH, {"code": code(secret, 2)}).status_code == 200  # not yet
        assert first_browser.post(CODE_PATH, {"code": code(secret, 1)}).status_code == 302
        second_browser = browser_after_password(user)
        for offset in (1, 0, -1):
            assert second_browser.post(CODE_PATH, {"code": code(secret, offset)}).status_code == 200
        assert not is_logged_in(second_browser)
    with time_machine.travel("2026-11-25 12:01:05", tick=False):
        third = browser_after_password(user)
        spaced = code(secret)[:3] + " " + code(secret)[3:]
        assert third.post(CODE_PATH, {"code": spaced}).status_code == 302


def test_recovery_code_is_valid_once_and_the_remaining_number_is_shown() -> None:
    user, codes = person_with_factor()
    first = browser_after_password(user)
    response = first.post(CODE_PATH, {"code": codes[3]}, follow=True)
    assert "9 recovery codes left" in response.content.decode()
    assert ("second_factor.recovery_code_used", {"left": 9}) in events(user)
    second = browser_after_password(user)
    assert second.post(CODE_PATH, {"code": codes[3]}).status_code == 200
    assert not is_logged_in(second)
    assert second.post(CODE_PATH, {"code": codes[4].replace(" ", "")}).status_code == 302
    assert first.post(FACTOR_PATH + "codes/", {"password": "wrong"}).status_code == 400
    new_codes = re.findall(
        r"<li><code>(.+?)</code>", first.post(FACTOR_PATH + "codes/", {"password": PASSWORD}).content.decode()
    )
    assert not set(new_codes) & set(codes)
    third = browser_after_password(user)
    assert third.post(CODE_PATH, {"code": codes[5]}).status_code == 200  # worth nothing now
    assert third.post(CODE_PATH, {"code": new_codes[0]}).status_code == 302


def test_wrong_codes_are_limited_like_wrong_passwords() -> None:
    user, codes = person_with_factor()
    browser = browser_after_password(user)
    statuses = []
    for _ in range(12):
        statuses.append(browser.post(CODE_PATH, {"code": "1234 5678"}).status_code)
        browser.post("/login/", {"username": user.username, "password": PASSWORD})
    assert statuses == [200] * 9 + [429] * 3
    assert browser.post(CODE_PATH, {"code": code(secret_of(user))}).status_code == 429  # not even looked at
    assert browser.post(CODE_PATH, {"code": codes[0]}).status_code == 429
    assert not is_logged_in(browser)
    elsewhere = Client(REMOTE_ADDR="10.0.0.9")
    elsewhere.post("/login/", {"username": user.username, "password": PASSWORD})
    assert elsewhere.post(CODE_PATH, {"code": codes[0]}).status_code == 302


@pytest.mark.parametrize("end_reason", ["time", "password", "account", "nothing was given"])
def test_given_password_is_valid_for_a_limited_time(end_reason: str) -> None:
    user, codes = person_with_factor()
    browser = Client()
    if end_reason != "nothing was given":
        browser.post("/login/", {"username": user.username, "password": PASSWORD, "next": "/runs/"})
    if end_reason == "password":
        user.set_password("another good one")
        user.save()
    if end_reason == "account":
        User.objects.filter(pk=user.pk).update(is_active=False)
    with time_machine.travel(time.time() + (601 if end_reason == "time" else 0)):
        assert browser.post(CODE_PATH, {"code": codes[0]}).headers["Location"] == CODE_PATH
        login_path = "/login/" if end_reason == "nothing was given" else "/login/?next=/runs/"
        assert browser.get(CODE_PATH).headers["Location"] == login_path
        assert not is_logged_in(browser)


def test_no_other_login_bypasses_the_second_factor() -> None:
    user, codes = person_with_factor(is_superuser=True)
    admin_browser = Client()
    admin_browser.post("/admin/login/?next=/admin/", {"username": user.username, "password": PASSWORD})
    assert not is_logged_in(admin_browser)
    by_link = Client()
    user.refresh_from_db()
    form = by_link.get(password_link(user), follow=True).request["PATH_INFO"]
    response = by_link.post(form, {"new_password1": "correct horse battery", "new_password2": "correct horse battery"})
    assert response.headers["Location"] == CODE_PATH
    assert not is_logged_in(by_link)
    assert by_link.post(CODE_PATH, {"code": codes[0]}).status_code == 302
    assert is_logged_in(by_link)
    forced = Client()
    forced.force_login(user)  # whatever logs somebody in without asking
    assert forced.get("/api/v1/runs/").status_code == 401
    assert not is_logged_in(forced)


def test_setup_ends_sessions_without_a_factor_and_removal_ends_none() -> None:
    user = make_user()
    other_browser, browser = browser_after_password(user), browser_after_password(user)
    assert is_logged_in(other_browser)
    set_up(browser)
    assert (is_logged_in(other_browser), is_logged_in(browser)) == (False, True)
    assert browser.post(FACTOR_PATH + "remove/", {"password": "wrong"}).status_code == 400
    assert Authenticator.objects.count() == 2
    browser.post(FACTOR_PATH + "remove/", {"password": PASSWORD})
    assert not Authenticator.objects.exists()
    assert is_logged_in(browser)
    assert is_logged_in(browser_after_password(user))
    assert ("second_factor.removed", {}) in events(user)


@pytest.mark.parametrize(
    ("mode", "role", "is_required"),
    [
        ("offered", Role.ADMIN, False), ("leads", Role.ADMIN, True), ("leads", Role.LEAD, True),
        ("leads", Role.EVALUATOR, False), ("leads", Role.REVIEWER, False), ("leads", None, False), ("all", None, True),
    ],
)  # fmt: skip
def test_required_setup_blocks_everything_else(settings: Any, mode: str, role: Role | None, is_required: bool) -> None:
    settings.CONCORD_SECOND_FACTOR = mode
    user = make_user(role)
    browser = browser_after_password(user)
    if not is_required:
        assert browser.get("/runs/").status_code == 200
        return
    assert browser.get("/runs/?page=2").headers["Location"] == FACTOR_PATH + "?next=%2Fruns%2F%3Fpage%3D2"
    for path in ("/", "/account/", "/admin/", "/nowhere/", "/account/second-factor/codes/", "/queues/"):
        assert browser.get(path).headers["Location"].startswith(FACTOR_PATH + "?next="), path
        assert browser.post(path).headers["Location"].startswith(FACTOR_PATH + "?next="), path
    assert browser.get("/api/v1/runs/").status_code == 401
    assert browser.post("/account/tokens/", {"name": "x"}).headers["Location"].startswith(FACTOR_PATH)
    page = browser.get(FACTOR_PATH + "?next=/runs/").content.decode()
    assert "Your account needs a second factor" in page
    assert 'href="/runs/"' not in page
    assert browser.post("/language/", {"language": "ko", "next": FACTOR_PATH}).status_code == 302
    assert 'href="/runs/">' in set_up(browser, next="/runs/").content.decode()
    assert browser.get("/runs/").status_code == 200
    browser.post(FACTOR_PATH + "remove/", {"password": PASSWORD})
    assert browser.get("/runs/").headers["Location"].startswith(FACTOR_PATH)  # another one, then
    assert browser.post("/logout/").headers["Location"].startswith("/login/")


def test_requirement_of_a_role_applies_at_once(settings: Any) -> None:
    settings.CONCORD_SECOND_FACTOR = "leads"
    user = make_user(Role.VIEWER)
    browser = browser_after_password(user)
    assert browser.get("/runs/").status_code == 200
    RoleGrant.objects.create(user=user, project=make_project(), role=Role.LEAD)
    assert browser.get("/runs/").headers["Location"].startswith(FACTOR_PATH)


def test_administrators_reset_factors_of_people_they_may_change() -> None:
    project = make_project()
    user, _ = person_with_factor(Role.REVIEWER, project=project)
    address = reverse("admin:person-second-factor", args=[user.pk])
    change = reverse("admin:evaluation_user_change", args=[user.pk])
    root, chief = make_user(is_superuser=True), make_user(Role.ADMIN, project=project)
    expectations = [(make_user(role, project=project), 404) for role in (Role.LEAD, Role.EVALUATOR)]
    expectations += [(make_user(Role.ADMIN), 404), (make_user(Role.REVIEWER, project=project), 302), (make_user(), 302)]
    for stranger, status in expectations:
        assert browser_after_password(stranger).post(address).status_code == status, stranger.grants.all()
    assert Client().post(address).status_code == 302
    assert Authenticator.objects.filter(user=user).count() == 2
    browser = browser_after_password(chief)
    assert browser.get(address, follow=True).redirect_chain[-1][0] == change
    assert "Reset the second factor" in browser.get(change).content.decode()
    assert browser.post(address).headers["Location"] == change
    assert not Authenticator.objects.filter(user=user).exists()
    last = AuditEvent.objects.get(verb="second_factor.reset")
    assert (last.actor, last.object_id, last.detail) == (chief, str(user.pk), {})
    assert is_logged_in(browser_after_password(user))
    assert "Reset the second factor" not in browser.get(change).content.decode()
    assert browser_after_password(root).post(address).status_code == 404  # there is none


def test_tokens_and_provider_logins_need_no_code(settings: Any) -> None:
    settings.CONCORD_SECOND_FACTOR = "all"
    user, _ = person_with_factor(Role.LEAD)
    text, sha256 = new_token()
    project = user.grants.get().project
    ends = "2999-01-01T00:00Z"
    ApiToken.objects.create(
        user=user, made_by=user, project=project, name="n", scope="read", sha256=sha256, expires_at=ends
    )
    assert Client().get("/api/v1/runs/", headers={"Authorization": f"Bearer {text}"}).status_code == 200
    browser = Client()
    browser.force_login(user)
    session = browser.session
    session[PROVIDER_SESSION_KEY] = True
    session.save()
    assert is_logged_in(browser)
    browser.post("/logout/")
    browser.force_login(user)
    assert not is_logged_in(browser)


def test_new_secret_key_works_while_the_old_one_is_a_fallback(settings: Any) -> None:
    user, codes = person_with_factor()
    secret, old_key = secret_of(user), settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "x" * 60, [old_key]
    assert browser_after_password(user).post(CODE_PATH, {"code": code(secret)}).status_code == 302
    settings.SECRET_KEY_FALLBACKS = []
    browser = browser_after_password(user)
    assert browser.post(CODE_PATH, {"code": codes[0]}).status_code == 200
    assert not is_logged_in(browser)


def test_factors_are_not_in_the_admin_and_are_erased_with_the_user() -> None:
    assert Authenticator not in admin.site._registry
    user, _ = person_with_factor()
    erase_person(user, by=None)
    assert not Authenticator.objects.exists()


def test_page_costs_a_single_additional_query(settings: Any) -> None:
    browser = browser_after_password(make_user())
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            assert browser.get("/account/data-retention/").status_code == 200
        counts.append(len(queries))
        settings.MIDDLEWARE = [
            middleware for middleware in settings.MIDDLEWARE if not middleware.endswith("SecondFactorMiddleware")
        ]
        browser.handler.load_middleware()
    assert counts[0] == counts[1] + 1
