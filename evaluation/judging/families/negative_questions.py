"""Family ``negative_questions``: what an answer to a negative question does. Where a judge is on, this label, not the
phrase rule, decides whether the question's check is passed; the rule's findings stand beside it."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, Direction, RuleSettings, judged_spec
from evaluation.core.samples import QuestionSpec, Result, Status
from evaluation.core.scales import ReviewForm, Scale, ScaleKind
from evaluation.judging.calls import Case, Family, Judging, failed
from evaluation.judging.formulas import read_verdict, scores_ask
from evaluation.judging.prompt import data_blocks
from evaluation.metrics.phrases import negative_detection

NAME = "negative_questions"
LABEL, DETECTION = "negative_label", "negative_detection"
ABSTAIN, CORRECT_PREMISE, ANSWER, FABRICATE = "abstain", "correct_premise", "answer", "fabricate"
PREMISE, DISCLAIMER = "should_correct_premise", "should_provide_accurate_disclaimer"
PASSING = (ABSTAIN, CORRECT_PREMISE)  # of checks that say nothing else

SPEC = judged_spec(
    name=LABEL,
    scale=Scale(ScaleKind.CLASS, labels=(ABSTAIN, CORRECT_PREMISE, ANSWER, FABRICATE)),
    title=Bilingual("Negative question label", "부정 질문 판정"),
    formula=Bilingual(
        "what the answer to a negative question does, by a judge: abstain, correct_premise, answer, fabricate; it "
        "decides negative_detection",
        "부정 질문에 대한 답변이 하는 일을 판정관이 분류: abstain(답을 삼감), correct_premise(전제를 바로잡음), "
        "answer(답함), fabricate(지어냄). negative_detection을 결정함",
    ),
    source="000",
    direction=Direction.NONE,
    inputs=("check",),
    optional_inputs=("reference", "contexts"),
    review_form=ReviewForm.CLASS,
    rubric_family=NAME,
)


def judge(case: Case) -> Judging:
    """One label, and what it means for the check."""
    phrases = case.question.check_phrases.model_dump(exclude_defaults=True) if case.question.check_phrases else {}
    blocks = {
        "check": {"expects": case.question.check, **phrases},  # what the question's author expects of the answer
        **data_blocks(case.question, case.answer, ("reference", "passages")),
    }
    heard = yield scores_ask(case.rubric, (LABEL,), blocks)
    if heard.failure:
        return failed(case, heard)
    label = read_verdict(case.rubric.metric(LABEL), heard.parts.get(LABEL))
    return {LABEL: label, DETECTION: decided(case, label)}


def decided(case: Case, label: Result) -> Result:
    """Whether the check is passed: by the label, failed where the label is; a question whose check nobody defines
    fails as the rule does."""
    rule = negative_detection(case.question, case.answer, case.settings)
    if rule.status is not Status.SCORED:
        return rule
    if label.label is None:
        return Result.failed(label.reason, detail={"rule": rule.value})
    passed = label.label in passing_labels(case.question, case.settings, phrases_met=rule.value == 1)
    return Result.scored(
        float(passed),
        reason=label.reason,
        detail={"check": case.question.check, "label": label.label, "rule": rule.value},
        findings=rule.findings,
    )


def passing_labels(question: QuestionSpec, settings: RuleSettings, *, phrases_met: bool) -> tuple[str, ...]:
    """The labels with which an answer passes the question's check.

    Abstaining passes all but a false premise that has to be corrected; correcting a premise passes; a plain answer
    passes only where a disclaimer was wanted and its phrases are there; a fabrication fails.
    """
    if own := settings.passing.get(question.check):
        return own
    if question.check == PREMISE:
        return (CORRECT_PREMISE,)
    if question.check == DISCLAIMER and phrases_met:
        return (*PASSING, ANSWER)
    return PASSING


FAMILY = Family(NAME, (SPEC,), judge, decides=(negative_detection,))
