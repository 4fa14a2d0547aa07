"""Setting a site up by a file: what is missing is made, what differs is changed, and the second time nothing is."""

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
WHOLE: dict[str, Any] = {
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
def allowed(settings: Any) -> None:
    settings.CONCORD_JUDGE_ORIGINS = settings.CONCORD_SYSTEM_ORIGINS = [ORIGIN]


def file_of(folder: Path, said: Any) -> Path:
    path = folder / "site.yaml"
    path.write_text(said if isinstance(said, str) else yaml.safe_dump(said), encoding="utf-8")
    return path


def again(said: dict[str, Any]) -> list[str]:
    return provision(ProvisionFile.model_validate(said)).changes


def refused(said: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidFile) as error:
        provision(ProvisionFile.model_validate(said), "site.yaml")
    return {one.field: str(one.params["error"]) for one in error.value.problems}


def test_everything_is_made_and_the_second_time_nothing(tmp_path: Path) -> None:
    done = provision(read_provision_file(file_of(tmp_path, WHOLE)))
    assert len(done.changes) == 11
    project = Project.objects.get(name="Team")
    assert (project.default_judge, project.default_profile) == ("gpt", "graphrag")
    assert set(RoleGrant.objects.values_list("user__username", "role")) == {("kim", "lead"), ("ci", "evaluator")}
    assert not User.objects.get(username="kim").has_usable_password()
    assert set(done.links) == {"kim", "ci"}
    (text,) = done.tokens.values()
    assert ApiToken.objects.get().sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert Endpoint.objects.get().key_env == "CONCORD_KEY_LLM"
    assert SystemVersion.objects.get().system.name == "rag"
    assert AuditEvent.objects.filter(verb="provisioned").count() == 11
    assert again(WHOLE) == []


def test_what_differs_is_changed_and_nothing_is_taken_away() -> None:
    again(WHOLE)
    other = WHOLE | {
        "people": [{"username": "kim", "email": "k@example.org", "roles": ["reviewer"]}],
        "endpoints": [{"name": "llm", "base_url": f"{ORIGIN}/v1", "key_env": "CONCORD_KEY_LLM", "batches": True}],
        "judges": [{"name": "gpt", "endpoint": "llm", "model": "m-2", "language": "ko"}],
        "systems": [{"name": "rag", "connector": "http", "settings": {"address": f"{ORIGIN}/other"}}],
        "tokens": [],
    }
    assert again(other) == [
        "~ person kim: email",
        "+ role reviewer of kim in Team",
        "~ endpoint llm: batches",
        "~ judge gpt@2",
        "~ system rag v2",
    ]
    assert RoleGrant.objects.filter(user__username="kim").count() == 2
    assert User.objects.get(username="kim").first_name == "김서연"
    assert (JudgeVersion.objects.count(), ApiToken.objects.count()) == (2, 1)


def test_a_key_that_was_stored_is_forgotten_when_the_server_moves(settings: Any) -> None:
    again(WHOLE)
    Endpoint.objects.update(sealed_key="sealed for the server before")
    settings.CONCORD_JUDGE_ORIGINS = [ORIGIN, "http://127.0.0.1:10"]
    moved = WHOLE | {"endpoints": [{"name": "llm", "base_url": "http://127.0.0.1:10/v1", "key_env": "CONCORD_KEY_LLM"}]}
    assert "~ endpoint llm: base_url" in again(moved)
    assert Endpoint.objects.get().sealed_key == ""


def test_a_token_is_what_a_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    said = WHOLE | {"tokens": [{"name": "ci", "user": "ci", "value_env": "TEAM_TOKEN"}]}
    assert "TEAM_TOKEN has to hold" in refused(said)["tokens.0"]
    monkeypatch.setenv("TEAM_TOKEN", "x" * 31)
    assert "32 characters" in refused(said)["tokens.0"]
    monkeypatch.setenv("TEAM_TOKEN", "x" * 40)
    provision(ProvisionFile.model_validate(said))
    assert ApiToken.objects.get().sha256 == hashlib.sha256(b"x" * 40).hexdigest()
    assert again(said) == []
    taken = said | {"tokens": [{"name": "other", "user": "kim", "value_env": "TEAM_TOKEN"}]}
    assert "another token" in refused(taken)["tokens.0"]


def test_a_token_that_ran_out_is_made_anew() -> None:
    again(WHOLE)
    ApiToken.objects.update(expires_at=timezone.now())
    assert [line for line in again(WHOLE) if "token" in line] == ["+ token ci of ci, write, for 90 days"]


@pytest.mark.parametrize(
    ("more", "field", "text"),
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
def test_what_cannot_be_is_named_by_its_place(more: dict[str, Any], field: str, text: str) -> None:
    found = refused(WHOLE | more)
    assert text in found[field]


def test_the_form_is_checked_with_line_and_field(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as error:
        read_provision_file(file_of(tmp_path, "project: T\npeople:\n- username: a\n  roles: [boss]\n"))
    assert [(one.code, one.line, one.field) for one in error.value.problems] == [
        ("provision_invalid", 4, "people.0.roles.0")
    ]


def test_the_command_checks_provisions_and_says_nothing_is_left(tmp_path: Path) -> None:
    path = str(file_of(tmp_path, WHOLE))

    def said(*more: str) -> str:
        out = StringIO()
        call_command("provision", path, *more, stdout=out, stderr=StringIO())
        return out.getvalue()

    with pytest.raises(CommandError, match="11 change"):
        said("--check")
    assert not Project.objects.filter(name="Team").exists()
    first = said()
    assert "+ judge gpt@1" in first
    assert "shown once: concord_" in first
    assert "kim chooses a password at " in first
    assert said("--check") == said() == "nothing to change\n"
    file_of(tmp_path, WHOLE | {"default_judge": "none"})
    with pytest.raises(CommandError, match="nothing was set up"):
        said()
    with pytest.raises(CommandError, match="No such file"):
        call_command("provision", str(tmp_path / "gone.yaml"))
