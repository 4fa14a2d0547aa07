"""Clients of judge versions."""

from __future__ import annotations

from django.conf import settings

from evaluation.judges.secrets import key_of
from evaluation.judging.calls import JudgeClient
from evaluation.judging.providers.baseline import BASELINE
from evaluation.judging.providers.catalogue import provider_named
from evaluation.judging.providers.protocol import Connection, Provider
from evaluation.models import Endpoint, JudgeVersion
from evaluation.network.transport import Deadlines


def provider_of(judge: JudgeVersion) -> Provider:
    """Provider of the judge's endpoint, or the offline baseline without an endpoint."""
    return provider_named(judge.endpoint.provider) if judge.endpoint else BASELINE


def client_of(judge: JudgeVersion) -> JudgeClient:
    """Client of a judge, an asynchronous context manager.

    :raises DomainError: ``origin_not_allowed`` if the endpoint's origin is not on the allow-list, ``key_missing`` and
        ``key_unreadable`` for its key."""
    provider, endpoint = provider_of(judge), judge.endpoint
    if endpoint is None:
        return provider.open()
    return provider.open(**connection(endpoint), **{name: getattr(endpoint, name) for name in provider.settings})


def connection(endpoint: Endpoint) -> Connection:
    """Address, key and limits for calls to the endpoint.

    :raises DomainError: ``key_missing`` and ``key_unreadable`` for its key."""
    return {
        "base_url": endpoint.base_url,
        "key": key_of(endpoint),
        "allowed_origins": tuple(settings.CONCORD_JUDGE_ORIGINS),
        "deadlines": Deadlines(total=settings.CONCORD_CALL_SECONDS),
    }
