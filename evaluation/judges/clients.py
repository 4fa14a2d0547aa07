"""Clients of judge versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def check_parameters(endpoint: Endpoint | None, params: Mapping[str, Any], method: str) -> None:
    """Refuse parameters and a scoring method that the endpoint's provider does not support.

    :raises DomainError: ``parameters_unsupported``, ``logprobs_unsupported``."""
    if endpoint is not None:
        logprobs = method == JudgeVersion.Method.EXPECTED
        provider_named(endpoint.provider).check_parameters(params, logprobs=logprobs)


def client_of(judge: JudgeVersion) -> JudgeClient:
    """Client of a judge, an asynchronous context manager.

    :raises DomainError: ``origin_not_allowed`` if the endpoint's origin is not on the allow-list, ``key_missing`` and
        ``key_unreadable`` for its key, those of :func:`check_parameters`, and those of the provider's client."""
    provider, endpoint = provider_of(judge), judge.endpoint
    if endpoint is None:
        return provider.open()
    # The endpoint's provider may have changed since the judge was saved.
    check_parameters(endpoint, judge.params, judge.method)
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
