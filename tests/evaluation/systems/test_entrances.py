"""A system by command, REST and the back office: one model of settings, its problems by field."""

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
from tests.evaluation.systems.asking import questions, toy_system
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def command(*arguments: str) -> str:
    said = io.StringIO()
    call_command(*arguments, stdout=said, stderr=io.StringIO())
    return said.getvalue()


def written(folder: Path, **settings: Any) -> str:
    file = folder / "system.json"
    file.write_text(json.dumps(settings))
    return str(file)


def test_a_system_is_made_tried_and_evaluated_by_command(asked: RagService, tmp_path: Path) -> None:
    questioned = questions(3)
    file = written(tmp_path, address=f"{asked.origin}/ask")
    assert command("add_system", "toy", "--connector", "http", "-f", file).strip() == "toy v1"

    tried = json.loads(command("try_system", "toy", "--questions", questioned.name, "--k", "2", "--format", "json"))
    assert tried["request"]["body"] == {"question": "What is the capital of country 1?", "k": 2}
    assert (tried["reply"]["http_status"], len(tried["mapping"]["contexts"])) == (200, 2)
    assert not Answer.objects.exists()
    shown = command("try_system", "toy", "--question", "How long?")
    assert next(line for line in shown.splitlines() if line.startswith("---")) == "--- request"

    evaluate = ["evaluate", "--questions", questioned.name, "--system", "toy", "--no-judge", "--profile", "graphrag"]
    planned = command(*evaluate, "--dry-run")
    assert planned.splitlines()[0] == "6 units, 0 judge calls, 3 questions to the system"
    assert "unknown" in planned.splitlines()[1]  # nobody has asked it before
    assert not Run.objects.exists()
    command(*evaluate, "--k", "2", "--format", "json")
    run = Run.objects.get()
    assert (run.state, run.answer_set.k) == (Run.State.COMPLETED, 2)
    assert Answer.objects.filter(answer_set=run.answer_set, status="ok").count() == 3
    asked.asked.clear()
    command(*evaluate, "--no-ask", "--format", "json")
    assert not asked.asked


def test_a_command_says_what_is_wrong_by_setting(asked: RagService, tmp_path: Path) -> None:
    make_project()
    wrong = io.StringIO()
    file = written(tmp_path, address="no address", reply={"answer": "["}, most_bytes=1)
    with pytest.raises(CommandError, match="3 problem"):
        call_command("add_system", "toy", "--connector", "http", "-f", file, stderr=wrong)
    assert [line.split(":")[0] for line in wrong.getvalue().splitlines()] == ["address", "reply.answer", "most_bytes"]


def test_trying_a_system_that_gives_no_answer_ends_with_100(asked: RagService) -> None:
    questioned = questions(1)
    toy_system(asked, questioned, "/fault/html")
    with pytest.raises(SystemExit) as ended:
        command("try_system", "toy", "--question", "How long?")
    assert ended.value.code == 100


def test_rest_makes_a_system_and_names_what_is_wrong(asked: RagService) -> None:
    project = make_project()
    caller = evaluator(project)
    body = {"project": project.pk, "name": "toy", "connector": "http", "settings": {"address": f"{asked.origin}/ask"}}
    made = caller.post("systems/", body)
    assert made.status_code == 201
    assert [version["adapter"] for version in made.json()["versions"]] == ["http"]
    assert caller.post("systems/", body).json()["versions"] == made.json()["versions"]
    wrong = caller.post("systems/", {**body, "settings": {"address": "x", "reply": {"answer": "["}}})
    assert wrong.status_code == 400
    assert set(wrong.json()["settings"]) == {"address", "reply.answer"}
    elsewhere = caller.post("systems/", {**body, "settings": {"address": "https://elsewhere.example/"}})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (409, "system_origin_not_allowed")
    assert viewer(project).post("systems/", body).status_code == 403


@pytest.fixture
def office() -> Client:
    client = Client()
    project = make_project()
    client.force_login(make_user(Role.ADMIN, project, is_staff=True))
    return client


@pytest.mark.parametrize("connector", list(connectors()))
@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_connector_has_a_form_in_the_back_office(office: Client, connector: str, language: str) -> None:
    address = reverse("admin:evaluation_systemversion_add")
    page = office.get(f"{address}?connector={connector}", headers={"Accept-Language": language})
    assert page.status_code == 200
    assert connector in CONNECTOR_TITLES
    names = {path.rpartition("__")[2] for path in page.context["adminform"].form.fields}
    assert names - set(FIELDS) <= {"project", "system_name", "chosen_connector"}
    usual = connectors()[connector].settings.model_fields.get("reply")
    for name, value in usual.get_default(call_default_factory=True) if usual else ():
        assert page.context["adminform"].form.fields[f"reply__{name}"].initial == value


def test_the_form_makes_a_version_and_shows_problems_at_their_fields(office: Client, asked: RagService) -> None:
    address = reverse("admin:evaluation_systemversion_add")
    form = office.get(f"{address}?connector=http").context["adminform"].form
    said: dict[str, Any] = {}
    for name, field in form.fields.items():
        initial = form.get_initial_for_field(field, name)
        said[name] = json.dumps(initial) if isinstance(initial, dict) else initial
    said = {name: value for name, value in said.items() if value not in (None, False)}
    said |= {"project": make_user_project(office), "system_name": "toy", "address": f"{asked.origin}/ask"}
    wrong = office.post(f"{address}?connector=http", said | {"reply__answer": "[", "address": "no address"})
    assert set(wrong.context["adminform"].form.errors) == {"reply__answer", "address"}
    assert not SystemVersion.objects.exists()
    assert office.post(f"{address}?connector=http", said).status_code == 302
    made = SystemVersion.objects.get()
    assert (made.adapter, made.config["address"]) == ("http", f"{asked.origin}/ask")
    again = office.get(f"{address}?from={made.pk}").context["adminform"].form
    assert again.get_initial_for_field(again.fields["address"], "address") == f"{asked.origin}/ask"


def make_user_project(office: Client) -> int:
    """The project of whoever is logged in."""
    from evaluation.models import RoleGrant

    return RoleGrant.objects.get(user_id=office.session["_auth_user_id"]).project_id


def test_a_run_asks_a_system_by_post(asked: RagService) -> None:
    questioned = questions(2)
    toy_system(asked, questioned)
    caller = evaluator(questioned.project)
    body = {"dataset_id": questioned.pk, "system": "toy", "k": 3, "judge": None, "profile": "graphrag"}
    made = caller.post("runs/", body)
    assert made.status_code == 202, made.content
    run = drain(made.json()["id"], seconds=30)
    assert (run.state, run.answer_set.k, len(asked.asked)) == (Run.State.COMPLETED, 3, 2)
    for wrong in ({}, {"dataset_id": questioned.pk}, {"system": "toy"}, body | {"answer_set": run.answer_set_id}):
        assert caller.post("runs/", wrong).status_code == 400, wrong
    assert caller.post("runs/", body | {"system": "nobody"}).status_code in {400, 404}
    assert caller.post("runs/", body | {"k": 51}).status_code == 400
