"""Versions of systems: creation from typed settings, look-up by name, and clients within the operator's policy."""

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
from evaluation.connectors.protocol import RECORDED, Connector, OperatorPolicy, Settings, SystemClient
from evaluation.core.canonical import clean_name, content_hash, normalize_nfc
from evaluation.core.errors import DomainError, UnknownName
from evaluation.extensions import FEATURE_OFF, features
from evaluation.judges.shipped import get_or_create_version
from evaluation.models import Project, System, SystemVersion, User


def connectors() -> dict[str, Connector]:
    """The connectors of the core and of installed features, by name."""
    return {**CONNECTORS, **{connector.name: connector for feature in features() for connector in feature.connectors}}


def get_connector(name: str) -> Connector:
    """The connector of that name.

    :raises UnknownName: for an unknown name."""
    available = connectors()
    if name not in available:
        raise UnknownName("connector", name, list(available))
    return available[name]


def operator_policy(project: Project) -> OperatorPolicy:
    """The operator's policy for systems of the project."""
    variables = {name: value for name, value in os.environ.items() if VARIABLE.fullmatch(name)}
    return OperatorPolicy(
        origins=tuple(settings.CONCORD_SYSTEM_ORIGINS),
        variables=variables,
        commands=settings.CONCORD_SYSTEM_COMMANDS,
        functions=settings.CONCORD_SYSTEM_CALLABLES,
        project=project.pk,
    )


def save_system(
    project: Project, name: str, connector: str, raw_settings: Mapping[str, Any], by: User | None
) -> SystemVersion:
    """The version of the system with these settings, created if there is none.

    :raises BadSettings: with every invalid field.
    :raises UnknownName: for an unknown connector.
    :raises DomainError: ``bad_name``; see also :func:`open_client`."""
    name = clean_name(name)
    connector_settings = read_settings(get_connector(connector), raw_settings)
    check_allowed(connector, connector_settings, project)
    with transaction.atomic():
        lock_project(project.pk)
        version = get_or_create_system_version(project, name, connector, connector_settings.model_dump(mode="json"), by)
        audit.record(by, "system.saved", version, hash=version.content_hash)
    return version


def check_allowed(connector: str, connector_settings: Settings, project: Project) -> None:
    """Check the settings against the operator's policy. An unset variable is accepted, because workers may have it.

    :raises DomainError: if the policy does not allow the settings."""
    try:
        open_client(connector, connector_settings, project)
    except DomainError as refusal:
        if refusal.code != "variable_missing":
            raise


def get_or_create_system_version(
    project: Project, name: str, connector: str, config: Mapping[str, Any], by: User | None
) -> SystemVersion:
    """The version of the named system with this content, created with the system on first use."""
    owner, _ = System.objects.get_or_create(project=project, name=name, defaults={"created_by": by})
    digest = content_hash([connector, config])
    content: dict[str, Any] = {"system": owner, "adapter": connector, "config": config, "created_by": by}
    return get_or_create_version(SystemVersion.objects.filter(system=owner), digest, **content)


def connected_version(project: Project, name: str) -> SystemVersion | None:
    """The named system's newest version with a connector, or ``NAME@VERSION``; ``None`` if its answers are only
    imported.

    :raises UnknownName: for a system or version that the project does not have."""
    name = normalize_nfc(name)
    base_name, _, number = name.rpartition("@")
    rows = SystemVersion.objects.filter(system__project=project).select_related("system")
    if base_name and number.isdigit():
        version = rows.filter(system__name=base_name, version=int(number)).first()
        if version is not None:
            return None if version.adapter == RECORDED else version
    if not System.objects.filter(project=project, name=name).exists():
        raise UnknownName("system", name, list(System.objects.filter(project=project).values_list("name", flat=True)))
    return rows.filter(system__name=name).exclude(adapter=RECORDED).order_by("-version").first()


def connected_systems(project: Project) -> list[str]:
    """The names of the project's systems with a connector, sorted."""
    rows = SystemVersion.objects.filter(system__project=project).exclude(adapter=RECORDED)
    return sorted(set(rows.values_list("system__name", flat=True)))


def version_settings(version: SystemVersion) -> Settings:
    """The typed settings of a version.

    :raises DomainError: ``not_asked`` if its answers are imported; ``feature_off`` without the connector's feature."""
    if version.adapter == RECORDED:
        raise DomainError("not_asked", system=str(version))
    if version.adapter not in connectors():
        raise DomainError(FEATURE_OFF, feature=version.adapter)
    return read_settings(get_connector(version.adapter), version.config)


def client_of(version: SystemVersion) -> SystemClient:
    """A client, ready for questions, as an asynchronous context manager.

    :raises DomainError: ``not_asked``, ``feature_off``; ``system_origin_not_allowed``, ``variable_missing`` and other
        refusals of its connector."""
    client = open_client(version.adapter, version_settings(version), version.system.project)
    client.prepare()
    return client


def open_client(connector: str, connector_settings: Settings, project: Project) -> SystemClient:
    """A client with these settings, within the operator's policy.

    :raises DomainError: ``system_origin_not_allowed``, ``variable_missing`` and other refusals of its connector."""
    try:
        return get_connector(connector).open(connector_settings, operator_policy(project))
    except DomainError as refusal:
        if refusal.code == "origin_not_allowed":
            raise DomainError("system_origin_not_allowed", **refusal.params) from refusal
        raise
