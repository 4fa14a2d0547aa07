"""What a site is set up with, as a file: project, people and their roles, endpoints, judges, systems, tokens.

What is missing is made and what differs is changed; what the file does not name stays as it is, and nothing is taken
away. Provisioned twice, the second time changes nothing. No file holds a secret: keys and tokens are named by the
environment variable that has them.
"""

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
from evaluation.accounts.logging_in import LONGEST_TOKEN, new_token, password_link
from evaluation.connectors.catalogue import BadSettings
from evaluation.core.described import read_yaml
from evaluation.core.errors import ConcordError, InvalidFile, Problem, Refused, UnknownName
from evaluation.core.roles import Role
from evaluation.judges.secrets import may_hold_key, store_key
from evaluation.judges.shipping import BASELINE, judge_names, profile_names, save_judge
from evaluation.messages.sentences import explain_refusal
from evaluation.messages.system_settings import explain_setting
from evaluation.models import ApiToken, Endpoint, JudgeVersion, Project, RoleGrant, System, User
from evaluation.network.origins import AllowList, origin_of
from evaluation.systems.services import save_system

Name = Annotated[str, Field(min_length=1, max_length=100)]


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Person(_Described):
    """Somebody with their roles in the project. ``name`` is the full name."""

    username: Name
    name: str = Field(default="", max_length=150)
    email: str = Field(default="", max_length=254)
    language: Literal["", "en", "ko"] = ""
    roles: tuple[Role, ...] = ()


class Server(_Described):
    """A judge server, by default an OpenAI-compatible one; ``key_env`` names the variable with its key."""

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


class Judge(_Described):
    """A judge behind an endpoint, by the endpoint's name."""

    name: Name
    endpoint: Name
    model: str = Field(min_length=1, max_length=200)
    language: Literal["en", "ko"] = "en"
    params: dict[str, Any] = {}
    method: JudgeVersion.Method = JudgeVersion.Method.SAID


class SystemUnderTest(_Described):
    """A system with a connector and its settings."""

    name: Name
    connector: Name
    settings: dict[str, Any] = {}


class Token(_Described):
    """A REST token of a person for the project. ``value_env`` names the variable with its text; without it a new one is
    made where the person has none of the name, and shown once."""

    name: Name
    user: Name
    scope: Literal["read", "write"] = "read"
    days: int = Field(default=90, ge=1, le=LONGEST_TOKEN.days)
    value_env: str = ""


class Setup(_Described):
    """A whole file."""

    project: Annotated[str, Field(min_length=1, max_length=200)]
    default_judge: str = ""
    default_profile: str = ""
    people: tuple[Person, ...] = ()
    endpoints: tuple[Server, ...] = ()
    judges: tuple[Judge, ...] = ()
    systems: tuple[SystemUnderTest, ...] = ()
    tokens: tuple[Token, ...] = ()


@dataclass(slots=True)
class Provisioned:
    """What was done: a line for each change, beginning with ``+`` for something new and ``~`` for something changed.
    ``links`` are paths at which new people choose a password, ``tokens`` the texts of new tokens; both are shown once.
    """

    changes: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)


def read_setup(path: Path) -> Setup:
    """What a file says.

    :raises InvalidFile: ``provision_not_yaml``; ``provision_invalid`` with line and field.
    :raises OSError: where it cannot be read.
    """
    return read_yaml(Setup, path.read_text(encoding="utf-8", errors="replace"), path.name, "provision")


def provision(setup: Setup, file: str = "") -> Provisioned:
    """Make the site as the file says. To be called in a transaction, rolled back to only see what would change.

    :raises InvalidFile: naming every entry that cannot be: addresses that are not allowed, variables that are not set
        or not for keys, names that nothing has, settings that a connector cannot take.
    """
    done, problems = Provisioned(), list[Problem]()
    project, made = Project.objects.get_or_create(name=setup.project)
    if made:
        _note(done, project, f"+ project {project}")
    steps = [
        *((f"people.{at}", partial(_person, one)) for at, one in enumerate(setup.people)),
        *((f"endpoints.{at}", partial(_endpoint, one)) for at, one in enumerate(setup.endpoints)),
        *((f"judges.{at}", partial(_judge, one)) for at, one in enumerate(setup.judges)),
        *((f"systems.{at}", partial(_system, one)) for at, one in enumerate(setup.systems)),
        *((f"tokens.{at}", partial(_token, one)) for at, one in enumerate(setup.tokens)),
        ("default_judge", partial(_default_judge, setup.default_judge)),
        ("default_profile", partial(_default_profile, setup.default_profile)),
    ]
    for place, step in steps:
        try:
            step(project, done)
        except (ConcordError, ValidationError) as error:
            problems += _problems(error, file, place)
    if problems:
        raise InvalidFile(problems)
    return done


def _problems(error: ConcordError | ValidationError, file: str, place: str) -> Iterable[Problem]:
    if isinstance(error, ValidationError):
        for name, said in error.message_dict.items():
            yield Problem("provision_refused", file, field=f"{place}.{name}", params={"error": " ".join(said)})
        return
    if isinstance(error, BadSettings):
        for one in error.problems:
            where = f"{place}.settings.{one.field}".rstrip(".")
            yield Problem("provision_refused", file, field=where, params={"error": explain_setting(one)})
        return
    text = explain_refusal(error) if isinstance(error, Refused) else str(error)
    yield Problem("provision_refused", file, field=place, params={"error": text})


def _note(done: Provisioned, row: Model, line: str) -> None:
    done.changes.append(line)
    audit.record(None, "provisioned", row)


def _changed(row: Model, said: Mapping[str, Any]) -> list[str]:
    """The fields that differ, which the row has from then on."""
    found = [name for name, value in said.items() if getattr(row, name) != value]
    for name in found:
        setattr(row, name, said[name])
    return found


def _person(entry: Person, project: Project, done: Provisioned) -> None:
    user = User.objects.filter(username=entry.username).first()
    said = {"first_name": entry.name, "email": entry.email, "language": entry.language}
    said = {name: value for name, value in said.items() if value}
    if user is None:
        user = User(username=entry.username, **said)
        user.set_unusable_password()
        user.full_clean(exclude=["password"])
        user.save()
        _note(done, user, f"+ person {user.username}")
        done.links[user.username] = password_link(user)
    elif differing := _changed(user, said):
        user.full_clean(exclude=["password"])
        user.save(update_fields=differing)
        _note(done, user, f"~ person {user.username}: {', '.join(differing)}")
    for role in entry.roles:
        grant, made = RoleGrant.objects.get_or_create(user=user, project=project, role=role)
        if made:
            _note(done, grant, f"+ role {role} of {user.username} in {project}")


def _endpoint(entry: Server, project: Project, done: Provisioned) -> None:
    AllowList(settings.CONCORD_JUDGE_ORIGINS).check(entry.base_url)
    if not may_hold_key(entry.key_env):
        raise Refused("key_name", variable=entry.key_env)
    row = Endpoint.objects.filter(name=entry.name).first()
    said = entry.model_dump(exclude={"name"})
    if row is None:
        row = Endpoint(name=entry.name, **said)
        row.full_clean()
        row.save()
        _note(done, row, f"+ endpoint {row}")
        return
    moved = origin_of(row.base_url) != origin_of(entry.base_url)
    if differing := _changed(row, said):
        if moved:
            store_key(row, "")  # a stored key was for the server before
        row.full_clean()
        row.save()
        _note(done, row, f"~ endpoint {row}: {', '.join(differing)}")


def _judge(entry: Judge, project: Project, done: Provisioned) -> None:
    if entry.name.partition("@")[0] == BASELINE:
        raise Refused("provision_baseline")
    endpoint = Endpoint.objects.filter(name=entry.endpoint).first()
    if endpoint is None:
        raise Refused("provision_no_endpoint", name=entry.endpoint)
    of_name = JudgeVersion.objects.filter(project=project, name=entry.name)
    newest = of_name.order_by("-version").first()
    about = {"model": entry.model, "language": entry.language, "method": entry.method}
    row = save_judge(project, entry.name, endpoint, params=entry.params, **about)
    if newest is None or row.version > newest.version:
        _note(done, row, f"{'+' if newest is None else '~'} judge {row}")


def _system(entry: SystemUnderTest, project: Project, done: Provisioned) -> None:
    system = System.objects.filter(project=project, name=entry.name).first()
    newest = system.versions.order_by("-version").first() if system else None
    made = save_system(project, entry.name, entry.connector, entry.settings, None)
    if newest is None or made.version > newest.version:
        _note(done, made, f"{'+' if newest is None else '~'} system {made}")


def _token(entry: Token, project: Project, done: Provisioned) -> None:
    user = User.objects.filter(username=entry.user).first()
    if user is None:
        raise Refused("provision_no_person", name=entry.user)
    mine = ApiToken.objects.filter(user=user, project=project, name=entry.name)
    if entry.value_env:
        text = os.environ.get(entry.value_env, "")
        if len(text) < SHORTEST_TOKEN:
            raise Refused("provision_token", variable=entry.value_env, least=SHORTEST_TOKEN)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if mine.filter(sha256=digest).exists():
            return
        if ApiToken.objects.filter(sha256=digest).exists():
            raise Refused("provision_token_taken", variable=entry.value_env)
    elif mine.filter(revoked_at=None, expires_at__gt=timezone.now()).exists():
        return
    else:
        text, digest = new_token()
        done.tokens[f"{entry.name} of {entry.user}"] = text
    expires = timezone.now() + timedelta(days=entry.days)
    made = mine.create(
        user=user, project=project, name=entry.name, sha256=digest, scope=entry.scope, expires_at=expires
    )
    _note(done, made, f"+ token {made} of {user.username}, {entry.scope}, for {entry.days} days")


SHORTEST_TOKEN = 32  # characters of a text somebody chose


def _default_judge(name: str, project: Project, done: Provisioned) -> None:
    if not name or project.default_judge == name:
        return
    if name not in judge_names(project):
        raise Refused("provision_no_judge", name=name)
    project.default_judge = name
    project.save(update_fields=["default_judge"])
    _note(done, project, f"~ project {project}: default_judge {name}")


def _default_profile(name: str, project: Project, done: Provisioned) -> None:
    if not name or project.default_profile == name:
        return
    if name not in (known := profile_names(project)):
        raise UnknownName("profile", name, known)
    project.default_profile = name
    project.save(update_fields=["default_profile"])
    _note(done, project, f"~ project {project}: default_profile {name}")
