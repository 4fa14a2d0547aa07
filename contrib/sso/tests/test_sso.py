"""Login by OpenID Connect, between a site, a provider and a browser on real sockets."""

from __future__ import annotations

import html
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.faults.site import Site, free_port
from tests.pages.browser import chromium

pytest.importorskip("allauth", reason="the extra 'sso' is not installed")
requests = pytest.importorskip("requests", reason="the extra 'sso' is not installed")
from contrib.sso.tests.sso_provider import CLIENT, SECRET, SsoProvider  # noqa: E402

pytestmark = pytest.mark.slow
PASSWORD = "a good password"
#: name -> how the account is beside having an address
ACCOUNTS = {
    "lead": {},
    "reviewer": {},
    "stranger": {},
    "twin1": {"email": "twin@example.org"},
    "twin2": {"email": "Twin@example.org"},
    "root": {"is_superuser": True},
    "gone": {"is_active": False},
    "program": {"is_service": True},
}
CREATE_ACCOUNTS = f"""
from django.contrib.auth.hashers import make_password
from evaluation.models import User, Project, RoleGrant
hashed = make_password({PASSWORD!r})
for name, told in {ACCOUNTS!r}.items():
    User.objects.create(username=name, password=hashed, **{{"email": name + "@example.org", **told}})
for name in ("lead", "reviewer"):
    RoleGrant.objects.create(user=User.objects.get(username=name), project=Project.objects.first(), role=name)
"""


class Sso:
    """The provider, a site that knows it (``strict``), and a site on the same database that matches e-mail
    addresses."""

    def __init__(self, folder: Path) -> None:
        self.provider = SsoProvider()
        self.file = folder / "sso.sqlite3"
        self.site = Site(folder, f"sqlite:///{self.file}", "")
        oidc_values = {"ISSUER": self.provider.issuer, "CLIENT": CLIENT, "SECRET": SECRET, "NAME": "Team ID"}
        self.site.environment |= {f"CONCORD_OIDC_{name}": value for name, value in oidc_values.items()}
        self.site.manage("migrate", "--verbosity", "0")
        self.site.manage("shell", "--no-imports", "-c", CREATE_ACCOUNTS)
        self.strict = self._start()
        self.site.environment["CONCORD_OIDC_MATCH_EMAIL"] = "1"
        self.by_mail = self._start()

    def _start(self) -> str:
        port = free_port()
        self.site.start("manage.py", "runserver", "--noreload", f"127.0.0.1:{port}")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                requests.get(f"http://127.0.0.1:{port}/healthz", timeout=5)
            except requests.ConnectionError:
                time.sleep(0.2)
            else:
                return f"http://127.0.0.1:{port}"
        raise AssertionError((self.site.folder / "log").read_text())

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.file, timeout=20) as database:
            return database.execute(text, values).fetchall()

    def links(self) -> list[tuple[str, str, str]]:
        return self.sql(
            "SELECT u.username, a.uid, a.extra_data FROM socialaccount_socialaccount a"
            " JOIN evaluation_user u ON u.id = a.user_id ORDER BY a.id"
        )

    def events(self, verb: str) -> int:
        return int(self.sql("SELECT count(*) FROM evaluation_auditevent WHERE verb = ?", verb)[0][0])

    def failures(self) -> int:
        return int(self.sql("SELECT coalesce(sum(count), 0) FROM evaluation_failedlogin")[0][0])

    def link(self, name: str, subject: str) -> None:
        parameters = (self.provider.issuer, subject, name)
        self.sql(
            "INSERT INTO socialaccount_socialaccount (provider, uid, user_id, last_login, date_joined, extra_data)"
            " SELECT ?, ?, id, '2026-01-01', '2026-01-01', '{}' FROM evaluation_user WHERE username = ?",
            *parameters,
        )


def refresh_url(answer: Any) -> str:
    """URL of the page's meta refresh, or an empty string."""
    match = re.search(r'<meta http-equiv="refresh" content="0; url=([^"]+)">', answer.text)
    return html.unescape(match[1]) if match else ""


class Browser:
    """A browser at a site."""

    def __init__(self, origin: str) -> None:
        self.origin, self.session = origin, requests.Session()

    def get(self, path: str, **options: Any) -> Any:
        return self.session.get(self.origin + path, timeout=30, **options)

    def post(self, path: str, page: str = "/login/", **fields: str) -> Any:
        """Send the form of a page."""
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get(page).text)
        assert token is not None
        response = self.session.post(self.origin + path, data={"csrfmiddlewaretoken": token[1], **fields}, timeout=30)
        return self.session.get(refresh_url(response), timeout=30) if refresh_url(response) else response

    def log_in(self, name: str) -> None:
        assert self.post("/login/", username=name, password=PASSWORD).status_code == 200
        assert self.username == name

    def by_provider(self, **fields: str) -> Any:
        return self.post("/login/sso/", **fields)

    @property
    def username(self) -> str:
        """Name of the logged-in user, or an empty string."""
        page = self.get("/account/", allow_redirects=False)
        match = re.search(r"<summary>(\w+)</summary>", page.text)
        return match[1] if match else ""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sso]:
    sso_site = Sso(tmp_path_factory.mktemp("sso"))
    yield sso_site
    sso_site.site.stop()
    sso_site.provider.server.shutdown()


@pytest.fixture
def sso(world: Sso) -> Sso:
    """A fresh state: no links, no failures, an honest provider."""
    world.sql("DELETE FROM socialaccount_socialaccount")
    world.sql("DELETE FROM evaluation_failedlogin")
    world.provider.reset()
    return world


PATHS = ("/", "/runs/", "/adjudication/", "/question-sets/upload/", "/admin/", "/api/v1/runs/")


@pytest.mark.parametrize("name", ["lead", "reviewer", "stranger"])
def test_linked_account_gets_the_same_access_as_by_password(sso: Sso, name: str) -> None:
    sso.link(name, "subject")
    roles = sso.sql("SELECT user_id, role FROM evaluation_rolegrant ORDER BY id")
    initial_logins = sso.events("login.succeeded")
    by_password, by_provider = Browser(sso.strict), Browser(sso.strict)
    by_password.log_in(name)
    answer = by_provider.by_provider(next="/account/data-retention/")
    assert (answer.status_code, urlsplit(answer.url).path) == (200, "/account/data-retention/")
    assert by_provider.username == name
    statuses = [
        [browser.get(path, allow_redirects=False).status_code for path in PATHS]
        for browser in (by_password, by_provider)
    ]
    assert statuses[0] == statuses[1]
    assert (statuses[1][3] == 200) == (name == "lead")
    assert sso.sql("SELECT user_id, role FROM evaluation_rolegrant ORDER BY id") == roles
    assert sso.events("login.succeeded") == initial_logins + 2
    assert sso.links() == [(name, "subject", "{}")]  # nothing that was claimed is kept


def test_authorization_request_has_state_nonce_and_pkce(sso: Sso) -> None:
    page = Browser(sso.strict).get("/login/")
    assert "Log in with Team ID" in page.text
    assert "form-action 'self';" in page.headers["Content-Security-Policy"] + ";"  # no form leads elsewhere
    browser = Browser(sso.strict)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/login/").text)
    assert token is not None
    login_url = f"{sso.strict}/login/sso/"
    response = browser.session.post(
        login_url, {"csrfmiddlewaretoken": token[1], "next": "//evil.example/"}, allow_redirects=False
    )
    params = {name: texts[0] for name, texts in parse_qs(urlsplit(refresh_url(response)).query).items()}
    assert {"state", "nonce", "code_challenge"} <= set(params)
    assert (params["client_id"], params["code_challenge_method"]) == (CLIENT, "S256")
    assert params["redirect_uri"] == f"{sso.strict}/login/sso/callback/"
    assert requests.get(login_url, timeout=9).status_code == 405  # no link of another site starts it
    assert requests.post(login_url, timeout=9).status_code == 403
    sso.link("lead", "subject")
    final_response = browser.session.get(refresh_url(response), timeout=9)
    assert final_response.url == f"{sso.strict}/"  # not where somebody else wanted


LIES: dict[str, Callable[[SsoProvider], object]] = {
    "another nonce": lambda at: at.claims.update(nonce="of another log-in"),
    "no nonce": lambda at: at.claims.update(nonce=None),
    "another issuer in the token": lambda at: at.claims.update(iss="http://evil.example"),
    "another issuer of the provider": lambda at: at.discovery.update(issuer="http://evil.example"),
    "for another client": lambda at: at.claims.update(aud="somebody"),
    "made for another": lambda at: at.claims.update(azp="somebody"),
    "expired": lambda at: at.claims.update(exp=int(time.time()) - 120),
    "never ends": lambda at: at.claims.update(exp=None),
    "no subject": lambda at: at.claims.update(sub=None),
    "another's key": lambda at: setattr(at, "key", at.other_key),
    "unsigned": lambda at: [setattr(at, "key", None), setattr(at, "algorithm", "none")],
    "signed by the secret": lambda at: [setattr(at, "key", SECRET * 10), setattr(at, "algorithm", "HS256")],
    "no token": lambda at: at.tokens.update(id_token=None),
    "no answer": lambda at: at.tokens.update(error="server_error"),
    "keys that are none": lambda at: at.discovery.update(jwks_uri=at.issuer + "/userinfo"),
}


@pytest.mark.parametrize("lie", LIES)
def test_false_provider_data_is_refused(sso: Sso, lie: str) -> None:
    sso.link("lead", "subject")
    LIES[lie](sso.provider)
    initial_logins, initial_failures = sso.events("login.succeeded"), sso.failures()
    browser = Browser(sso.strict)
    answer = browser.by_provider()
    assert answer.status_code == (503 if lie == "another issuer of the provider" else 403)
    assert browser.username == ""
    assert (sso.events("login.succeeded"), sso.links()) == (initial_logins, [("lead", "subject", "{}")])
    assert sso.failures() == initial_failures + (answer.status_code == 403)


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_browser_is_redirected_to_a_provider_at_another_origin(sso: Sso, scripts: bool) -> None:
    sso.link("lead", "subject")
    sso.provider.discovery = {
        "authorization_endpoint": sso.provider.issuer.replace("127.0.0.1", "localhost") + "/authorize"
    }
    with chromium() as browser:
        page = browser.new_context(java_script_enabled=scripts, locale="en").new_page()
        page.goto(f"{sso.strict}/login/?next=/account/data-retention/")
        page.get_by_role("button", name="Log in with Team ID").click()
        page.wait_for_url("**/account/data-retention/")
        page.close()


def test_wrong_used_or_foreign_state_is_refused(sso: Sso) -> None:
    sso.link("lead", "subject")
    first, other_browser = Browser(sso.strict), Browser(sso.strict)
    response = first.by_provider()
    callback_url = next(redirect for redirect in response.history if "/callback/" in redirect.url).url
    token_requests = sso.provider.requested_paths.count("/token")
    assert other_browser.get(callback_url.removeprefix(sso.strict)).status_code == 403
    assert other_browser.get("/login/sso/callback/?code=x&state=y").status_code == 403
    assert other_browser.get("/login/sso/callback/").status_code == 403
    assert other_browser.get("/login/sso/callback/?error=access_denied&state=y").status_code == 403
    assert first.get(callback_url.removeprefix(sso.strict)).status_code == 403  # a second time
    assert other_browser.username == ""
    assert sso.provider.requested_paths.count("/token") == token_requests  # nobody's secret is sent for them


@pytest.mark.parametrize("name", ["gone", "program"])
def test_disabled_account_cannot_log_in_by_a_link(sso: Sso, name: str) -> None:
    sso.link(name, "subject")
    browser = Browser(sso.strict)
    assert browser.by_provider().status_code == 403
    assert browser.username == ""


@pytest.mark.parametrize(
    ("claims", "username"),
    [
        ({"email": "reviewer@example.org", "email_verified": True}, "reviewer"),
        ({"email": "Reviewer@Example.org", "email_verified": True}, "reviewer"),
        ({"email": "reviewer@example.org", "email_verified": False}, ""),
        ({"email": "reviewer@example.org", "email_verified": "true"}, ""),
        ({"email": "reviewer@example.org"}, ""),
        ({"email": "twin@example.org", "email_verified": True}, ""),  # whose of two
        ({"email": "root@example.org", "email_verified": True}, ""),  # the site hangs on it
        ({"email": "gone@example.org", "email_verified": True}, ""),
        ({"email": "program@example.org", "email_verified": True}, ""),
        ({"email": "nobody@example.org", "email_verified": True}, ""),
        ({"email_verified": True}, ""),
    ],
)
def test_verified_address_opens_its_only_account(sso: Sso, claims: dict[str, Any], username: str) -> None:
    sso.provider.reset(**claims)
    strict = Browser(sso.strict)
    assert strict.by_provider().status_code == 403  # only where the operator wants it
    user_count = sso.sql("SELECT count(*) FROM evaluation_user")
    browser = Browser(sso.by_mail)
    assert browser.by_provider().status_code == (200 if username else 403)
    assert browser.username == username
    assert sso.links() == ([(username, "subject", "{}")] if username else [])
    assert sso.sql("SELECT count(*) FROM evaluation_user") == user_count  # nobody gets an account by coming


def test_address_counts_once_and_is_fetched_when_the_token_has_none(sso: Sso) -> None:
    sso.provider.userinfo = {"sub": "subject", "email": "reviewer@example.org", "email_verified": True}
    assert Browser(sso.by_mail).by_provider().status_code == 200
    assert sso.links() == [("reviewer", "subject", "{}")]
    sso.provider.reset("another", email="reviewer@example.org", email_verified=True)
    assert Browser(sso.by_mail).by_provider().status_code == 403  # the account has its link
    sso.provider.reset("third")
    sso.provider.userinfo = {"sub": "another", "email": "stranger@example.org", "email_verified": True}
    assert Browser(sso.by_mail).by_provider().status_code == 403  # said of somebody else
    sso.provider.reset("subject", email="lead@example.org", email_verified=True)
    browser = Browser(sso.by_mail)
    browser.by_provider()
    assert browser.username == "reviewer"  # the link, whatever address they have now


def test_login_by_an_address_that_another_person_set_is_not_blind(sso: Sso) -> None:
    sso.sql("UPDATE evaluation_user SET not_blind_until = NULL")
    users = "SELECT username FROM evaluation_user WHERE not_blind_until IS NOT NULL"
    for name in ("lead", "stranger"):
        Browser(sso.strict).log_in(name)
    sso.sql(
        "INSERT INTO evaluation_auditevent"
        " (created_at, actor_id, verb, object_type, object_id, detail, prev_hash, hash)"
        " SELECT '2026-01-01', (SELECT id FROM evaluation_user WHERE username = 'lead'), 'admin.changed',"
        " 'evaluation.user', id, ?, 'before', 'after' FROM evaluation_user WHERE username = 'stranger'",
        '{"fields": ["email"]}',
    )
    for number, name in enumerate(("lead", "stranger")):
        sso.provider.reset(f"subject-{number}", email=f"{name}@example.org", email_verified=True)
        assert Browser(sso.by_mail).by_provider().status_code == 200
    assert sso.sql(users) == [("stranger",)]
    browser = Browser(sso.strict)
    browser.log_in("stranger")
    sso.sql("DELETE FROM socialaccount_socialaccount")
    page = browser.post("/account/sso/link/", "/account/sso/", password=PASSWORD)
    assert "7 days after that" in page.text
    assert sso.links() == []
    sso.sql("UPDATE evaluation_user SET not_blind_until = NULL")


def test_users_link_their_own_account_by_password_and_end_the_link(sso: Sso) -> None:
    browser = Browser(sso.strict)
    browser.log_in("lead")
    request_count = len(sso.provider.requested_paths)
    assert "Wrong password" in browser.post("/account/sso/link/", "/account/sso/", password="wrong").text
    assert len(sso.provider.requested_paths) == request_count
    assert "Your account is linked" in browser.post("/account/sso/link/", "/account/sso/", password=PASSWORD).text
    assert sso.links() == [("lead", "subject", "{}")]
    other_browser = Browser(sso.strict)
    other_browser.log_in("reviewer")
    assert (
        other_browser.post("/account/sso/link/", "/account/sso/", password=PASSWORD).status_code == 403
    )  # it is the lead's
    assert sso.links() == [("lead", "subject", "{}")]
    assert "no longer linked" in browser.post("/account/sso/unlink/", "/account/sso/").text
    assert sso.links() == []
    assert Browser(sso.strict).by_provider().status_code == 403
    anonymous_browser = Browser(sso.strict)
    assert urlsplit(anonymous_browser.get("/account/sso/").url).path == "/login/"


def test_ten_failures_block_the_address_but_no_passwords(sso: Sso) -> None:
    browser = Browser(sso.strict)
    statuses = [browser.get("/login/sso/callback/?code=x&state=y").status_code for _ in range(12)]
    assert statuses == [403] * 10 + [429] * 2
    assert browser.by_provider().status_code == 429
    Browser(sso.strict).log_in("lead")


def test_unavailable_provider_is_reported(sso: Sso) -> None:
    sso.provider.discovery = {"authorization_endpoint": None, "issuer": None}
    answer = Browser(sso.strict).by_provider()
    assert answer.status_code == 503
    assert "The sign-in service is not responding" in answer.text


def test_erasing_a_user_ends_the_link(sso: Sso) -> None:
    sso.link("twin2", "subject")
    sso.site.manage("purge", "--person", "twin2", "--by", "root")
    assert sso.links() == []
