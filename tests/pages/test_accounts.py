"""Logging in and out, and the language of the pages."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def test_login_leads_to_the_requested_page(client: Client) -> None:
    user = make_user(Role.VIEWER)
    redirect = client.get(reverse("run-list"))
    assert redirect.headers["Location"] == "/login/?next=/runs/"
    data = {"username": user.username, "password": "a good password", "next": "/runs/"}
    assert client.post("/login/", data).headers["Location"] == "/runs/"


def test_login_never_redirects_to_another_site(client: Client) -> None:
    user = make_user(Role.VIEWER)
    data = {"username": user.username, "password": "a good password", "next": "//evil.example/"}
    assert client.post("/login/", data).headers["Location"] == "/"


@pytest.mark.parametrize(
    ("page", "return_path"),
    [
        ("http://testserver/items/3/", "/items/3/"),
        ("http://testserver/runs/?state=failed", "/runs/%3Fstate%3Dfailed"),
        ("https://evil.example/items/3/", "/"),
        ("", "/"),
    ],
)
def test_login_after_expired_form_returns_to_its_page(client: Client, page: str, return_path: str) -> None:
    address = reverse("review-finalise", args=[3])  # takes forms alone: nobody can be led there
    answer = client.post(address, {"decision": "keep"}, headers={"Referer": page} if page else {})
    assert answer.headers["Location"] == f"/login/?next={return_path}"


def test_wrong_password_shows_a_message(client: Client) -> None:
    page = client.post("/login/", {"username": "nobody", "password": "wrong"}, headers={"Accept-Language": "ko"})
    content = page.content.decode()
    assert 'role="alert"' in content
    assert "이름 또는 비밀번호가 맞지 않습니다." in content
    assert "와/과" not in content  # Django's own text has both particles


def test_logout_requires_post(client: Client) -> None:
    client.force_login(make_user(Role.VIEWER))
    assert client.get(reverse("logout")).status_code == 405
    client.post(reverse("logout"))
    assert client.get(reverse("home")).status_code == 302


@pytest.mark.parametrize(("language", "other_language"), [("ko", "English"), ("en", "한국어")])
def test_language_is_stored_for_user_and_browser(client: Client, language: str, other_language: str) -> None:
    user = make_user(Role.VIEWER)
    client.force_login(user)
    answer = client.post(reverse("language"), {"language": language, "next": "/runs/"})
    assert answer.headers["Location"] == "/runs/"
    user.refresh_from_db()
    assert user.language == language
    assert client.cookies["django_language"].value == language
    page = client.get(reverse("home")).content.decode()
    assert f'<html lang="{language}">' in page
    assert other_language in page


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", ""])
def test_language_switch_never_redirects_to_another_site(client: Client, target: str) -> None:
    assert client.post(reverse("language"), {"language": "ko", "next": target}).headers["Location"] == "/"


def test_unknown_language_changes_nothing(client: Client) -> None:
    user = make_user(Role.VIEWER)
    client.force_login(user)
    client.post(reverse("language"), {"language": "xx"})
    user.refresh_from_db()
    assert user.language == ""
    assert "django_language" not in client.cookies


def test_navigation_shows_only_pages_the_role_allows(client: Client) -> None:
    project = make_project()
    for role, visible_links, hidden_links in (
        (Role.REVIEWER, ["Review"], ["Runs", "Question sets", "Back office"]),
        (Role.VIEWER, ["Runs", "Question sets"], ["Back office"]),
        (Role.LEAD, ["Runs", "Back office"], []),
    ):
        client.force_login(make_user(role, project))
        page = client.get(reverse("home")).content.decode()
        assert all(f">{title}<" in page for title in visible_links), role
        assert not any(f">{title}<" in page for title in hidden_links), role


def test_empty_site_tells_evaluator_next_step(client: Client) -> None:
    client.force_login(make_user(Role.EVALUATOR))
    page = client.get(reverse("home")).content.decode()
    assert "import_questions" in page
    client.force_login(make_user())
    assert "not in a project" in client.get(reverse("home")).content.decode()
