"""Replies written by the tests, and the cases they are about."""

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


def said(**parts: Any) -> JudgeReply:
    """A delivered reply with these members."""
    return JudgeReply(Outcome.OK, raw=json.dumps(parts, ensure_ascii=False))


def verdict(word: str, context: int = 0, quote: str = "", reason: str = "Because.") -> dict[str, Any]:
    """One verdict on a claim or statement."""
    return {"reason": reason, "verdict": word, "context": context, "quote": quote}


def before(
    family: str,
    asked: QuestionSpec | None = None,
    given: AnswerSpec | None = None,
    *,
    language: str = "en",
    metrics: Sequence[str] = (),
    settings: RuleSettings | None = None,
) -> JudgeCase:
    """All metrics of a family (or the named ones) before a judge."""
    wanted = metrics or [spec.name for spec in family_named(family).produced_metrics]
    return case(asked or question(), given or answer(), wanted, shipped_rubric(family, language), settings)
