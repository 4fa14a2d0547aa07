"""The client of a judge version: the offline baseline, or its endpoint under the operator's allow-list."""

from __future__ import annotations

from django.conf import settings

from evaluation.judges.keys import key_of
from evaluation.judging.baseline import BaselineJudge
from evaluation.judging.batch_client import BatchClient
from evaluation.judging.calls import JudgeClient
from evaluation.judging.client import Deadlines, OpenAIJudge
from evaluation.models import Endpoint, JudgeVersion


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


def batch_client_of(endpoint: Endpoint) -> BatchClient:
    """A client for batches of an endpoint, to be used as a context manager.

    :raises Refused: as :func:`client_of`.
    """
    return BatchClient(
        base_url=endpoint.base_url,
        key=key_of(endpoint),
        allowed_origins=tuple(settings.CONCORD_JUDGE_ORIGINS),
        deadlines=Deadlines(total=settings.CONCORD_CALL_SECONDS),
    )
