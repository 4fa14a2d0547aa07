"""Offline baseline judge as a provider: no server, no key, no cost."""

from __future__ import annotations

from typing import Self

from evaluation.core.metric_specs import Bilingual
from evaluation.judging.baseline import NAME, judge_offline
from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.providers.protocol import Provider


class BaselineJudge:
    """Answer calls from the fields that the rubric declares. Reasons are in the rubric's language, or Korean for a
    Korean question; pages translate them."""

    async def call(self, request: JudgeCall) -> JudgeReply:
        """Return the JSON text that a remote judge would return, with zero tokens.

        :raises UnknownName: for a family or step without a baseline rule."""
        return judge_offline(request)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None


BASELINE = Provider(
    name=NAME,
    title=Bilingual("Offline baseline", "오프라인 기준선"),
    open=BaselineJudge,
    remote=False,
)
