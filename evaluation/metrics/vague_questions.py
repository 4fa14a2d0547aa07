"""Vague questions of regulation evaluation: a system should ask back; an answer may miss the question, so a person
should check it."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, Direction, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import YES_NO, ReviewForm
from evaluation.metrics.normalise import folded
from evaluation.metrics.phrases import find_phrase

# The profile's list of phrases, which replaces the built-in ones.
ASKING_BACK = "asking_back"
PHRASES = (
    "말씀해 주", "알려 주시", "알려주시", "구체적으로", "자세히 알려", "어떤…궁금", "어떤…필요", "무엇을…원하",
    "무엇이…궁금", "어느…말씀", "could you clarify", "can you clarify", "please clarify", "please specify",
    "could you specify", "more specific", "do you mean", "did you mean", "tell me more", "let me know which",
)  # fmt: skip


@rule_metric(
    name="check_relevance",
    scale=YES_NO,
    title=Bilingual("Vague question answered without asking back", "모호한 질문에 되묻지 않고 답변"),
    formula=Bilingual(
        "1 if the answer to a question marked clarification_ok neither ends with a question nor uses a phrase that "
        "asks for clarification, so that a person should check it; else 0",
        "clarification_ok로 표시된 질문에 답변이 물음으로 끝나지도 않고 무엇을 뜻하는지 묻는 표현도 없으면 "
        "1(질문에 맞는 답변인지 사람이 확인), 아니면 0",
    ),
    source="regulation",
    direction=Direction.LOWER,
    review_form=ReviewForm.YES_NO,
)
def check_relevance(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0; not applicable (``not_vague``) to questions that need no clarification."""
    if not question.clarification_ok:
        return Result.not_applicable("not_vague")
    if folded(answer.text).rstrip(" \"')]").endswith("?"):
        return Result.scored(0.0)
    hits = (find_phrase(phrase, answer.text) for phrase in settings.phrases.get(ASKING_BACK, PHRASES))
    hit = next((hit for hit in hits if hit is not None and hit.counts), None)
    if hit is None:
        return Result.scored(1.0)
    return Result.scored(0.0, findings=(Finding("flag", hit.phrase, ASKING_BACK, start=hit.start, end=hit.end),))
