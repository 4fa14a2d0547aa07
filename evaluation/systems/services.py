"""Versions of systems: made of typed settings, found by name, opened with what the operator allows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.connectors.catalogue import CONNECTORS, read_settings
from evaluation.connectors.http import VARIABLE
from evaluation.connectors.protocol import RECORDED, Connector, Settings, Surroundings, SystemClient
from evaluation.core.canonical import clean_name, composed, content_hash
from evaluation.core.errors import Refused, UnknownName
from evaluation.extensions import OFF, features
from evaluation.judges.shipping import version_of
from evaluation.models import Project, System, SystemVersion, User


def connectors() -> dict[str, Connector]:
    """The connectors of the core and of installed features, by name."""
    return {**CONNECTORS, **{added.name: added for feature in features() for added in feature.connectors}}


def connector_named(name: str) -> Connector:
    """The connector.

    :raises UnknownName: for a name that none has.
    """
    known = connectors()
    if name not in known:
        raise UnknownName("connector", name, list(known))
    return known[name]


def surroundings(project: Project) -> Surroundings:
    """What the operator allows systems of the project."""
    variables = {name: value for name, value in os.environ.items() if VARIABLE.fullmatch(name)}
    return Surroundings(
        origins=tuple(settings.CONCORD_SYSTEM_ORIGINS),
        variables=variables,
        commands=settings.CONCORD_SYSTEM_COMMANDS,
        functions=settings.CONCORD_SYSTEM_CALLABLES,
        project=project.pk,
    )


def save_system(
    project: Project, name: str, connector: str, given: Mapping[str, Any], by: User | None
) -> SystemVersion:
    """The version of the system with these settings, made where there is none yet.

    :raises BadSettings: with every field that does not fit.
    :raises UnknownName: for a connector that does not exist.
    :raises Refused: ``bad_name``; what opening the system is refused for, such as ``system_origin_not_allowed``.
    """
    name = clean_name(name)
    read = read_settings(connector_named(connector), given)
    check_allowed(connector, read, project)
    with transaction.atomic():
        lock_project(project.pk)
        made = version_with(project, name, connector, read.model_dump(mode="json"), by)
        audit.record(by, "system.saved", made, hash=made.content_hash)
    return made


def check_allowed(connector: str, read: Settings, project: Project) -> None:
    """:raises Refused: where the operator does not allow what the settings ask for. A variable that is not set here
    may be set where workers run, so that alone is no reason."""
    try:
        opened(connector, read, project)
    except Refused as refused:
        if refused.code != "variable_missing":
            raise


def version_with(
    project: Project, name: str, connector: str, config: Mapping[str, Any], by: User | None
) -> SystemVersion:
    """The version of the named system with this content, made with the system on first use."""
    owner, _ = System.objects.get_or_create(project=project, name=name, defaults={"created_by": by})
    digest = content_hash([connector, config])
    content: dict[str, Any] = {"system": owner, "adapter": connector, "config": config, "created_by": by}
    return version_of(SystemVersion.objects.filter(system=owner), digest, **content)


def asked_version(project: Project, name: str) -> SystemVersion | None:
    """The version of the named system that is asked: its newest with a connector, or ``NAME@VERSION``; ``None`` where
    its answers are only imported.

    :raises UnknownName: for a system, or a version, that the project does not have.
    """
    name = composed(name)
    plain, _, number = name.rpartition("@")
    rows = SystemVersion.objects.filter(system__project=project).select_related("system")
    if plain and number.isdigit():
        found = rows.filter(system__name=plain, version=int(number)).first()
        if found is not None:
            return None if found.adapter == RECORDED else found
    if not System.objects.filter(project=project, name=name).exists():
        raise UnknownName("system", name, list(System.objects.filter(project=project).values_list("name", flat=True)))
    return rows.filter(system__name=name).exclude(adapter=RECORDED).order_by("-version").first()


def asked_systems(project: Project) -> list[str]:
    """The names of the systems of a project that are asked, in order."""
    rows = SystemVersion.objects.filter(system__project=project).exclude(adapter=RECORDED)
    return sorted(set(rows.values_list("system__name", flat=True)))


def settings_of(version: SystemVersion) -> Settings:
    """The typed settings of a version.

    :raises Refused: ``not_asked`` where its answers are imported; ``feature_off`` without the feature of its connector.
    """
    if version.adapter == RECORDED:
        raise Refused("not_asked", system=str(version))
    if version.adapter not in connectors():
        raise Refused(OFF, feature=version.adapter)
    return read_settings(connector_named(version.adapter), version.config)


def client_of(version: SystemVersion) -> SystemClient:
    """A client to be used as an asynchronous context manager, ready for questions.

    :raises Refused: ``not_asked``, ``feature_off``; ``system_origin_not_allowed``, ``variable_missing`` and the like of
        its connector.
    """
    client = opened(version.adapter, settings_of(version), version.system.project)
    client.prepare()
    return client


def opened(connector: str, read: Settings, project: Project) -> SystemClient:
    """A client with these settings, within what the operator allows.

    :raises Refused: ``system_origin_not_allowed``, ``variable_missing`` and the like.
    """
    try:
        return connector_named(connector).open(read, surroundings(project))
    except Refused as refused:
        if refused.code == "origin_not_allowed":
            raise Refused("system_origin_not_allowed", **refused.params) from refused
        raise
