"""The client of a judge version: the offline baseline, or its endpoint under the operator's allow-list."""

from __future__ import annotations

import os

from django.conf import settings

from evaluation.errors import Refused
from evaluation.judges.models import JudgeVersion
from evaluation.judging.baseline import BaselineJudge
from evaluation.judging.calls import JudgeClient
from evaluation.judging.client import Deadlines, OpenAIJudge


def client_of(judge: JudgeVersion) -> JudgeClient:
    """A client to be used as an asynchronous context manager.

    :raises Refused: ``origin_not_allowed`` where the endpoint's origin is not on the allow-list,
        ``key_missing`` where the environment variable that holds its key is empty.
    """
    if judge.endpoint is None:
        return BaselineJudge()
    name = judge.endpoint.key_env
    key = os.environ.get(name, "") if name else ""
    if name and not key:
        raise Refused("key_missing", variable=name)
    return OpenAIJudge(
        base_url=judge.endpoint.base_url,
        key=key,
        allowed_origins=tuple(settings.CONCORD_JUDGE_ORIGINS),
        deadlines=Deadlines(total=settings.CONCORD_CALL_SECONDS),
    )
