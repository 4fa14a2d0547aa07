"""Family ``answer_class``: correct, wrong, or admits not knowing (decided by rule)."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, Direction, judged_spec
from evaluation.core.samples import Result
from evaluation.core.scales import ReviewForm, Scale, ScaleKind
from evaluation.judging.calls import Family, JudgeCase, JudgeRequest, Judging
from evaluation.judging.formulas import read_scores
from evaluation.judging.prompt import data_blocks, declared_inputs
from evaluation.judging.rubric import TEXT, choice_schema, object_schema
from evaluation.metrics.phrases import dont_know

NAME = "answer_class"
CORRECT, WRONG, DONT_KNOW = "CORRECT", "WRONG", "DONT_KNOW"

SPEC = judged_spec(
    name="answer_class",
    scale=Scale(ScaleKind.CLASS, labels=(CORRECT, WRONG, DONT_KNOW)),
    title=Bilingual("Answer class", "답변 분류"),
    formula=Bilingual(
        "DONT_KNOW if the answer admits not knowing (by rule), else CORRECT or WRONG by a judge who compares it with "
        "the reference",
        "모른다고 인정하면 규칙에 따라 DONT_KNOW, 그 밖에는 기대 답변과 비교해 판정관이 CORRECT 또는 WRONG",
    ),
    source="ragas",
    direction=Direction.NONE,
    inputs=("reference",),
    review_form=ReviewForm.CLASS,
    rubric_family=NAME,
)


def judge(case: JudgeCase) -> Judging:
    """Apply the rule first; ask the judge only about answers that do not admit ignorance."""
    admits = dont_know(case.question, case.answer, case.settings)
    if admits.value:
        return {NAME: Result.labelled(DONT_KNOW, detail={"by": "rule"}, findings=admits.findings)}
    schema = object_schema({NAME: object_schema({"reason": TEXT, "label": choice_schema((CORRECT, WRONG))})})
    accepted_schema = object_schema({NAME: case.rubric.metric(NAME).lenient_verdict_schema})
    reply = yield JudgeRequest(
        data_blocks(case.question, case.answer, declared_inputs(case)), schema, (NAME,), accepted_schema=accepted_schema
    )
    result = read_scores(case, reply)[NAME]
    # The rule has decided this already, and the label was not offered to the judge.
    if result.label == DONT_KNOW:
        result = Result.failed("scale", detail={"got": DONT_KNOW, "reason": result.reason})
    return {NAME: result}


FAMILY = Family(NAME, (SPEC,), judge, floor=lambda _: Result.labelled(WRONG))
