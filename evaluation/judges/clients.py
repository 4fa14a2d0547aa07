"""Clients of judge versions, the keys of their endpoints, and the operator's table of prices."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from django.conf import settings

from evaluation.core.errors import Refused
from evaluation.judging.baseline import BaselineJudge
from evaluation.judging.calls import JudgeClient
from evaluation.judging.client import Deadlines, OpenAIJudge
from evaluation.judging.origins import origin_of
from evaluation.judging.pricing import SHIPPED, PriceTable, read_prices
from evaluation.judging.sealing import seal, unseal
from evaluation.models import Endpoint, JudgeVersion


def key_of(endpoint: Endpoint) -> str:
    """What is sent as the bearer token; empty where the endpoint wants none. A stored key comes before a named one.

    :raises Refused: ``key_unreadable`` where the stored key was sealed under another secret or for another origin,
        ``key_missing`` where the environment variable that holds it is empty.
    """
    if endpoint.sealed_key:
        secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
        return unseal(endpoint.sealed_key, origin=origin_of(endpoint.base_url), secrets=secrets)
    name = endpoint.key_env
    key = os.environ.get(name, "") if name else ""
    if name and not key:
        raise Refused("key_missing", variable=name)
    return key


def store_key(endpoint: Endpoint, key: str) -> None:
    """Seal the key for the endpoint's present origin, or forget the stored one where it is empty. Saving is the
    caller's."""
    origin = origin_of(endpoint.base_url)
    endpoint.sealed_key = seal(key, origin=origin, secret=settings.SECRET_KEY) if key else ""


def client_of(judge: JudgeVersion) -> JudgeClient:
    """A client to be used as an asynchronous context manager.

    :raises Refused: ``origin_not_allowed`` where the endpoint's origin is not on the allow-list,
        ``key_missing`` and ``key_unreadable`` of its key.
    """
    if judge.endpoint is None:
        return BaselineJudge()
    return OpenAIJudge(
        base_url=judge.endpoint.base_url,
        key=key_of(judge.endpoint),
        allowed_origins=tuple(settings.CONCORD_JUDGE_ORIGINS),
        deadlines=Deadlines(total=settings.CONCORD_CALL_SECONDS),
    )


def price_table() -> PriceTable:
    """The file that ``CONCORD_PRICES`` names, read once per process; without one the shipped table, which is empty.

    :raises InvalidFile: for a file that is no table of prices.
    :raises OSError: for a file that cannot be read.
    """
    return _read(settings.CONCORD_PRICES)


@cache
def _read(path: str) -> PriceTable:
    return read_prices(Path(path) if path else SHIPPED)
