"""The back office has exactly the rights of the roles' table, and only our own tables."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone

from config.back_office_page import GROUPS
from evaluation.accounts import audit
from evaluation.core.errors import DomainError
from evaluation.core.roles import ALLOWED, Role
from evaluation.criteria.services import check_metric_names
from evaluation.judges.secrets import key_of, store_key
from evaluation.judges.shipped import profile_row
from evaluation.models import (
    ApiToken,
    AuditEvent,
    Endpoint,
    JudgeVersion,
    ProfileVersion,
    Project,
    QuestionSet,
    RoleGrant,
    Run,
    User,
)
from evaluation.profiles.spec import ProfileSpec, shipped_profiles
from tests.examples import first_fast
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_scored_run, make_user
from tests.pages.world import make_world

STAFF = {"evaluator": Role.EVALUATOR, "lead": Role.LEAD, "admin": Role.ADMIN}
pytestmark = pytest.mark.django_db


def list_address(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def add_address(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add")


def change_address(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def test_back_office_lists_only_project_tables() -> None:
    get_resolver().url_patterns  # noqa: B018 -- loads the addresses, and with them the back office
    packages = {model.__module__.partition(".")[0] for model in admin.site._registry}
    assert packages - {"contrib"} == {"evaluation", "review"}


@pytest.mark.parametrize("person", ["anonymous", "stranger", "viewer", "member"])
def test_back_office_requires_staff(person: str) -> None:
    response = make_world().client(person).get(reverse("admin:index"))
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("person", first_fast(list(STAFF), 1))
def test_lists_and_forms_open_only_for_permitted_roles(person: str) -> None:
    world = make_world()
    client = world.client(person)
    for model, table in admin.site._registry.items():
        can_view = STAFF[person] in ALLOWED[table.view_action]
        can_add = (
            table.add_action is not None and STAFF[person] in ALLOWED[table.add_action] and model.__name__ != "Project"
        )
        assert client.get(list_address(model)).status_code == (200 if can_view else 403), model
        assert client.get(add_address(model)).status_code in ({200, 302} if can_add else {403}), model


def test_rows_of_other_projects_are_hidden() -> None:
    world, foreign = make_world(), make_question_set(make_project())
    client = world.client("evaluator")
    assert foreign.name not in client.get(list_address(QuestionSet)).content.decode()
    assert world.question_set.name in client.get(list_address(QuestionSet)).content.decode()
    assert client.get(change_address(foreign)).status_code == 302  # back to the index: it does not exist
    assert client.get(change_address(world.question_set)).status_code == 200


def test_versions_cannot_be_changed_or_deleted() -> None:
    world = make_world()
    page = world.client("admin").get(change_address(world.run.profile_version)).content.decode()
    assert 'name="_save"' not in page
    assert "deletelink" not in page


def test_endpoint_loses_its_key_with_a_new_origin(settings: Any) -> None:
    settings.CONCORD_JUDGE_ORIGINS = ["https://one.example", "https://two.example"]
    world = make_world()
    endpoint = Endpoint.objects.create(name="e", base_url="https://one.example/v1", key_env="CONCORD_KEY_ONE")
    fields = {
        "name": "e",
        "provider": "openai",
        "base_url": "https://two.example/v1",
        "key_env": "CONCORD_KEY_ONE",
        "max_concurrency": 4,
    }
    assert world.client("admin").post(change_address(endpoint), fields).status_code == 302
    endpoint.refresh_from_db()
    assert (endpoint.base_url, endpoint.key_env) == ("https://two.example/v1", "")


def test_endpoint_outside_allow_list_is_refused() -> None:
    world = make_world()
    for url in ("http://169.254.169.254/", "https://user@evil.example/", "https://evil.example/v1"):
        fields = {"name": "e", "provider": "openai", "base_url": url, "key_env": "", "max_concurrency": 4}
        assert world.client("admin").post(add_address(Endpoint), fields).status_code == 200
    assert not Endpoint.objects.exists()


def test_endpoint_key_variable_must_have_the_prefix(settings: Any) -> None:
    settings.CONCORD_JUDGE_ORIGINS = ["https://one.example"]
    client = make_world().client("admin")
    fields = {
        "name": "e",
        "provider": "openai",
        "base_url": "https://one.example/v1",
        "key_env": "SECRET_KEY",
        "max_concurrency": 4,
    }
    answer = client.post(add_address(Endpoint), fields)
    assert "CONCORD_KEY_" in answer.content.decode()
    assert not Endpoint.objects.exists()
    fields |= {"key_env": "CONCORD_KEY_E", "requests_per_minute": 30, "tokens_per_minute": 9000}
    assert client.post(add_address(Endpoint), fields).status_code == 302
    endpoint = Endpoint.objects.get()
    assert (endpoint.key_env, endpoint.requests_per_minute, endpoint.tokens_per_minute) == ("CONCORD_KEY_E", 30, 9000)


def test_judge_is_stored_once_per_content() -> None:
    world = make_world()
    endpoint = Endpoint.objects.create(name="e", base_url="https://one.example/v1")
    fields = {
        "project": world.project.pk, "name": "mini", "endpoint": endpoint.pk, "model": "m", "language": "ko",
        "params": '{"temperature": 0}', "method": "said",
    }  # fmt: skip
    client = world.client("evaluator")
    for _ in range(2):
        assert client.post(add_address(JudgeVersion), fields).status_code == 302
    assert list(JudgeVersion.objects.filter(name="mini").values_list("version", "model")) == [(1, "m")]
    fields["model"] = "m2"
    assert client.post(add_address(JudgeVersion), fields).status_code == 302
    assert list(JudgeVersion.objects.filter(name="mini").order_by("version").values_list("version", "model")) == [
        (1, "m"),
        (2, "m2"),
    ]
    fields["method"] = "expected"
    assert client.post(add_address(JudgeVersion), fields).status_code == 302
    newest = JudgeVersion.objects.get(name="mini", version=3)
    assert (newest.model, newest.expects, newest.params) == ("m2", True, {"temperature": 0})
    form_page = client.get(add_address(JudgeVersion), {"from": newest.pk}).content.decode()
    assert '<option value="expected" selected>' in form_page


def test_invalid_profile_form_shows_the_error() -> None:
    world = make_world()
    profile_count = ProfileVersion.objects.count()
    page = world.client("evaluator").post(
        add_address(ProfileVersion), {"project": world.project.pk, "text": "name: [x"}
    )
    assert page.status_code == 200
    assert "errorlist" in page.content.decode()
    assert ProfileVersion.objects.count() == profile_count


_OWN = """name: standard
title: {en: Ours, ko: 우리 것}
reported: [%s]
"""


def test_unknown_metric_in_profile_is_refused_with_suggestions() -> None:
    world = make_world()
    fields = {"project": world.project.pk, "text": _OWN % "keyword_hitt"}
    page = world.client("evaluator").post(add_address(ProfileVersion), fields)
    assert page.status_code == 200
    assert "keyword_hitt" in page.content.decode().split("errorlist")[1]
    assert "keyword_hit" in page.content.decode().split("Similar names:")[1][:40]
    assert not ProfileVersion.objects.filter(name="standard", spec__title__en="Ours").exists()


def test_profile_may_name_an_inactive_criterion_of_its_project() -> None:
    world = make_world()
    fields = {"project": world.project.pk, "text": _OWN % world.criterion.criterion.name}
    assert world.client("evaluator").post(add_address(ProfileVersion), fields).status_code == 302


def test_edited_profile_records_author_and_overrides_the_shipped_one() -> None:
    world = make_world()
    shipped = profile_row(world.project, "standard")
    fields = {"project": world.project.pk, "text": _OWN % "keyword_hit"}
    assert world.client("evaluator").post(add_address(ProfileVersion), fields).status_code == 302
    profile = profile_row(world.project, "standard")
    assert (profile.version, profile.created_by) == (shipped.version + 1, world.people["evaluator"])


@pytest.mark.parametrize("profile", shipped_profiles(), ids=lambda profile: profile.name)
def test_every_shipped_profile_is_valid(profile: ProfileSpec) -> None:
    check_metric_names(make_project().pk, profile.metrics)


def test_token_is_shown_once_and_stored_as_hash() -> None:
    world = make_world()
    ends = timezone.localtime(timezone.now() + timedelta(days=9))
    fields = {
        "name": "ci", "user": world.people["admin"].pk, "project": world.project.pk, "scope": "read",
        "expires_at_0": ends.strftime("%Y-%m-%d"), "expires_at_1": ends.strftime("%H:%M:%S"),
    }  # fmt: skip
    page = world.client("admin").post(add_address(ApiToken), fields).content.decode()
    text = page.partition("concord_")[2].partition("<")[0]
    token = ApiToken.objects.get()
    assert token.sha256 == sha256(f"concord_{text}".encode()).hexdigest()
    assert text not in world.client("admin").get(change_address(token)).content.decode()
    assert AuditEvent.objects.filter(verb="admin.added", object_id=str(token.pk)).exists()


def test_project_admin_can_neither_create_nor_change_superusers() -> None:
    world = make_world()
    boss = User.objects.create_superuser("boss", password="a good password")
    foreign_user = make_user(Role.VIEWER, make_project())
    client = world.client("admin")
    member = world.people["viewer"]
    client.post(change_address(member), _person_form(member, is_superuser="on"))
    member.refresh_from_db()
    assert not member.is_superuser
    assert client.get(change_address(boss)).status_code == 302
    assert client.get(change_address(foreign_user)).status_code == 302
    assert client.post(reverse("admin:person-link", args=[boss.pk])).status_code == 404


def test_user_with_roles_in_other_projects_is_read_only() -> None:
    world = make_world()
    shared_user = world.people["viewer"]
    RoleGrant.objects.create(user=shared_user, project=make_project(), role=Role.VIEWER)
    assert world.client("admin").post(reverse("admin:person-link", args=[shared_user.pk])).status_code == 403


def test_roles_are_granted_only_in_own_projects(client: Client) -> None:
    world, foreign = make_world(), make_project()
    stranger = world.people["stranger"]
    fields = {"user": stranger.pk, "project": foreign.pk, "role": "admin"}
    assert world.client("admin").post(add_address(RoleGrant), fields).status_code == 200
    assert not RoleGrant.objects.filter(user=stranger).exists()
    assert world.client("admin").post(add_address(RoleGrant), fields | {"project": world.project.pk}).status_code == 302
    assert RoleGrant.objects.filter(user=stranger).exists()


def test_role_form_selects_the_only_project_and_explains_roles(client: Client) -> None:
    project = make_project()
    client.force_login(make_user(Role.ADMIN, project))
    page = client.get(add_address(RoleGrant), headers={"accept-language": "en"}).content.decode()
    assert f'<option value="{project.pk}" selected>' in page
    assert "Reviewer: rates answers without seeing scores first" in page
    assert page.count('name="role"') == len(Role)
    other_project = make_project()
    RoleGrant.objects.create(
        user=User.objects.get(pk=client.session["_auth_user_id"]), project=other_project, role="admin"
    )
    page = client.get(add_address(RoleGrant)).content.decode()
    assert f'<option value="{project.pk}">' in page
    assert f'<option value="{other_project.pk}">' in page


@pytest.mark.slow
def test_lists_are_filtered_by_their_columns_only() -> None:
    client = make_world().client("admin")
    for model, table in admin.site._registry.items():
        columns = {*table.list_display, *(str(name).partition("__")[0] for name in table.list_filter)}
        for field in model._meta.concrete_fields:
            query = f"{field.name}__startswith=p" if field.name not in columns else f"{field.name}__isnull=False"
            status = client.get(f"{list_address(model)}?{query}").status_code
            assert status == (200 if field.name in columns else 400), (model, field.name)


def test_filters_name_no_foreign_project() -> None:
    foreign_project, client = make_project(), make_world().client("admin")
    for model, table in admin.site._registry.items():
        if any("project" in str(name) for name in table.list_filter):
            assert foreign_project.name not in client.get(list_address(model)).content.decode(), model


def test_unknown_filters_leak_nothing() -> None:
    world = make_world()
    for query in ("password__startswith=p", "user__password__startswith=p", "endpoint__key_env__startswith=A"):
        assert world.client("admin").get(f"{list_address(RoleGrant)}?{query}").status_code in {302, 400}


def _person_form(user: User, **overrides: str) -> dict[str, str]:
    joined = timezone.localtime(user.date_joined)
    return {
        "username": user.username, "first_name": "", "last_name": "", "email": "", "language": "", "time_zone": "",
        "is_active": "on", "date_joined_0": joined.strftime("%Y-%m-%d"), **overrides,
    }  # fmt: skip


def test_stored_key_is_never_shown_and_is_lost_with_a_new_address(settings: Any) -> None:
    settings.CONCORD_JUDGE_ORIGINS = ["https://one.example", "https://one.example:444"]
    client = make_world().client("admin")
    fields = {
        "name": "e",
        "provider": "openai",
        "base_url": "https://one.example/v1",
        "key_env": "",
        "max_concurrency": 4,
    }
    assert client.post(add_address(Endpoint), fields | {"key": "sk-very-secret"}).status_code == 302
    endpoint = Endpoint.objects.get()
    assert key_of(endpoint) == "sk-very-secret"
    assert "sk-very" not in endpoint.sealed_key
    pages = [
        client.get(change_address(endpoint)),
        client.get(list_address(Endpoint)),
        client.get(list_address(AuditEvent)),
    ]
    for page in pages:
        assert page.status_code == 200
        assert "sk-very" not in page.content.decode()
        assert endpoint.sealed_key not in page.content.decode()
    assert "sk-very" not in repr(list(AuditEvent.objects.values_list("detail", flat=True)))

    client.post(change_address(endpoint), fields | {"max_concurrency": 5})
    endpoint.refresh_from_db()
    assert (key_of(endpoint), endpoint.max_concurrency) == ("sk-very-secret", 5)

    client.post(change_address(endpoint), fields | {"base_url": "https://one.example:444/v1"})
    endpoint.refresh_from_db()
    assert (endpoint.base_url, endpoint.sealed_key, key_of(endpoint)) == ("https://one.example:444/v1", "", "")

    client.post(change_address(endpoint), fields | {"key": "sk-new"})
    endpoint.refresh_from_db()
    assert key_of(endpoint) == "sk-new"
    client.post(change_address(endpoint), fields | {"forget_key": "on"})
    endpoint.refresh_from_db()
    assert key_of(endpoint) == ""


def test_address_changed_outside_the_form_makes_stored_key_unreadable() -> None:
    endpoint = Endpoint(name="e", base_url="https://one.example/v1")
    store_key(endpoint, "sk-very-secret")
    endpoint.save()
    Endpoint.objects.update(base_url="https://evil.example/v1")
    with pytest.raises(DomainError, match="key_unreadable"):
        key_of(Endpoint.objects.get())


def test_audit_log_names_and_links_objects_and_hides_log_ins(client: Client) -> None:
    run, foreign_run = make_scored_run(name="A run"), make_scored_run(name="A foreign run")
    administrator = make_user(Role.ADMIN, run.project, is_staff=True)
    for subject in (run, foreign_run):
        audit.record(administrator, "run.budget", subject)
    audit.record(administrator, "run.budget", run.answer_set.answers.all()[0])
    audit.record(administrator, "login.succeeded", administrator)
    client.force_login(administrator)
    log = reverse("admin:evaluation_auditevent_changelist")
    page = client.get(log).content.decode()
    assert f'href="{reverse("admin:evaluation_run_change", args=[run.pk])}"' in page
    assert "A run" in page
    assert "A foreign run" not in page
    assert f"evaluation.run {foreign_run.pk}" in page
    assert "login.succeeded</td>" not in page
    assert "login.succeeded</td>" in client.get(log, {"logins": "shown"}).content.decode()
    assert "login.succeeded</td>" in client.get(log, {"verb": "login.succeeded"}).content.decode()


def test_index_lists_setup_steps_until_they_are_done(client: Client) -> None:
    boss = make_user(username="boss", is_superuser=True)
    project = Project.objects.first() or make_project()
    client.force_login(boss)

    def open_steps() -> set[str]:
        page = client.get(reverse("admin:index")).context["page"]
        return {str(step.title) for step in page.steps if not step.done}

    all_steps = {
        "People and roles", "Endpoint", "Judge", "Default profile", "Questions", "System answers",
        "First run", "First review",
    }  # fmt: skip
    assert open_steps() == all_steps
    make_user(Role.REVIEWER, project)
    endpoint = Endpoint.objects.create(name="e", base_url="https://judge.example.org/v1")
    assert open_steps() == all_steps - {"People and roles", "Endpoint"}
    make_judge(project, endpoint=endpoint)
    make_scored_run(make_answer_set(make_question_set(project)))
    assert open_steps() == {"Default profile", "First review"}
    project.default_profile = "graphrag"
    project.save()
    assert open_steps() == {"First review"}
    page = client.get(reverse("admin:index")).content.decode()
    assert f"{reverse('queue-new')}?run=" in page
    assert "1 step left." in page


def test_default_profile_step_links_to_the_project_form() -> None:
    world = make_world()
    client = world.client("admin")
    page = client.get(reverse("admin:index")).context["page"]
    step = next(step for step in page.steps if str(step.title) == "Default profile")
    assert step.address == change_address(world.project)
    assert client.post(step.address, {"name": world.project.name, "default_profile": "none such"}).status_code == 200
    assert client.post(step.address, {"name": world.project.name, "default_profile": "ragas"}).status_code == 302
    world.project.refresh_from_db()
    assert world.project.default_profile == "ragas"


@pytest.mark.parametrize("person", list(STAFF))
@pytest.mark.slow
def test_every_task_and_step_of_the_index_opens_for_its_role(person: str) -> None:
    world = make_world()
    Run.objects.filter(pk=world.run.pk).update(state=Run.State.INCOMPLETE)
    client = world.client(person)
    response = client.get(reverse("admin:index"))
    page = response.context["page"]
    assert [str(link.title) for link in page.attention] == ["1 run is incomplete"]
    links = [*page.attention, *page.tasks, *(link for link in page.steps if link.address and not link.done)]
    assert len(links) > 5
    for link in links:
        assert client.get(link.address).status_code == 200, link
    assert ("Add an endpoint" in {str(link.title) for link in page.tasks}) == (person == "admin")
    titles = [str(group["name"]) for group in response.context["app_list"]]
    assert (titles[0] == "People and permissions") == (person == "admin")
    assert "Answers and runs" in titles
    assert ("Review" in titles) == (person != "evaluator")
    tables = [model["object_name"] for group in response.context["app_list"] for model in group["models"]]
    assert len(tables) == len(set(tables))
    assert {model.__name__ for model in admin.site._registry} == {name for _, _, names in GROUPS for name in names}
