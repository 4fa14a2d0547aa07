"""Provisioning from a file creates missing rows, updates changed ones and is idempotent."""

from __future__ import annotations

import hashlib
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluation.core.errors import InvalidFile
from evaluation.models import ApiToken, AuditEvent, Endpoint, JudgeVersion, Project, RoleGrant, SystemVersion, User
from evaluation.runs.provisioning import ProvisionFile, provision, read_provision_file

pytestmark = pytest.mark.django_db
ORIGIN = "http://127.0.0.1:9"
SITE: dict[str, Any] = {
    "project": "Team",
    "default_judge": "gpt",
    "default_profile": "graphrag",
    "people": [
        {"username": "kim", "name": "김서연", "email": "kim@example.org", "language": "ko", "roles": ["lead"]},
        {"username": "ci", "roles": ["evaluator"]},
    ],
    "endpoints": [{"name": "llm", "base_url": f"{ORIGIN}/v1", "key_env": "CONCORD_KEY_LLM"}],
    "judges": [{"name": "gpt", "endpoint": "llm", "model": "m", "language": "ko"}],
    "systems": [{"name": "rag", "connector": "http", "settings": {"address": f"{ORIGIN}/ask"}}],
    "tokens": [{"name": "ci", "user": "ci", "scope": "write"}],
}


@pytest.fixture(autouse=True)
def allowed_origins(settings: Any) -> None:
    settings.CONCORD_JUDGE_ORIGINS = settings.CONCORD_SYSTEM_ORIGINS = [ORIGIN]


def write_file(folder: Path, content: Any) -> Path:
    path = folder / "site.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


def apply_changes(site: dict[str, Any]) -> list[str]:
    return provision(ProvisionFile.model_validate(site)).changes


def provision_errors(site: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidFile) as error:
        provision(ProvisionFile.model_validate(site), "site.yaml")
    return {problem.field: str(problem.params["error"]) for problem in error.value.problems}


def test_provisioning_creates_everything_once(tmp_path: Path) -> None:
    result = provision(read_provision_file(write_file(tmp_path, SITE)))
    assert len(result.changes) == 11
    project = Project.objects.get(name="Team")
    assert (project.default_judge, project.default_profile) == ("gpt", "graphrag")
    assert set(RoleGrant.objects.values_list("user__username", "role")) == {("kim", "lead"), ("ci", "evaluator")}
    assert not User.objects.get(username="kim").has_usable_password()
    assert set(result.links) == {"kim", "ci"}
    (text,) = result.tokens.values()
    assert ApiToken.objects.get().sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert Endpoint.objects.get().key_env == "CONCORD_KEY_LLM"
    assert SystemVersion.objects.get().system.name == "rag"
    assert AuditEvent.objects.filter(verb="provisioned").count() == 11
    assert apply_changes(SITE) == []


def test_changed_entries_are_updated_and_nothing_is_removed() -> None:
    apply_changes(SITE)
    changed_site = SITE | {
        "people": [{"username": "kim", "email": "k@example.org", "roles": ["reviewer"]}],
        "endpoints": [{"name": "llm", "base_url": f"{ORIGIN}/v1", "key_env": "CONCORD_KEY_LLM", "batches": True}],
        "judges": [{"name": "gpt", "endpoint": "llm", "model": "m-2", "language": "ko"}],
        "systems": [{"name": "rag", "connector": "http", "settings": {"address": f"{ORIGIN}/other"}}],
        "tokens": [],
    }
    assert apply_changes(changed_site) == [
        "~ person kim: email",
        "+ role reviewer of kim in Team",
        "~ endpoint llm: batches",
        "~ judge gpt@2",
        "~ system rag v2",
    ]
    assert RoleGrant.objects.filter(user__username="kim").count() == 2
    assert User.objects.get(username="kim").first_name == "김서연"
    assert (JudgeVersion.objects.count(), ApiToken.objects.count()) == (2, 1)


def test_stored_key_is_removed_when_the_endpoint_address_changes(settings: Any) -> None:
    apply_changes(SITE)
    Endpoint.objects.update(sealed_key="sealed for the server before")
    settings.CONCORD_JUDGE_ORIGINS = [ORIGIN, "http://127.0.0.1:10"]
    changed_site = SITE | {
        "endpoints": [{"name": "llm", "base_url": "http://127.0.0.1:10/v1", "key_env": "CONCORD_KEY_LLM"}]
    }
    assert "~ endpoint llm: base_url" in apply_changes(changed_site)
    assert Endpoint.objects.get().sealed_key == ""


def test_token_value_is_read_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    site = SITE | {"tokens": [{"name": "ci", "user": "ci", "value_env": "TEAM_TOKEN"}]}
    assert "TEAM_TOKEN must contain the token" in provision_errors(site)["tokens.0"]
    monkeypatch.setenv("TEAM_TOKEN", "x" * 31)
    assert "32 characters" in provision_errors(site)["tokens.0"]
    monkeypatch.setenv("TEAM_TOKEN", "x" * 40)
    provision(ProvisionFile.model_validate(site))
    assert ApiToken.objects.get().sha256 == hashlib.sha256(b"x" * 40).hexdigest()
    assert apply_changes(site) == []
    duplicate = site | {"tokens": [{"name": "other", "user": "kim", "value_env": "TEAM_TOKEN"}]}
    assert "is already in use" in provision_errors(duplicate)["tokens.0"]


def test_expired_token_is_recreated() -> None:
    apply_changes(SITE)
    ApiToken.objects.update(expires_at=timezone.now())
    assert [line for line in apply_changes(SITE) if "token" in line] == ["+ token ci of ci, write, for 90 days"]


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"endpoints": [{"name": "e", "base_url": "http://10.0.0.1/v1"}]}, "endpoints.0", "CONCORD_JUDGE_ORIGINS"),
        ({"endpoints": [{"name": "e", "base_url": f"{ORIGIN}/v1", "key_env": "HOME"}]}, "endpoints.0", "HOME"),
        (
            {"endpoints": [{"name": "e", "base_url": f"{ORIGIN}/v1", "azure_api_version": "new"}]},
            "endpoints.0.azure_api_version",
            "",
        ),
        (
            {"endpoints": [{"name": "e", "base_url": f"{ORIGIN}/v1", "provider": "oracle"}]},
            "endpoints.0.provider",
            "oracle",
        ),
        ({"judges": [{"name": "j", "endpoint": "nowhere", "model": "m"}]}, "judges.0", "nowhere"),
        ({"judges": [{"name": "baseline", "endpoint": "llm", "model": "m"}]}, "judges.0", "baseline"),
        (
            {"systems": [{"name": "s", "connector": "http", "settings": {"adress": "x"}}]},
            "systems.0.settings.adress",
            "",
        ),
        ({"systems": [{"name": "s", "connector": "telepathy"}]}, "systems.0", "telepathy"),
        ({"tokens": [{"name": "t", "user": "nobody"}]}, "tokens.0", "nobody"),
        ({"people": [{"username": "a b"}]}, "people.0.username", ""),
        ({"default_judge": "gpt-9"}, "default_judge", "gpt-9"),
        ({"default_profile": "graphrags"}, "default_profile", "did you mean graphrag"),
    ],
)
def test_invalid_entry_is_reported_with_its_field(changes: dict[str, Any], field: str, text: str) -> None:
    errors = provision_errors(SITE | changes)
    assert text in errors[field]


def test_invalid_file_is_reported_with_line_and_field(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as error:
        read_provision_file(write_file(tmp_path, "project: T\npeople:\n- username: a\n  roles: [boss]\n"))
    assert [(problem.code, problem.line, problem.field) for problem in error.value.problems] == [
        ("provision_invalid", 4, "people.0.roles.0")
    ]


def test_command_checks_provisions_and_is_idempotent(tmp_path: Path) -> None:
    path = str(write_file(tmp_path, SITE))

    def run_command(*options: str) -> str:
        out = StringIO()
        call_command("provision", path, *options, stdout=out, stderr=StringIO())
        return out.getvalue()

    with pytest.raises(CommandError, match="11 change"):
        run_command("--check")
    assert not Project.objects.filter(name="Team").exists()
    output = run_command()
    assert "+ judge gpt@1" in output
    assert "shown once: concord_" in output
    assert "password link for kim: " in output
    assert run_command("--check") == run_command() == "nothing to change\n"
    write_file(tmp_path, SITE | {"default_judge": "none"})
    with pytest.raises(CommandError, match="nothing was set up"):
        run_command()
    with pytest.raises(FileNotFoundError):
        call_command("provision", str(tmp_path / "gone.yaml"))
