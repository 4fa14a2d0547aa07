"""Checks before a judge call: which metrics apply, and which answers are decided by rule.

A metric without its input is not applicable rather than zero. Blank answers, single characters, repeated questions and
stock openings ("Solution:", "Let's think step by step") get high scores from many judges (arXiv 2507.08794), so no call
is made for them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from evaluation.core.metric_specs import Bilingual, Direction, MetricSpec, RuleSettings
from evaluation.core.samples import NEGATIVE_CATEGORY, AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import ScaleKind
from evaluation.judging.calls import Family, Results
from evaluation.metrics.normalise import folded


@dataclass(frozen=True, slots=True)
class Applicability:
    """Metrics to ask the judge for, and the results of the metrics that do not apply."""

    specs: tuple[MetricSpec, ...]
    not_applicable: dict[str, Result]

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)


def applicability(
    specs: Iterable[MetricSpec], question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings | None = None
) -> Applicability:
    """Split a family's metrics by whether their declared inputs are present."""
    applicable: list[MetricSpec] = []
    not_applicable: dict[str, Result] = {}
    for spec in specs:
        if reason := missing_input(spec, question, answer, settings or RuleSettings()):
            not_applicable[spec.name] = Result.not_applicable(reason)
        else:
            applicable.append(spec)
    return Applicability(tuple(applicable), not_applicable)


def missing_input(spec: MetricSpec, question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> str:
    """Reason code why the metric does not apply, or an empty string. The question category is checked first.

    Expected keywords replace a missing reference. An empty list of contexts counts as input: the system retrieves but
    found nothing. ``evidence`` needs a reference or contexts, ``points`` a reference or required information,
    ``embeddings`` an embedding model of the run."""
    if spec.categories and question.category not in spec.categories:
        return "other_category"
    reference = bool(question.references or question.keywords)
    retrieves = answer.contexts is not None
    negative = question.category.casefold() == NEGATIVE_CATEGORY or bool(question.check)
    inputs = {
        "reference": (reference, "no_reference"),
        "contexts": (retrieves, "does_not_retrieve"),
        "evidence": (reference or retrieves, "no_reference"),
        "points": (reference or bool(question.required_info), "no_reference"),
        "nuggets": (bool(question.nuggets or settings.nuggets), "no_nuggets"),
        "check": (negative, "not_negative"),
        "required_info": (bool(question.required_info), "no_required_info"),
        "persona": (bool(question.persona), "no_persona"),
        "history": (bool(question.history), "no_history"),
        "embeddings": (settings.embeds, "no_embeddings"),
        "keywords": (bool(question.keywords), "no_keywords"),
        "ground_truth_chunk_ids": (bool(question.ground_truth_chunk_ids), "no_relevant_chunks"),
        "retrieved_ids": (retrieves or answer.retrieved_ids is not None, "does_not_retrieve"),
        "latency": (answer.latency_seconds is not None, "no_latency"),
    }
    return next((reason for name, (present, reason) in inputs.items() if name in spec.inputs and not present), "")


class SkipReason(StrEnum):
    """Reason for deciding an answer by rule instead of by a judge."""

    # No letter and no digit.
    BLANK = "blank"
    # A single character that no reference contains.
    TOO_SHORT = "too_short"
    # The question, once or repeated.
    ECHO = "echo"
    # Stock openings without content.
    STOCK = "stock"


REASONS = {
    skip_reason: Bilingual(
        f"Decided by rule, no judge was asked: the answer {en}.",
        f"규칙으로 판정했으며 판정관을 부르지 않았습니다. 답변이 {ko}.",
    )
    for skip_reason, en, ko in (
        (SkipReason.BLANK, "is blank", "비어 있습니다"),
        (SkipReason.TOO_SHORT, "is a single character", "한 글자뿐입니다"),
        (SkipReason.ECHO, "repeats the question", "질문을 되풀이합니다"),
        (SkipReason.STOCK, "is a stock phrase without content", "내용 없는 상투적 문구입니다"),
    )
}
STOCK_PHRASES = (
    "solution", "the solution", "answer", "the answer", "final answer", "the answer is", "the answer is as follows",
    "explanation", "thought process", "reasoning", "assistant", "let's solve this problem step by step",
    "let's solve this step by step", "let's think step by step", "let's solve this", "let me solve this step by step",
    "let me think step by step", "here is the answer", "here is the solution", "here's the answer", "great question",
    "정답", "답", "답변", "답변입니다", "해설", "풀이", "풀이 과정", "해답", "해결책", "최종 답변",
    "사고 과정", "추론 과정", "좋은 질문입니다", "다음과 같습니다", "답변은 다음과 같습니다",
    "정답은 다음과 같습니다", "단계별로 풀어 보겠습니다", "단계별로 생각해 보겠습니다",
    "차근차근 풀어 보겠습니다", "차근차근 생각해 봅시다", "이 문제를 단계별로 풀어 보겠습니다",
    "문제를 풀어 봅시다",
)  # fmt: skip
# Yes, no and numbers can be correct answers.
SHORT_ANSWERS = frozenset("0123456789ynox네예")
_NON_ALPHANUMERIC = re.compile(r"[\W_]+")


def skip_reason(question: QuestionSpec, answer: AnswerSpec) -> SkipReason | None:
    """Reason to decide the answer by rule, or ``None`` if a judge must read it. An answer equal to a reference or
    keyword always goes to the judge."""
    content = _alphanumeric(answer.text)
    if not content:
        return SkipReason.BLANK
    expected = [*question.references, *(word for alternatives in question.keywords for word in alternatives)]
    if content in map(_alphanumeric, expected):
        return None
    unknown = len(content) == 1 and content not in SHORT_ANSWERS and expected
    if unknown and not any(content in _NON_ALPHANUMERIC.split(folded(text)) for text in expected):
        return SkipReason.TOO_SHORT
    question_content = _alphanumeric(question.text)
    if (
        question_content
        and len(content) % len(question_content) == 0
        and content == question_content * (len(content) // len(question_content))
    ):
        return SkipReason.ECHO
    return SkipReason.STOCK if _STOCK.fullmatch(content) else None


def worst_result(spec: MetricSpec) -> Result | None:
    """Worst result of the metric's scale; ``None`` for classes, which have no order."""
    if spec.scale.kind is ScaleKind.CLASS or spec.direction is Direction.NONE:
        return None
    return Result.scored(spec.scale.high if spec.direction is Direction.LOWER else spec.scale.low)


def rule_results(
    family: Family, specs: Iterable[MetricSpec], question: QuestionSpec, answer: AnswerSpec, language: str
) -> Results:
    """Results of an answer decided by rule: the family's floor, with the skip reason in ``detail`` and an explanation
    in the judge's language. Empty if a judge must read the answer."""
    cause = skip_reason(question, answer) if family.floor else None
    if cause is None or family.floor is None:
        return {}
    reason = REASONS[cause].in_language(language)
    return {
        spec.name: replace(result, reason=result.reason or reason, detail={**result.detail, "gate": str(cause)})
        for spec in specs
        if (result := family.floor(spec)) is not None
    }


def _alphanumeric(text: str) -> str:
    """Folded letters and digits of a text, for comparison."""
    return _NON_ALPHANUMERIC.sub("", folded(text))


_STOCK = re.compile("(?:" + "|".join(sorted(map(_alphanumeric, STOCK_PHRASES), key=len, reverse=True)) + ")+")
