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
NEW = "correct horse battery"


def choose(client: Client, link: str, password: str = NEW) -> str:
    """Open the link and choose the password; where that leads."""
    form = client.get(link, follow=True)
    if not form.context["validlink"]:
        return "refused"
    answer = client.post(form.request["PATH_INFO"], {"new_password1": password, "new_password2": password})
    return answer.headers.get("Location", "again")


def test_a_new_person_chooses_a_password_by_a_link_that_works_once() -> None:
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
    assert choose(client, link) == "/"
    assert client.get("/account/").status_code == 200  # logged in
    assert choose(Client(), link) == "refused"
    assert Client().post("/login/", {"username": "lee", "password": NEW}).status_code == 302
    verbs = AuditEvent.objects.values_list("verb", flat=True)
    assert {"password.link_made", "password.chosen"} <= set(verbs)


def test_a_weak_password_is_refused_and_the_link_still_works() -> None:
    lee, client = make_user(), Client()
    link = password_link(lee)
    assert choose(client, link, "12345678") == "again"
    assert choose(client, link) == "/"


def test_a_link_is_too_old_after_three_days(monkeypatch: pytest.MonkeyPatch) -> None:
    link = password_link(make_user())
    later = timezone.localtime().replace(tzinfo=None) + timedelta(days=3, minutes=1)
    monkeypatch.setattr("django.contrib.auth.tokens.PasswordResetTokenGenerator._now", lambda _: later)
    assert choose(Client(), link) == "refused"


def test_changing_the_own_password_ends_the_other_sessions() -> None:
    kim = make_user(Role.VIEWER, username="kim")
    here, there = Client(), Client()
    for client in (here, there):
        client.post("/login/", {"username": "kim", "password": "a good password"})
    fields = {"old_password": "a good password", "new_password1": NEW, "new_password2": NEW}
    assert here.post("/account/", fields).headers["Location"] == "/account/"
    assert here.get("/account/").status_code == 200
    assert there.get("/account/").status_code == 302
    assert AuditEvent.objects.get(verb="password.changed").actor == kim


def test_a_wrong_old_password_changes_nothing() -> None:
    client = Client()
    client.force_login(make_user(Role.VIEWER))
    answer = client.post("/account/", {"old_password": "no", "new_password1": NEW, "new_password2": NEW})
    assert "old_password" in answer.context["form"].errors


def test_links_are_made_for_whom_one_may_change_alone() -> None:
    world = make_world()
    boss = User.objects.create_superuser("boss", password=NEW)
    bot = make_user(Role.VIEWER, world.project, is_service=True)
    admin = world.client("admin")
    mate = reverse("admin:person-link", args=[world.people["viewer"].pk])
    assert admin.post(mate).status_code == 200
    assert admin.get(mate).status_code == 405
    assert admin.post(reverse("admin:person-link", args=[boss.pk])).status_code == 404
    assert admin.post(reverse("admin:person-link", args=[bot.pk])).status_code == 403
    assert world.client("lead").post(mate).status_code in {302, 403, 404}
