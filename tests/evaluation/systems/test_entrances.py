"""Systems by command, REST and admin form: one settings model, with errors by field."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.messages.system_settings import CONNECTOR_TITLES, FIELDS
from evaluation.models import Answer, Run, SystemVersion
from evaluation.runs.execution import drain
from evaluation.systems.services import connectors
from examples.rag_service import RagService
from tests.evaluation.rest.clients import evaluator, viewer
from tests.evaluation.systems.asking import make_questions, toy_system
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def run_command(*arguments: str) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output, stderr=io.StringIO())
    return output.getvalue()


def write_settings(folder: Path, **settings: Any) -> str:
    file = folder / "system.json"
    file.write_text(json.dumps(settings))
    return str(file)


def test_commands_add_try_and_evaluate_a_system(rag_service: RagService, tmp_path: Path) -> None:
    question_set = make_questions(3)
    file = write_settings(tmp_path, address=f"{rag_service.origin}/ask")
    assert run_command("add_system", "toy", "--connector", "http", "-f", file).strip() == "toy v1"

    preview = json.loads(
        run_command("try_system", "toy", "--questions", question_set.name, "--k", "2", "--format", "json")
    )
    assert preview["request"]["body"] == {"question": "What is the capital of country 1?", "k": 2}
    assert (preview["reply"]["http_status"], len(preview["mapping"]["contexts"])) == (200, 2)
    assert not Answer.objects.exists()
    text_preview = run_command("try_system", "toy", "--question", "How long?")
    assert next(line for line in text_preview.splitlines() if line.startswith("---")) == "--- request"

    evaluate = ["evaluate", "--questions", question_set.name, "--system", "toy", "--no-judge", "--profile", "graphrag"]
    dry_run = run_command(*evaluate, "--dry-run")
    assert dry_run.splitlines()[0] == "6 units, 0 judge calls, 3 questions to the system"
    assert "unknown" in dry_run.splitlines()[1]  # nobody has asked it before
    assert not Run.objects.exists()
    run_command(*evaluate, "--k", "2", "--format", "json")
    run = Run.objects.get()
    assert (run.state, run.answer_set.k) == (Run.State.COMPLETED, 2)
    assert Answer.objects.filter(answer_set=run.answer_set, status="ok").count() == 3
    rag_service.asked.clear()
    run_command(*evaluate, "--no-ask", "--format", "json")
    assert not rag_service.asked


def test_command_reports_errors_by_setting(rag_service: RagService, tmp_path: Path) -> None:
    make_project()
    errors = io.StringIO()
    file = write_settings(tmp_path, address="no address", reply={"answer": "["}, most_bytes=1)
    with pytest.raises(CommandError, match="3 problem"):
        call_command("add_system", "toy", "--connector", "http", "-f", file, stderr=errors)
    assert [line.split(":")[0] for line in errors.getvalue().splitlines()] == ["address", "reply.answer", "most_bytes"]


def test_try_system_without_an_answer_exits_with_status_100(rag_service: RagService) -> None:
    question_set = make_questions(1)
    toy_system(rag_service, question_set, "/fault/html")
    with pytest.raises(SystemExit) as exit_info:
        run_command("try_system", "toy", "--question", "How long?")
    assert exit_info.value.code == 100


def test_rest_creates_a_system_and_reports_errors(rag_service: RagService) -> None:
    project = make_project()
    caller = evaluator(project)
    body = {
        "project": project.pk,
        "name": "toy",
        "connector": "http",
        "settings": {"address": f"{rag_service.origin}/ask"},
    }
    response = caller.post("systems/", body)
    assert response.status_code == 201
    assert [version["adapter"] for version in response.json()["versions"]] == ["http"]
    assert caller.post("systems/", body).json()["versions"] == response.json()["versions"]
    invalid = caller.post("systems/", {**body, "settings": {"address": "x", "reply": {"answer": "["}}})
    assert invalid.status_code == 400
    assert set(invalid.json()["settings"]) == {"address", "reply.answer"}
    disallowed = caller.post("systems/", {**body, "settings": {"address": "https://elsewhere.example/"}})
    assert (disallowed.status_code, disallowed.json()["code"]) == (409, "system_origin_not_allowed")
    assert viewer(project).post("systems/", body).status_code == 403


@pytest.fixture
def admin_client() -> Client:
    client = Client()
    project = make_project()
    client.force_login(make_user(Role.ADMIN, project, is_staff=True))
    return client


@pytest.mark.parametrize("connector", list(connectors()))
@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_connector_has_an_admin_form(admin_client: Client, connector: str, language: str) -> None:
    address = reverse("admin:evaluation_systemversion_add")
    page = admin_client.get(f"{address}?connector={connector}", headers={"Accept-Language": language})
    assert page.status_code == 200
    assert connector in CONNECTOR_TITLES
    names = {path.rpartition("__")[2] for path in page.context["adminform"].form.fields}
    assert names - set(FIELDS) <= {"project", "system_name", "chosen_connector"}
    reply_field = connectors()[connector].settings.model_fields.get("reply")
    for name, value in reply_field.get_default(call_default_factory=True) if reply_field else ():
        assert page.context["adminform"].form.fields[f"reply__{name}"].initial == value


def test_admin_form_creates_a_version_and_shows_errors_by_field(admin_client: Client, rag_service: RagService) -> None:
    address = reverse("admin:evaluation_systemversion_add")
    form = admin_client.get(f"{address}?connector=http").context["adminform"].form
    form_data: dict[str, Any] = {}
    for name, field in form.fields.items():
        initial = form.get_initial_for_field(field, name)
        form_data[name] = json.dumps(initial) if isinstance(initial, dict) else initial
    form_data = {name: value for name, value in form_data.items() if value not in (None, False)}
    form_data |= {
        "project": logged_in_project_id(admin_client),
        "system_name": "toy",
        "address": f"{rag_service.origin}/ask",
    }
    invalid = admin_client.post(
        f"{address}?connector=http", form_data | {"reply__answer": "[", "address": "no address"}
    )
    assert set(invalid.context["adminform"].form.errors) == {"reply__answer", "address"}
    assert not SystemVersion.objects.exists()
    assert admin_client.post(f"{address}?connector=http", form_data).status_code == 302
    version = SystemVersion.objects.get()
    assert (version.adapter, version.config["address"]) == ("http", f"{rag_service.origin}/ask")
    edit_form = admin_client.get(f"{address}?from={version.pk}").context["adminform"].form
    assert edit_form.get_initial_for_field(edit_form.fields["address"], "address") == f"{rag_service.origin}/ask"


def logged_in_project_id(admin_client: Client) -> int:
    """Id of the logged-in user's project."""
    from evaluation.models import RoleGrant

    return RoleGrant.objects.get(user_id=admin_client.session["_auth_user_id"]).project_id


def test_rest_run_collects_answers_from_a_system(rag_service: RagService) -> None:
    question_set = make_questions(2)
    toy_system(rag_service, question_set)
    caller = evaluator(question_set.project)
    body = {"dataset_id": question_set.pk, "system": "toy", "k": 3, "judge": None, "profile": "graphrag"}
    response = caller.post("runs/", body)
    assert response.status_code == 202, response.content
    run = drain(response.json()["id"], seconds=30)
    assert (run.state, run.answer_set.k, len(rag_service.asked)) == (Run.State.COMPLETED, 3, 2)
    for invalid_body in (
        {},
        {"dataset_id": question_set.pk},
        {"system": "toy"},
        body | {"answer_set": run.answer_set_id},
    ):
        assert caller.post("runs/", invalid_body).status_code == 400, invalid_body
    assert caller.post("runs/", body | {"system": "nobody"}).status_code in {400, 404}
    assert caller.post("runs/", body | {"k": 51}).status_code == 400
