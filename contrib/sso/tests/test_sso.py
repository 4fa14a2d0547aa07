"""Logging in by OpenID Connect, between a site, a provider and a browser on real sockets (17.7)."""

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
PEOPLE = {
    "lead": {},
    "reviewer": {},
    "stranger": {},
    "twin1": {"email": "twin@example.org"},
    "twin2": {"email": "Twin@example.org"},
    "root": {"is_superuser": True},
    "gone": {"is_active": False},
    "program": {"is_service": True},
}
MAKE = f"""
from django.contrib.auth.hashers import make_password
from evaluation.models import User, Project, RoleGrant
hashed = make_password({PASSWORD!r})
for name, told in {PEOPLE!r}.items():
    User.objects.create(username=name, password=hashed, **{{"email": name + "@example.org", **told}})
for name in ("lead", "reviewer"):
    RoleGrant.objects.create(user=User.objects.get(username=name), project=Project.objects.first(), role=name)
"""


class Sso:
    """The provider, a site that knows it (``strict``), and one on the same database that goes by addresses of mails."""

    def __init__(self, folder: Path) -> None:
        self.provider = SsoProvider()
        self.file = folder / "sso.sqlite3"
        self.site = Site(folder, f"sqlite:///{self.file}", "")
        told = {"ISSUER": self.provider.issuer, "CLIENT": CLIENT, "SECRET": SECRET, "NAME": "Team ID"}
        self.site.environment |= {f"CONCORD_OIDC_{name}": value for name, value in told.items()}
        self.site.manage("migrate", "--verbosity", "0")
        self.site.manage("shell", "--no-imports", "-c", MAKE)
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

    def link(self, name: str, subject: str) -> None:
        told = (self.provider.issuer, subject, name)
        self.sql(
            "INSERT INTO socialaccount_socialaccount (provider, uid, user_id, last_login, date_joined, extra_data)"
            " SELECT ?, ?, id, '2026-01-01', '2026-01-01', '{}' FROM evaluation_user WHERE username = ?",
            *told,
        )


def led_to(answer: Any) -> str:
    """Where a page has the browser go on to."""
    found = re.search(r'<meta http-equiv="refresh" content="0; url=([^"]+)">', answer.text)
    return html.unescape(found[1]) if found else ""


class Browser:
    """Somebody's browser at a site."""

    def __init__(self, origin: str) -> None:
        self.origin, self.session = origin, requests.Session()

    def get(self, path: str, **told: Any) -> Any:
        return self.session.get(self.origin + path, timeout=30, **told)

    def post(self, path: str, page: str = "/login/", **fields: str) -> Any:
        """Send the form of a page."""
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get(page).text)
        assert token is not None
        there = self.session.post(self.origin + path, data={"csrfmiddlewaretoken": token[1], **fields}, timeout=30)
        return self.session.get(led_to(there), timeout=30) if led_to(there) else there

    def log_in(self, name: str) -> None:
        assert self.post("/login/", username=name, password=PASSWORD).status_code == 200
        assert self.who == name

    def by_provider(self, **fields: str) -> Any:
        return self.post("/login/sso/", **fields)

    @property
    def who(self) -> str:
        """Whose session it is; nothing for nobody's."""
        page = self.get("/account/", allow_redirects=False)
        found = re.search(r"<summary>(\w+)</summary>", page.text)
        return found[1] if found else ""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sso]:
    made = Sso(tmp_path_factory.mktemp("sso"))
    yield made
    made.site.stop()
    made.provider.server.shutdown()


@pytest.fixture
def sso(world: Sso) -> Sso:
    """Nobody linked, nothing failed, the provider honest."""
    world.sql("DELETE FROM socialaccount_socialaccount")
    world.sql("DELETE FROM evaluation_failedlogin")
    world.provider.be()
    return world


PLACES = ("/", "/runs/", "/adjudication/", "/question-sets/upload/", "/admin/", "/api/v1/runs/")


@pytest.mark.parametrize("name", ["lead", "reviewer", "stranger"])
def test_whoever_is_linked_gets_what_the_password_gives_and_nothing_more(sso: Sso, name: str) -> None:
    sso.link(name, "subject")
    roles = sso.sql("SELECT user_id, role FROM evaluation_rolegrant ORDER BY id")
    before = sso.events("login.succeeded")
    by_password, by_provider = Browser(sso.strict), Browser(sso.strict)
    by_password.log_in(name)
    answer = by_provider.by_provider(next="/account/data-retention/")
    assert (answer.status_code, urlsplit(answer.url).path) == (200, "/account/data-retention/")
    assert by_provider.who == name
    found = [
        [one.get(path, allow_redirects=False).status_code for path in PLACES] for one in (by_password, by_provider)
    ]
    assert found[0] == found[1]
    assert (found[1][3] == 200) == (name == "lead")
    assert sso.sql("SELECT user_id, role FROM evaluation_rolegrant ORDER BY id") == roles
    assert sso.events("login.succeeded") == before + 2
    assert sso.links() == [(name, "subject", "{}")]  # nothing that was claimed is kept


def test_the_way_there_carries_state_nonce_and_pkce_and_no_form_leads_there(sso: Sso) -> None:
    page = Browser(sso.strict).get("/login/")
    assert "Log in by Team ID" in page.text
    assert "form-action 'self';" in page.headers["Content-Security-Policy"] + ";"  # no form leads elsewhere
    browser = Browser(sso.strict)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/login/").text)
    assert token is not None
    where = f"{sso.strict}/login/sso/"
    there = browser.session.post(
        where, {"csrfmiddlewaretoken": token[1], "next": "//evil.example/"}, allow_redirects=False
    )
    asked = {name: texts[0] for name, texts in parse_qs(urlsplit(led_to(there)).query).items()}
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    assert (asked["client_id"], asked["code_challenge_method"]) == (CLIENT, "S256")
    assert asked["redirect_uri"] == f"{sso.strict}/login/sso/callback/"
    assert requests.get(where, timeout=9).status_code == 405  # no link of another site starts it
    assert requests.post(where, timeout=9).status_code == 403
    sso.link("lead", "subject")
    back = browser.session.get(led_to(there), timeout=9)
    assert back.url == f"{sso.strict}/"  # not where somebody else wanted


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
def test_what_the_provider_did_not_say_to_us_now_logs_nobody_in(sso: Sso, lie: str) -> None:
    sso.link("lead", "subject")
    LIES[lie](sso.provider)
    before, failed = sso.events("login.succeeded"), sso.events("login.failed")
    browser = Browser(sso.strict)
    answer = browser.by_provider()
    assert answer.status_code == (503 if lie == "another issuer of the provider" else 403)
    assert browser.who == ""
    assert (sso.events("login.succeeded"), sso.links()) == (before, [("lead", "subject", "{}")])
    assert sso.events("login.failed") == failed + (answer.status_code == 403)


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_a_browser_goes_on_to_a_provider_that_asks_at_another_origin_than_its_issuer(sso: Sso, scripts: bool) -> None:
    sso.link("lead", "subject")
    sso.provider.discovery = {
        "authorization_endpoint": sso.provider.issuer.replace("127.0.0.1", "localhost") + "/authorize"
    }
    with chromium() as browser:
        page = browser.new_context(java_script_enabled=scripts, locale="en").new_page()
        page.goto(f"{sso.strict}/login/?next=/account/data-retention/")
        page.get_by_role("button", name="Log in by Team ID").click()
        page.wait_for_url("**/account/data-retention/")
        page.close()


def test_a_state_that_is_wrong_used_or_of_another_browser_is_refused(sso: Sso) -> None:
    sso.link("lead", "subject")
    first, other = Browser(sso.strict), Browser(sso.strict)
    done = first.by_provider()
    back = next(one for one in done.history if "/callback/" in one.url).url
    asked = sso.provider.asked.count("/token")
    assert other.get(back.removeprefix(sso.strict)).status_code == 403
    assert other.get("/login/sso/callback/?code=x&state=y").status_code == 403
    assert other.get("/login/sso/callback/").status_code == 403
    assert other.get("/login/sso/callback/?error=access_denied&state=y").status_code == 403
    assert first.get(back.removeprefix(sso.strict)).status_code == 403  # a second time
    assert other.who == ""
    assert sso.provider.asked.count("/token") == asked  # nobody's secret is sent for them


@pytest.mark.parametrize("name", ["gone", "program"])
def test_who_may_not_log_in_may_not_by_a_link_either(sso: Sso, name: str) -> None:
    sso.link(name, "subject")
    browser = Browser(sso.strict)
    assert browser.by_provider().status_code == 403
    assert browser.who == ""


@pytest.mark.parametrize(
    ("claims", "whose"),
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
def test_an_address_opens_the_one_account_that_has_it_where_it_is_verified(
    sso: Sso, claims: dict[str, Any], whose: str
) -> None:
    sso.provider.be(**claims)
    strict = Browser(sso.strict)
    assert strict.by_provider().status_code == 403  # only where the operator wants it
    people = sso.sql("SELECT count(*) FROM evaluation_user")
    browser = Browser(sso.by_mail)
    assert browser.by_provider().status_code == (200 if whose else 403)
    assert browser.who == whose
    assert sso.links() == ([(whose, "subject", "{}")] if whose else [])
    assert sso.sql("SELECT count(*) FROM evaluation_user") == people  # nobody gets an account by coming


def test_the_address_counts_the_first_time_only_and_is_asked_for_where_the_token_has_none(sso: Sso) -> None:
    sso.provider.userinfo = {"sub": "subject", "email": "reviewer@example.org", "email_verified": True}
    assert Browser(sso.by_mail).by_provider().status_code == 200
    assert sso.links() == [("reviewer", "subject", "{}")]
    sso.provider.be("another", email="reviewer@example.org", email_verified=True)
    assert Browser(sso.by_mail).by_provider().status_code == 403  # the account has its link
    sso.provider.be("third")
    sso.provider.userinfo = {"sub": "another", "email": "stranger@example.org", "email_verified": True}
    assert Browser(sso.by_mail).by_provider().status_code == 403  # said of somebody else
    sso.provider.be("subject", email="lead@example.org", email_verified=True)
    browser = Browser(sso.by_mail)
    browser.by_provider()
    assert browser.who == "reviewer"  # the link, whatever address they have now


def test_people_link_their_own_account_with_their_password_and_end_the_link(sso: Sso) -> None:
    browser = Browser(sso.strict)
    browser.log_in("lead")
    asked = len(sso.provider.asked)
    assert "The password is wrong" in browser.post("/account/sso/link/", "/account/sso/", password="wrong").text
    assert len(sso.provider.asked) == asked
    assert "Your account is linked" in browser.post("/account/sso/link/", "/account/sso/", password=PASSWORD).text
    assert sso.links() == [("lead", "subject", "{}")]
    other = Browser(sso.strict)
    other.log_in("reviewer")
    assert other.post("/account/sso/link/", "/account/sso/", password=PASSWORD).status_code == 403  # it is the lead's
    assert sso.links() == [("lead", "subject", "{}")]
    assert "linked no more" in browser.post("/account/sso/unlink/", "/account/sso/").text
    assert sso.links() == []
    assert Browser(sso.strict).by_provider().status_code == 403
    nobody = Browser(sso.strict)
    assert urlsplit(nobody.get("/account/sso/").url).path == "/login/"


def test_ten_failures_make_the_address_wait_and_keep_nobody_elses_password_out(sso: Sso) -> None:
    browser = Browser(sso.strict)
    seen = [browser.get("/login/sso/callback/?code=x&state=y").status_code for _ in range(12)]
    assert seen == [403] * 10 + [429] * 2
    assert browser.by_provider().status_code == 429
    Browser(sso.strict).log_in("lead")


def test_a_provider_that_is_away_is_said_so(sso: Sso) -> None:
    sso.provider.discovery = {"authorization_endpoint": None, "issuer": None}
    answer = Browser(sso.strict).by_provider()
    assert answer.status_code == 503
    assert "Nobody can be asked there" in answer.text


def test_erasing_somebody_ends_their_link(sso: Sso) -> None:
    sso.link("twin2", "subject")
    sso.site.manage("purge", "--person", "twin2", "--by", "root")
    assert sso.links() == []
