"""Questions, answers and calls that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.judging.calls import JudgeCall, JudgeReply, Outcome
from evaluation.judging.prompt import judge_call
from evaluation.judging.rubric import Rubric, shipped_rubric
from evaluation.samples import AnswerSpec, ContextSpec, QuestionSpec

KO = shipped_rubric("answer_quality", "ko")
EN = shipped_rubric("answer_quality", "en")
ALL = ("correctness", "faithfulness", "completeness")


def question(text: str = "How long is leave?", **fields: Any) -> QuestionSpec:
    defaults: dict[str, Any] = {"id": "q1", "category": "single_hop", "references": ("Three years.",)}
    return QuestionSpec(**{**defaults, **fields, "text": text})


def answer(
    text: str = "Three years.", contexts: Sequence[str] | None = ("Leave is three years at most.",)
) -> AnswerSpec:
    passages = None if contexts is None else tuple(ContextSpec(context) for context in contexts)
    return AnswerSpec(text=text, contexts=passages)


def call(
    asked: QuestionSpec | None = None,
    given: AnswerSpec | None = None,
    metrics: Sequence[str] = ALL,
    rubric: Rubric = EN,
    **parameters: Any,
) -> JudgeCall:
    settings = {"temperature": 0, **parameters}
    return judge_call(rubric, asked or question(), given or answer(), metrics, model="judge-1", parameters=settings)


def delivered(raw: str) -> JudgeReply:
    return JudgeReply(Outcome.OK, raw=raw)
