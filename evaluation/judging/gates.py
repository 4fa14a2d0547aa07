"""What is settled before a judge is asked: which metrics apply (one without its input is not applicable, not zero), and
answers that say nothing, which are decided by rule, so that no judge can be fooled by them.

Blank texts, a single character, the question said back and stock openings without anything behind them ("Solution:",
"Let's think step by step") get high scores from many judges (2507.08794); here no call is made for them.
"""

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
    """The metrics to ask the judge for, and the result of each that needs no asking."""

    specs: tuple[MetricSpec, ...]
    not_applicable: dict[str, Result]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics to ask for."""
        return tuple(spec.name for spec in self.specs)


def applicability(
    specs: Iterable[MetricSpec], question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings | None = None
) -> Applicability:
    """Split a family's metrics by whether their declared inputs are there."""
    asked: list[MetricSpec] = []
    left_out: dict[str, Result] = {}
    for spec in specs:
        if reason := missing_input(spec, question, answer, settings or RuleSettings()):
            left_out[spec.name] = Result.not_applicable(reason)
        else:
            asked.append(spec)
    return Applicability(tuple(asked), left_out)


def missing_input(spec: MetricSpec, question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> str:
    """The reason why the metric does not apply, or an empty text.

    Expected keywords stand in for a missing reference. An empty list of contexts is an input: the system
    retrieves and found nothing. ``evidence`` is a reference or contexts, ``points`` a reference or required
    information, ``embeddings`` what the run embeds texts with. A question of a category that the metric is not made for
    comes first.
    """
    if spec.categories and question.category not in spec.categories:
        return "other_category"
    reference = bool(question.references or question.keywords)
    retrieves = answer.contexts is not None
    negative = question.category.casefold() == NEGATIVE_CATEGORY or bool(question.check)
    there = {
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
    }
    return next((reason for name, (is_there, reason) in there.items() if name in spec.inputs and not is_there), "")


class Gate(StrEnum):
    """Why an answer is not sent to a judge."""

    BLANK = "blank"  # no letter and no digit
    TOO_SHORT = "too_short"  # one character that the reference does not name
    ECHO = "echo"  # the question, once or again and again
    STOCK = "stock"  # only openings, nothing behind them


REASONS = {
    gate: Bilingual(
        f"Decided by rule, no judge was asked: the answer {en}.",
        f"규칙으로 판정했으며 판정관을 부르지 않았습니다. 답변이 {ko}.",
    )
    for gate, en, ko in (
        (Gate.BLANK, "is blank", "비어 있습니다"),
        (Gate.TOO_SHORT, "is a single character", "한 글자뿐입니다"),
        (Gate.ECHO, "repeats the question", "질문을 되풀이합니다"),
        (Gate.STOCK, "is a stock phrase without content", "내용 없는 상투적 문구입니다"),
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
SHORT_ANSWERS = frozenset("0123456789ynox네예")  # yes, no and numbers, which may be right
_NOT_SAID = re.compile(r"[\W_]+")


def gate(question: QuestionSpec, answer: AnswerSpec) -> Gate | None:
    """Why the answer is decided by rule; ``None`` where a judge has to look at it. An answer that is one of the
    expected ones is never held back."""
    said = _core(answer.text)
    if not said:
        return Gate.BLANK
    expected = [*question.references, *(word for alternatives in question.keywords for word in alternatives)]
    if said in map(_core, expected):
        return None
    unknown = len(said) == 1 and said not in SHORT_ANSWERS and expected
    if unknown and not any(said in _NOT_SAID.split(folded(text)) for text in expected):
        return Gate.TOO_SHORT
    asked = _core(question.text)
    if asked and len(said) % len(asked) == 0 and said == asked * (len(said) // len(asked)):
        return Gate.ECHO
    return Gate.STOCK if _STOCK.fullmatch(said) else None


def bottom(spec: MetricSpec) -> Result | None:
    """The worst value of the metric's scale; ``None`` for classes, which have no worse and better."""
    if spec.scale.kind is ScaleKind.CLASS or spec.direction is Direction.NONE:
        return None
    return Result.scored(spec.scale.high if spec.direction is Direction.LOWER else spec.scale.low)


def ruled(
    family: Family, specs: Iterable[MetricSpec], question: QuestionSpec, answer: AnswerSpec, language: str
) -> Results:
    """The results that need no judge because the answer says nothing: the family's floor, each marked with the gate in
    its detail and saying so in the judge's language. None where the answer has to be looked at."""
    why = gate(question, answer) if family.floor else None
    if why is None or family.floor is None:
        return {}
    reason = REASONS[why].in_language(language)
    return {
        spec.name: replace(result, reason=result.reason or reason, detail={**result.detail, "gate": str(why)})
        for spec in specs
        if (result := family.floor(spec)) is not None
    }


def _core(text: str) -> str:
    """Letters and digits alone, as they are compared."""
    return _NOT_SAID.sub("", folded(text))


_STOCK = re.compile("(?:" + "|".join(sorted(map(_core, STOCK_PHRASES), key=len, reverse=True)) + ")+")
