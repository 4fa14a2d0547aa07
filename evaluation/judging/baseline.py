"""The offline baseline judge: compares words, needs no model and no network, and is the trivial judge that every
real one must beat. Readers are always told that it is a baseline."""

from __future__ import annotations

import json
import time
from types import TracebackType
from typing import Self

from evaluation.errors import UnknownName
from evaluation.judging.calls import JudgeCall, JudgeReply, Outcome
from evaluation.judging.lexical.grades import GRADERS
from evaluation.registry import Bilingual

NAME = "baseline"
BASELINE_VERSION = 1  # rises when its levels would move
TITLE = Bilingual("Offline baseline", "오프라인 기준선")
DESCRIPTION = Bilingual(
    "Offline baseline: compares words with the reference and the contexts, without a model. "
    "A yardstick for real judges, not a judgement.",
    "오프라인 기준선: 모델 없이 낱말을 기대 답변과 문단에 견줍니다. 실제 판정자를 견주는 잣대이지 판정이 아닙니다.",
)


class BaselineJudge:
    """Answers any call at once, from the fields the rubric declares, with a reason in the rubric's language."""

    async def call(self, request: JudgeCall) -> JudgeReply:
        """The reply: the same JSON text a remote judge is asked for, no tokens.

        :raises UnknownName: for a metric that the baseline has no rule for (see ``grades.GRADERS``).
        """
        return judged(request)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def judged(request: JudgeCall) -> JudgeReply:
    """The baseline's reply, without a client around it."""
    started = time.monotonic()
    verdicts = {name: _verdict(name, request) for name in request.ask.names}
    return JudgeReply(
        Outcome.OK,
        raw=json.dumps(verdicts, ensure_ascii=False),
        model_returned=NAME,
        fingerprint=f"{NAME}@{BASELINE_VERSION}",
        tokens_in=0,
        tokens_out=0,
        tokens_cached=0,
        tokens_reasoning=0,
        elapsed_seconds=time.monotonic() - started,
        free=True,
    )


def _verdict(name: str, request: JudgeCall) -> dict[str, str | int]:
    if name not in GRADERS:
        raise UnknownName("baseline rule", name, sorted(GRADERS))
    grade = GRADERS[name](request.question, request.answer)
    return {"reason": grade.reason.in_language(request.rubric.language), "score": grade.level}
