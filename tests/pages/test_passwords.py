"""Passwords are the person's own: chosen by a link that works once, changed on the page of the account."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.accounts.login import password_link
from evaluation.core.roles import Role
from evaluation.models import AuditEvent, User
from tests.factories import make_user
from tests.pages.world import make_world

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


def test_wrong_old_password_changes_nothing() -> None:
    client = Client()
    client.force_login(make_user(Role.VIEWER))
    answer = client.post(
        "/account/", {"old_password": "no", "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    )
    assert "old_password" in answer.context["form"].errors


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
