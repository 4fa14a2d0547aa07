"""Scripted judge replies and the cases that they judge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.judging.calls import JudgeCase, JudgeReply
from evaluation.judging.catalogue import family_named
from evaluation.judging.rubric import shipped_rubric
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.samples import answer, case, question


def make_reply(**parts: Any) -> JudgeReply:
    """A delivered reply with the given JSON members."""
    return JudgeReply(Outcome.OK, raw=json.dumps(parts, ensure_ascii=False))


def verdict(word: str, context: int = 0, quote: str = "", reason: str = "Because.") -> dict[str, Any]:
    """A verdict on a claim or statement."""
    return {"reason": reason, "verdict": word, "context": context, "quote": quote}


def make_case(
    family: str,
    question_spec: QuestionSpec | None = None,
    answer_spec: AnswerSpec | None = None,
    *,
    language: str = "en",
    metrics: Sequence[str] = (),
    settings: RuleSettings | None = None,
) -> JudgeCase:
    """A case with all metrics of a family, or with the named ones."""
    metric_names = metrics or [spec.name for spec in family_named(family).produced_metrics]
    return case(
        question_spec or question(), answer_spec or answer(), metric_names, shipped_rubric(family, language), settings
    )
