"""The offline baseline as a provider: no server, no key, no cost."""

from __future__ import annotations

from typing import Self

from evaluation.core.metric_specs import Bilingual
from evaluation.judging.baseline import NAME, judged
from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.providers.protocol import Provider


class BaselineJudge:
    """Answers any call at once, from the fields the rubric declares, with a reason in the rubric's language, in
    Korean also for a Korean question; pages tell it in the reader's."""

    async def call(self, request: JudgeCall) -> JudgeReply:
        """The JSON text that a remote judge is asked for, without tokens.

        :raises UnknownName: for a family or step that the baseline has no rule for.
        """
        return judged(request)

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
