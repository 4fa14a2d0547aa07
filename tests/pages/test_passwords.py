"""Passwords are the person's own: chosen by a link that works once, changed on the page of the account."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from evaluation.accounts import audit
from evaluation.accounts.login import password_link
from evaluation.accounts.password_links import has_address_of_others
from evaluation.core.roles import Role
from evaluation.models import ApiToken, AuditEvent, RoleGrant, User
from evaluation.storage import append_only
from review.models import Rating
from tests.factories import make_user
from tests.pages.world import World, make_world
from tests.review.clients import GOOD

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "correct horse battery"


def choose_password(client: Client, link: str, password: str = NEW_PASSWORD) -> str:
    """Open the link and choose the password; where that leads."""
    form = client.get(link, follow=True)
    if not form.context["validlink"]:
        return "refused"
    answer = client.post(form.request["PATH_INFO"], {"new_password1": password, "new_password2": password})
    return answer.headers.get("Location", "again")


def test_new_user_sets_password_by_single_use_link() -> None:
    world = make_world()
    page = (
        world.client("admin")
        .post(reverse("admin:evaluation_user_add"), {"username": "lee", "is_active": "on"})
        .content.decode()
    )
    link = "/password/" + page.partition("http://testserver/password/")[2].partition("<")[0]
    lee = User.objects.get(username="lee")
    assert not lee.has_usable_password()
    client = Client()
    assert choose_password(client, link) == "/"
    assert client.get("/account/").status_code == 200  # logged in
    assert choose_password(Client(), link) == "refused"
    assert Client().post("/login/", {"username": "lee", "password": NEW_PASSWORD}).status_code == 302
    verbs = AuditEvent.objects.values_list("verb", flat=True)
    assert {"password.link_made", "password.chosen"} <= set(verbs)


def test_weak_password_is_refused_and_link_stays_valid() -> None:
    lee, client = make_user(), Client()
    link = password_link(lee)
    assert choose_password(client, link, "12345678") == "again"
    assert choose_password(client, link) == "/"


def test_password_link_expires_after_three_days(monkeypatch: pytest.MonkeyPatch) -> None:
    link = password_link(make_user())
    expiry = timezone.localtime().replace(tzinfo=None) + timedelta(days=3, minutes=1)
    monkeypatch.setattr("django.contrib.auth.tokens.PasswordResetTokenGenerator._now", lambda _: expiry)
    assert choose_password(Client(), link) == "refused"


@pytest.mark.parametrize("standing", [{"is_active": False}, {"is_service": True}])
def test_link_of_somebody_who_may_not_log_in_is_refused(standing: dict[str, bool]) -> None:
    lee = make_user()
    link = password_link(lee)
    User.objects.filter(pk=lee.pk).update(**standing)
    assert choose_password(Client(), link) == "refused"


def test_password_change_ends_other_sessions() -> None:
    kim = make_user(Role.VIEWER, username="kim")
    current, other_client = Client(), Client()
    for client in (current, other_client):
        client.post("/login/", {"username": "kim", "password": "a good password"})
    fields = {"old_password": "a good password", "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    assert current.post("/account/", fields).headers["Location"] == "/account/"
    assert current.get("/account/").status_code == 200
    assert other_client.get("/account/").status_code == 302
    assert AuditEvent.objects.get(verb="password.changed").actor == kim


@pytest.mark.parametrize("change", ["link", "account", "new token", "revoked token"])
def test_nothing_changes_without_its_audit_event(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    kim = world.people["lead"]
    client, link = world.client("lead"), password_link(kim)
    token = ApiToken.objects.create(
        user=kim,
        sha256="0" * 64,
        name="t",
        project=world.project,
        scope="read",
        expires_at=timezone.now() + timedelta(1),
    )
    before = User.objects.get(pk=kim.pk).password

    browser = Client()
    form = browser.get(link, follow=True).request["PATH_INFO"]
    password = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    person, address, fields = {
        "link": (browser, form, password),
        "account": (client, "/account/", {"old_password": "a good password", **password}),
        "new token": (
            client, reverse("token-make"), {"name": "n", "project": world.project.pk, "scope": "read", "days": 1}
        ),
        "revoked token": (client, reverse("token-revoke", args=[token.pk]), {}),
    }[change]  # fmt: skip

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(audit, "record", fail)
    with pytest.raises(RuntimeError, match="killed"):
        person.post(address, fields)
    assert User.objects.get(pk=kim.pk).password == before
    assert list(ApiToken.objects.filter(user=kim).values_list("pk", "revoked_at")) == [(token.pk, None)]


def test_wrong_old_password_changes_nothing() -> None:
    client = Client()
    client.force_login(make_user(Role.VIEWER))
    answer = client.post(
        "/account/", {"old_password": "no", "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    )
    assert "old_password" in answer.context["form"].errors


def make_link(admin: Client, person: User) -> str:
    """Press the button of the person's page and return the link."""
    page = admin.post(reverse("admin:person-link", args=[person.pk])).content.decode()
    return "/password/" + page.partition("http://testserver/password/")[2].partition("<")[0]


def log_in(name: str, password: str = NEW_PASSWORD) -> Client:
    client = Client()
    assert client.post("/login/", {"username": name, "password": password}).status_code == 302
    return client


def warnings_of(client: Client) -> str:
    return client.get("/", headers={"accept-language": "en"}).content.decode()


@dataclass(frozen=True)
class Takeover:
    """An expert who has logged in before, and an administrator who makes links for them."""

    world: World
    expert: User
    admin: Client

    def rating(self, client: Client) -> Rating:
        """The expert's rating of the next item, sent by the client."""
        address = f"/api/v1/review-queues/{self.world.queue.pk}/next/"
        item = client.post(address, {}, content_type="application/json").json()["id"]
        body = {"values": GOOD, "idempotency_key": f"k{item}"}
        response = client.post(f"/api/v1/items/{item}/submit/", body, content_type="application/json")
        assert response.status_code == 200, response.content
        return Rating.objects.filter(reviewer=self.expert).order_by("-pk")[0]


@pytest.fixture
def takeover() -> Takeover:
    world = make_world()
    expert = world.people["member"]
    log_in(expert.username, "a good password")
    expert.refresh_from_db()
    return Takeover(world, expert, world.client("admin"))


def move_back(expert: User, span: timedelta) -> None:
    """Let time pass since the password was chosen."""
    expert.refresh_from_db()
    assert expert.not_blind_until is not None
    User.objects.filter(pk=expert.pk).update(not_blind_until=expert.not_blind_until - span)


def test_rating_after_a_link_of_an_administrator_is_not_blind(takeover: Takeover) -> None:
    """Logging out and in again with the chosen password, or a token made there, does not help."""
    expert, client = takeover.expert, Client()
    assert choose_password(client, make_link(takeover.admin, expert)) == "/"
    assert takeover.rating(client).blind is False
    again = log_in(expert.username)
    assert takeover.rating(again).blind is False
    fields = {"name": "n", "project": takeover.world.project.pk, "scope": "write", "days": 30}
    page = again.post(reverse("token-make"), fields).content.decode()
    token = "concord_" + page.partition("concord_")[2].partition("<")[0]
    move_back(expert, timedelta(days=6, hours=23))
    assert takeover.rating(log_in(expert.username)).blind is False
    move_back(expert, timedelta(hours=2))
    assert takeover.rating(log_in(expert.username)).blind is True
    assert ApiToken.objects.get(name="n").made_by is None
    by_token = Client(headers={"authorization": f"Bearer {token}"})
    assert takeover.rating(by_token).blind is False
    event = AuditEvent.objects.get(verb="password.chosen")
    assert event.detail["not_blind_until"] > timezone.now().isoformat()


def test_rating_after_an_own_link_or_an_invitation_is_blind(takeover: Takeover) -> None:
    world, expert = takeover.world, takeover.expert
    User.objects.filter(pk=expert.pk).update(last_login=None)
    assert choose_password(client := Client(), make_link(takeover.admin, expert)) == "/"
    assert takeover.rating(client).blind is True
    RoleGrant.objects.create(user=expert, project=world.project, role=Role.ADMIN)
    User.objects.filter(pk=expert.pk).update(is_staff=True)
    own_link = make_link(log_in(expert.username), expert)
    assert choose_password(client := Client(), own_link) == "/"
    assert takeover.rating(client).blind is True
    # Another administrator's link among those that are valid counts.
    own_link = make_link(log_in(expert.username), expert)
    make_link(takeover.admin, expert)
    assert choose_password(client := Client(), own_link) == "/"
    assert takeover.rating(client).blind is False


def test_link_of_a_command_counts_as_another_persons(takeover: Takeover) -> None:
    assert choose_password(client := Client(), password_link(takeover.expert)) == "/"
    assert takeover.rating(client).blind is False


def test_unused_link_changes_no_rating_but_is_told_at_login(takeover: Takeover) -> None:
    expert, admin = takeover.expert, takeover.world.people["admin"]
    make_link(takeover.admin, expert)
    client = log_in(expert.username, "a good password")
    assert f"{admin.display_name} created a link" in (page := warnings_of(client))
    assert "not blind" not in page
    assert "created a link" not in warnings_of(client)
    assert takeover.rating(client).blind is True
    assert "created a link" in warnings_of(log_in(expert.username, "a good password"))
    # Thirty days later it is told at the first login alone.
    with append_only.suspended():
        AuditEvent.objects.update(created_at=timezone.now() - timedelta(days=40))
    assert "created a link" not in warnings_of(log_in(expert.username, "a good password"))
    User.objects.filter(pk=expert.pk).update(last_login=timezone.now() - timedelta(days=50))
    assert "created a link" in warnings_of(log_in(expert.username, "a good password"))


def test_used_link_is_told_at_login_with_its_effect(takeover: Takeover) -> None:
    client = Client()
    choose_password(client, make_link(takeover.admin, takeover.expert))
    assert "created a link" in (page := warnings_of(client))
    assert "not blind until" in page


@pytest.mark.parametrize("works", [True, False])
def test_link_is_mailed_to_the_person_where_a_mail_server_is_set(
    takeover: Takeover, settings: Any, monkeypatch: pytest.MonkeyPatch, mailoutbox: list[Any], works: bool
) -> None:
    expert, admin = takeover.expert, takeover.world.people["admin"]
    User.objects.filter(pk=expert.pk).update(email="expert@example.org", language="en")
    settings.CONCORD_MAIL = {"EMAIL_HOST": "mail.example"}

    def fail(*_: Any, **__: Any) -> int:
        raise OSError("unreachable")

    if not works:
        monkeypatch.setattr(EmailMessage, "send", fail)
    page = takeover.admin.post(reverse("admin:person-link", args=[expert.pk])).content.decode()
    event = AuditEvent.objects.get(verb="password.link_made")
    assert (event.detail, event.actor) == ({"by_other": True, "mailed": works}, admin)
    if works:
        (mail,) = mailoutbox
        assert mail.to == ["expert@example.org"]
        assert f"{admin.display_name} created a link" in mail.body
        assert "/password/" not in mail.body
        assert "notified by e-mail" in page
    else:
        assert "The e-mail could not be sent" in page
    log_page = takeover.admin.get(reverse("admin:evaluation_auditevent_changelist")).content.decode()
    assert "Password links created for others" in log_page
    assert expert.display_name in log_page


def test_old_address_is_told_of_a_new_one(takeover: Takeover, settings: Any, mailoutbox: list[Any]) -> None:
    expert = takeover.expert
    User.objects.filter(pk=expert.pk).update(email="expert@example.org")
    settings.CONCORD_MAIL = {"EMAIL_HOST": "mail.example"}
    fields = {"username": expert.username, "email": "mine@example.org", "is_active": "on"}
    assert takeover.admin.post(reverse("admin:evaluation_user_change", args=[expert.pk]), fields).status_code == 302
    assert [mail.to for mail in mailoutbox] == [["expert@example.org"]]
    assert has_address_of_others(expert)


def test_audit_log_shows_used_links_with_their_end(takeover: Takeover) -> None:
    log_page = takeover.admin.get(reverse("admin:evaluation_auditevent_changelist")).content.decode()
    assert "Password links created for others" not in log_page
    choose_password(Client(), make_link(takeover.admin, takeover.expert))
    log_page = takeover.admin.get(reverse("admin:evaluation_auditevent_changelist")).content.decode()
    takeover.expert.refresh_from_db()
    until = date_format(timezone.localtime(takeover.expert.not_blind_until), "DATETIME_FORMAT")
    assert until in log_page


def test_password_links_need_permission_to_change_the_user() -> None:
    world = make_world()
    boss = User.objects.create_superuser("boss", password=NEW_PASSWORD)
    bot = make_user(Role.VIEWER, world.project, is_service=True)
    admin = world.client("admin")
    mate = reverse("admin:person-link", args=[world.people["viewer"].pk])
    assert admin.post(mate).status_code == 200
    assert admin.get(mate).status_code == 302
    assert admin.post(reverse("admin:person-link", args=[boss.pk])).status_code == 404
    assert admin.post(reverse("admin:person-link", args=[bot.pk])).status_code == 403
    assert world.client("lead").post(mate).status_code in {302, 403, 404}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("PARK", "looks like this one"),
        ("ｐａｒｋ", "already exists"),
        ("pa\u3164rk", "looks like this one"),
        ("\uffa0park\u115f", "looks like this one"),
        ("\u1160", "looks like this one"),
        ("раrk", "Use letters of one script"),
        ("pαrk", "Use letters of one script"),
        ("park", "already exists"),
        ("박park", ""),
        ("парк", ""),
    ],
)
def test_user_names_that_look_alike_are_refused(name: str, message: str) -> None:
    world = make_world()
    make_user(username="park")
    count = User.objects.count()
    page = world.client("admin").post(reverse("admin:evaluation_user_add"), {"username": name, "is_active": "on"})
    assert message in page.content.decode()
    assert User.objects.count() == count + (not message)
