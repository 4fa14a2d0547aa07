"""The offline baseline judge: compares words, needs no model and no network, and is the trivial judge that every
real one must beat. Readers are always told that it is a baseline."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from evaluation.core.errors import UnknownName
from evaluation.core.registry import Bilingual
from evaluation.judging.calls import JudgeCall, JudgeReply, Outcome
from evaluation.judging.lexical import claims, scores
from evaluation.judging.rubric import is_criterion

NAME = "baseline"
BASELINE_VERSION = 1  # rises when its levels would move
DESCRIPTION = Bilingual(
    "Offline baseline: compares words with the reference and the contexts, without a model. "
    "A yardstick for real judges, not a judgement.",
    "오프라인 기준선: 모델 없이 낱말을 기대 답변과 문단에 견줍니다. 실제 판정관을 견주는 잣대이지 판정이 아닙니다.",
)


ANSWERS: Mapping[tuple[str, str], Callable[[JudgeCall], dict[str, Any]]] = {
    ("answer_quality", ""): scores.graded,
    ("negative_questions", ""): scores.labelled_negative,
    ("claims", "extract"): claims.claims_of,
    ("claims", "verify"): claims.verified_claims,
    ("passages", "rate"): claims.rated_passages,
    ("statements", "extract"): claims.statements_of,
    ("statements", "attribute"): claims.attributed_statements,
    ("asked_back", "write"): scores.asked_back,
    ("factual_accuracy", "assess"): scores.factual_accuracy,
    ("answer_class", ""): scores.classed_answer,
    ("generation_faithfulness", ""): scores.shares,
    ("answer_relevancy", ""): scores.shares,
    ("regulation_quality", ""): scores.regulation_quality,
    ("nuggets", "assign"): claims.assigned_nuggets,
    ("proposals", "propose"): scores.no_proposals,
}
"""How each step of each family is answered (the step is empty in families of one call)."""


class BaselineJudge:
    """Answers any call at once, from the fields the rubric declares, with a reason in the rubric's language, in
    Korean also for a Korean question."""

    async def call(self, request: JudgeCall) -> JudgeReply:
        """The reply: the same JSON text a remote judge is asked for, no tokens.

        :raises UnknownName: for a family or step that the baseline has no rule for (see :data:`ANSWERS`).
        """
        return judged(request)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None


def judged(request: JudgeCall) -> JudgeReply:
    """The baseline's reply, without a client around it."""
    started = time.monotonic()
    rule = _rule(request.rubric.family, request.ask.step)
    return JudgeReply(
        Outcome.OK,
        raw=json.dumps(rule(request), ensure_ascii=False),
        model_returned=NAME,
        fingerprint=f"{NAME}@{BASELINE_VERSION}",
        tokens_in=0,
        tokens_out=0,
        tokens_cached=0,
        tokens_reasoning=0,
        elapsed_seconds=time.monotonic() - started,
        free=True,
    )


def _rule(family: str, step: str) -> Callable[[JudgeCall], dict[str, Any]]:
    if is_criterion(family):
        return scores.stand_in
    if (family, step) not in ANSWERS:
        raise UnknownName("baseline rule", f"{family}/{step}", sorted("/".join(known) for known in ANSWERS))
    return ANSWERS[family, step]
