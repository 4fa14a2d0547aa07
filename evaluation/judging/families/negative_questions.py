"""Family ``negative_questions``: behavior of an answer to a negative question. In judged runs this label decides
whether the question's check passes; findings of the phrase rule are kept."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, Direction, RuleSettings, judged_spec
from evaluation.core.samples import QuestionSpec, Result, Status
from evaluation.core.scales import ReviewForm, Scale, ScaleKind
from evaluation.judging.calls import Family, JudgeCase, Judging, failed_results
from evaluation.judging.formulas import read_verdict, scores_request
from evaluation.judging.prompt import data_blocks
from evaluation.metrics.phrases import negative_detection

NAME = "negative_questions"
LABEL, DETECTION = "negative_label", "negative_detection"
ABSTAIN, CORRECT_PREMISE, ANSWER, FABRICATE = "abstain", "correct_premise", "answer", "fabricate"
PREMISE, DISCLAIMER = "should_correct_premise", "should_provide_accurate_disclaimer"
# Of checks without their own rule.
PASSING = (ABSTAIN, CORRECT_PREMISE)

SPEC = judged_spec(
    name=LABEL,
    scale=Scale(ScaleKind.CLASS, labels=(ABSTAIN, CORRECT_PREMISE, ANSWER, FABRICATE)),
    title=Bilingual("Negative question label", "부정 질문 판정"),
    formula=Bilingual(
        "a judge's label for the answer to a negative question: abstain, correct_premise, answer or fabricate; it "
        "decides negative_detection",
        "부정 질문에 대한 답변이 하는 일을 판정관이 분류: abstain(답을 삼감), correct_premise(전제를 바로잡음), "
        "answer(답함), fabricate(지어냄). negative_detection을 결정함",
    ),
    source="graphrag",
    direction=Direction.NONE,
    inputs=("check",),
    optional_inputs=("reference", "contexts"),
    review_form=ReviewForm.CLASS,
    rubric_family=NAME,
)


def judge(case: JudgeCase) -> Judging:
    """Request one label and derive the check's result."""
    phrases = case.question.check_phrases.model_dump(exclude_defaults=True) if case.question.check_phrases else {}
    blocks = {
        # Expectation of the question's author.
        "check": {"expects": case.question.check, **phrases},
        **data_blocks(case.question, case.answer, ("reference", "passages")),
    }
    reply = yield scores_request(case.rubric, (LABEL,), blocks)
    if reply.failure:
        return failed_results(case, reply)
    label = read_verdict(case.rubric.metric(LABEL), reply.parts.get(LABEL))
    return {LABEL: label, DETECTION: check_result(case, label)}


def check_result(case: JudgeCase, label: Result) -> Result:
    """Return whether the check passes by the label; failed if the label is. A question without a defined check fails as
    in the rule."""
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
    """Labels with which an answer passes the question's check.

    Abstaining passes unless a false premise must be corrected. Correcting a premise passes. A plain answer passes only
    if a disclaimer was required and its phrases are present. A fabrication fails."""
    if configured := settings.passing.get(question.check):
        return configured
    if question.check == PREMISE:
        return (CORRECT_PREMISE,)
    if question.check == DISCLAIMER and phrases_met:
        return (*PASSING, ANSWER)
    return PASSING


FAMILY = Family(NAME, (SPEC,), judge, decided_rules=(negative_detection,))
