"""Provisioning of a site from a file: project, people and their roles, endpoints, judges, systems, tokens.

Missing rows are created and differing rows are updated. Nothing is deleted, and a second run changes nothing. Files
hold no secrets: keys and tokens are given by the name of an environment variable."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field

from evaluation.accounts import audit
from evaluation.accounts.login import MAX_TOKEN_LIFETIME, new_token, password_link
from evaluation.connectors.catalogue import InvalidSettings
from evaluation.core.errors import ConcordError, DomainError, InvalidFile, Problem, UnknownName
from evaluation.core.roles import Role
from evaluation.core.yaml_models import read_yaml
from evaluation.judges.secrets import may_hold_key, store_key
from evaluation.judges.shipped import BASELINE, judge_names, profile_names, save_judge
from evaluation.messages.explanations import explain_refusal
from evaluation.messages.system_settings import explain_setting_problem
from evaluation.models import ApiToken, Endpoint, JudgeVersion, Project, RoleGrant, System, User
from evaluation.network.origins import AllowList, parse_origin
from evaluation.systems.services import save_system

Name = Annotated[str, Field(min_length=1, max_length=100)]


class FrozenEntry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PersonEntry(FrozenEntry):
    """A person with their roles in the project. ``name`` is the full name."""

    username: Name
    name: str = Field(default="", max_length=150)
    email: str = Field(default="", max_length=254)
    language: Literal["", "en", "ko"] = ""
    roles: tuple[Role, ...] = ()


class EndpointEntry(FrozenEntry):
    """A judge endpoint: a name of ``evaluation.judging.providers`` and the server's base URL. ``key_env`` names the
    variable with its key."""

    name: Name
    provider: str = "openai"
    base_url: str = Field(min_length=1, max_length=300)
    key_env: str = ""
    embedding_model: str = ""
    azure_api_version: str = ""
    max_concurrency: int = Field(default=32, ge=1, le=1000)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    batches: bool = False


class JudgeEntry(FrozenEntry):
    """A judge at a named endpoint."""

    name: Name
    endpoint: Name
    model: str = Field(min_length=1, max_length=200)
    language: Literal["en", "ko"] = "en"
    params: dict[str, Any] = {}
    method: JudgeVersion.Method = JudgeVersion.Method.SAID


class SystemEntry(FrozenEntry):
    """A system with a connector and its settings."""

    name: Name
    connector: Name
    settings: dict[str, Any] = {}


class TokenEntry(FrozenEntry):
    """A REST token of a person for the project. ``value_env`` names the variable with its text. Without it, a new token
    is created once and shown once."""

    name: Name
    user: Name
    scope: Literal["read", "write"] = "read"
    days: int = Field(default=90, ge=1, le=MAX_TOKEN_LIFETIME.days)
    value_env: str = ""


class ProvisionFile(FrozenEntry):
    project: Annotated[str, Field(min_length=1, max_length=200)]
    default_judge: str = ""
    default_profile: str = ""
    people: tuple[PersonEntry, ...] = ()
    endpoints: tuple[EndpointEntry, ...] = ()
    judges: tuple[JudgeEntry, ...] = ()
    systems: tuple[SystemEntry, ...] = ()
    tokens: tuple[TokenEntry, ...] = ()


@dataclass(slots=True)
class ProvisionReport:
    """The changes made, one line each: ``+`` for a new row, ``~`` for a changed one. ``links`` are paths at which new
    people choose a password, ``tokens`` the texts of new tokens; both are shown once."""

    changes: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)


def read_provision_file(path: Path) -> ProvisionFile:
    """Read a provisioning file.

    :raises InvalidFile: ``provision_not_yaml``; ``provision_invalid`` with line and field.
    :raises OSError: if the file cannot be read."""
    return read_yaml(ProvisionFile, path.read_text(encoding="utf-8", errors="replace"), path.name, "provision")


def provision(document: ProvisionFile, file: str = "") -> ProvisionReport:
    """Create or update the site from the file. Call inside a transaction; roll it back for a dry run.

    :raises InvalidFile: naming every invalid entry: addresses that are not allowed, variables that are unset or not
        meant for keys, unknown names, settings that a connector does not take."""
    report, problems = ProvisionReport(), list[Problem]()
    project, created = Project.objects.get_or_create(name=document.project)
    if created:
        _record_change(report, project, f"+ project {project}")
    steps = [
        *((f"people.{index}", partial(_provision_person, entry)) for index, entry in enumerate(document.people)),
        *(
            (f"endpoints.{index}", partial(_provision_endpoint, entry))
            for index, entry in enumerate(document.endpoints)
        ),
        *((f"judges.{index}", partial(_provision_judge, entry)) for index, entry in enumerate(document.judges)),
        *((f"systems.{index}", partial(_provision_system, entry)) for index, entry in enumerate(document.systems)),
        *((f"tokens.{index}", partial(_provision_token, entry)) for index, entry in enumerate(document.tokens)),
        ("default_judge", partial(_set_default_judge, document.default_judge)),
        ("default_profile", partial(_set_default_profile, document.default_profile)),
    ]
    for path, step in steps:
        try:
            step(project, report)
        except (ConcordError, ValidationError) as error:
            problems += _problems(error, file, path)
    if problems:
        raise InvalidFile(problems)
    return report


def _problems(error: ConcordError | ValidationError, file: str, path: str) -> Iterable[Problem]:
    if isinstance(error, ValidationError):
        for name, messages in error.message_dict.items():
            yield Problem("provision_refused", file, field=f"{path}.{name}", params={"error": " ".join(messages)})
        return
    if isinstance(error, InvalidSettings):
        for problem in error.problems:
            field = f"{path}.settings.{problem.field}".rstrip(".")
            yield Problem("provision_refused", file, field=field, params={"error": explain_setting_problem(problem)})
        return
    text = explain_refusal(error) if isinstance(error, DomainError) else str(error)
    yield Problem("provision_refused", file, field=path, params={"error": text})


def _record_change(report: ProvisionReport, row: Model, line: str) -> None:
    report.changes.append(line)
    audit.record(None, "provisioned", row)


def _update_fields(row: Model, values: Mapping[str, Any]) -> list[str]:
    """Set the fields that differ; their names."""
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, values[name])
    return changed


def _provision_person(entry: PersonEntry, project: Project, report: ProvisionReport) -> None:
    user = User.objects.filter(username=entry.username).first()
    values = {"first_name": entry.name, "email": entry.email, "language": entry.language}
    values = {name: value for name, value in values.items() if value}
    if user is None:
        user = User(username=entry.username, **values)
        user.set_unusable_password()
        user.full_clean(exclude=["password"])
        user.save()
        _record_change(report, user, f"+ person {user.username}")
        report.links[user.username] = password_link(user)
    elif differing := _update_fields(user, values):
        user.full_clean(exclude=["password"])
        user.save(update_fields=differing)
        _record_change(report, user, f"~ person {user.username}: {', '.join(differing)}")
    for role in entry.roles:
        grant, created = RoleGrant.objects.get_or_create(user=user, project=project, role=role)
        if created:
            _record_change(report, grant, f"+ role {role} of {user.username} in {project}")


def _provision_endpoint(entry: EndpointEntry, project: Project, report: ProvisionReport) -> None:
    AllowList(settings.CONCORD_JUDGE_ORIGINS).check(entry.base_url)
    if not may_hold_key(entry.key_env):
        raise DomainError("key_name", variable=entry.key_env)
    row = Endpoint.objects.filter(name=entry.name).first()
    values = entry.model_dump(exclude={"name"})
    if row is None:
        row = Endpoint(name=entry.name, **values)
        row.full_clean()
        row.save()
        _record_change(report, row, f"+ endpoint {row}")
        return
    origin_changed = parse_origin(row.base_url) != parse_origin(entry.base_url)
    if differing := _update_fields(row, values):
        if origin_changed:
            # The stored key belongs to the former server.
            store_key(row, "")
        row.full_clean()
        row.save()
        _record_change(report, row, f"~ endpoint {row}: {', '.join(differing)}")


def _provision_judge(entry: JudgeEntry, project: Project, report: ProvisionReport) -> None:
    if entry.name.partition("@")[0] == BASELINE:
        raise DomainError("provision_baseline")
    endpoint = Endpoint.objects.filter(name=entry.endpoint).first()
    if endpoint is None:
        raise DomainError("provision_no_endpoint", name=entry.endpoint)
    versions = JudgeVersion.objects.filter(project=project, name=entry.name)
    newest = versions.order_by("-version").first()
    fields = {"model": entry.model, "language": entry.language, "method": entry.method}
    row = save_judge(project, entry.name, endpoint, params=entry.params, **fields)
    if newest is None or row.version > newest.version:
        _record_change(report, row, f"{'+' if newest is None else '~'} judge {row}")


def _provision_system(entry: SystemEntry, project: Project, report: ProvisionReport) -> None:
    system = System.objects.filter(project=project, name=entry.name).first()
    newest = system.versions.order_by("-version").first() if system else None
    version = save_system(project, entry.name, entry.connector, entry.settings, None)
    if newest is None or version.version > newest.version:
        _record_change(report, version, f"{'+' if newest is None else '~'} system {version}")


def _provision_token(entry: TokenEntry, project: Project, report: ProvisionReport) -> None:
    user = User.objects.filter(username=entry.user).first()
    if user is None:
        raise DomainError("provision_no_person", name=entry.user)
    tokens = ApiToken.objects.filter(user=user, project=project, name=entry.name)
    if entry.value_env:
        text = os.environ.get(entry.value_env, "")
        if len(text) < SHORTEST_TOKEN:
            raise DomainError("provision_token", variable=entry.value_env, least=SHORTEST_TOKEN)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if tokens.filter(sha256=digest).exists():
            return
        if ApiToken.objects.filter(sha256=digest).exists():
            raise DomainError("provision_token_taken", variable=entry.value_env)
    elif tokens.filter(revoked_at=None, expires_at__gt=timezone.now()).exists():
        return
    else:
        text, digest = new_token()
        report.tokens[f"{entry.name} of {entry.user}"] = text
    expires = timezone.now() + timedelta(days=entry.days)
    token = tokens.create(
        user=user, project=project, name=entry.name, sha256=digest, scope=entry.scope, expires_at=expires
    )
    _record_change(report, token, f"+ token {token} of {user.username}, {entry.scope}, for {entry.days} days")


# The minimum length of a token text that a person chose.
SHORTEST_TOKEN = 32


def _set_default_judge(name: str, project: Project, report: ProvisionReport) -> None:
    if not name or project.default_judge == name:
        return
    if name not in judge_names(project):
        raise DomainError("provision_no_judge", name=name)
    project.default_judge = name
    project.save(update_fields=["default_judge"])
    _record_change(report, project, f"~ project {project}: default_judge {name}")


def _set_default_profile(name: str, project: Project, report: ProvisionReport) -> None:
    if not name or project.default_profile == name:
        return
    if name not in (names := profile_names(project)):
        raise UnknownName("profile", name, names)
    project.default_profile = name
    project.save(update_fields=["default_profile"])
    _record_change(report, project, f"~ project {project}: default_profile {name}")
