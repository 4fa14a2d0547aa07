"""Next steps (source 004, phase 4): what to suggest or do after an answer, by the profile's rules. Never scored.

The label is the urgency; suggestions and actions are findings in the language of the question.
"""

from __future__ import annotations

from collections.abc import Iterable

from evaluation.core.registry import Bilingual, Direction, ReviewForm, RuleSettings, rule_metric
from evaluation.core.rulebook import Condition, NextStep
from evaluation.core.samples import AnswerSpec, ContextSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.dont_know import PHRASES
from evaluation.metrics.matching import find_keyword
from evaluation.metrics.normalise import fold_with_lines, folded, is_hangul, sentences
from evaluation.metrics.phrases import find_phrase

URGENCIES = ("low", "medium", "high")
_TAG_FIELDS = ("tags", "matched_tags")


@rule_metric(
    name="next_steps",
    scale=Scale(ScaleKind.CLASS, labels=URGENCIES),
    title=Bilingual("Next steps", "후속 안내"),
    formula=Bilingual(
        "urgency, suggested questions and actions by the profile's rules on words and tags of passages; "
        "reported, never scored",
        "프로필 규칙(단어와 청크 태그)에 따른 긴급도, 후속 질문, 조치; 보고만 하며 점수에 넣지 않음",
    ),
    source="004",
    direction=Direction.NONE,
    review_form=ReviewForm.NONE,
)
def next_steps(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """The urgency as label, the proposals as findings; not applicable (``no_next_steps``) without rules for them."""
    rules = settings.next_steps
    if rules is None:
        return Result.not_applicable("no_next_steps")
    told, tags = _told(answer.text), _tags(answer.contexts or ())
    proposed = [step for step in rules.steps if _holds(step, question.text, told, tags)]
    levels = [urgency.level for urgency in rules.urgency if _holds(urgency, question.text, told, tags)]
    korean = any(map(is_hangul, question.text))
    return Result.labelled(
        max(levels, key=URGENCIES.index, default=URGENCIES[0]),
        detail={
            "suggested_queries": [_text(step, korean) for step in proposed if step.kind == "suggestion"],
            "action_items": [_text(step, korean) for step in proposed if step.kind == "action"],
        },
        findings=tuple(Finding("next_step", _text(step, korean), step.kind) for step in proposed),
    )


def _holds(condition: Condition, question: str, told: str, tags: frozenset[str]) -> bool:
    return (
        (not condition.question or _mentions(question, condition.question))
        and (not condition.answer_lacks or not _mentions(told, condition.answer_lacks))
        and (not condition.tags or not tags.isdisjoint(map(_tag, condition.tags)))
    )


def _mentions(text: str, words: Iterable[str]) -> bool:
    return any(find_keyword((word,), text) is not None for word in words)


def _told(answer: str) -> str:
    """The sentences that tell something: "배출 위치를 모릅니다" says nothing about where."""
    lined = fold_with_lines(answer)
    parts = (lined[start:end] for start, end in sentences(lined))
    return " ".join(part for part in parts if not any(find_phrase(phrase, part) for phrase in PHRASES))


def _tags(contexts: Iterable[ContextSpec]) -> frozenset[str]:
    found: set[str] = set()
    for context in contexts:
        for field in _TAG_FIELDS:
            value = context.metadata.get(field)
            if isinstance(value, str):
                found.update(map(_tag, value.split(",")))
            elif isinstance(value, list | tuple):
                found.update(_tag(str(tag)) for tag in value)
    return frozenset(found)


def _tag(text: str) -> str:
    return folded(text).replace(" ", "_")


def _text(step: NextStep, korean: bool) -> str:
    return step.ko if korean else step.en
