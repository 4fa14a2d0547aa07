"""Family ``answer_class``: whether an answer is correct, wrong, or admits not to know. The last is told by rule."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, Direction, judged_spec
from evaluation.core.samples import Result
from evaluation.core.scales import ReviewForm, Scale, ScaleKind
from evaluation.judging.calls import Ask, Case, Family, Judging
from evaluation.judging.formulas import read_scores
from evaluation.judging.prompt import data_blocks, shown
from evaluation.judging.rubric import TEXT, closed, one_of
from evaluation.metrics.phrases import dont_know

NAME = "answer_class"
CORRECT, WRONG, DONT_KNOW = "CORRECT", "WRONG", "DONT_KNOW"

SPEC = judged_spec(
    name="answer_class",
    scale=Scale(ScaleKind.CLASS, labels=(CORRECT, WRONG, DONT_KNOW)),
    title=Bilingual("Answer class", "답변 분류"),
    formula=Bilingual(
        "DONT_KNOW where the answer admits not knowing (by rule), else a judge's CORRECT or WRONG against the "
        "reference",
        "모른다고 인정하면 규칙에 따라 DONT_KNOW, 그 밖에는 기대 답변과 견주어 판정관이 CORRECT 또는 WRONG",
    ),
    source="001",
    direction=Direction.NONE,
    inputs=("reference",),
    review_form=ReviewForm.CLASS,
    rubric_family=NAME,
)


def judge(case: Case) -> Judging:
    """The rule first; the judge is asked only about answers that do not admit ignorance."""
    admits = dont_know(case.question, case.answer, case.settings)
    if admits.value:
        return {NAME: Result.labelled(DONT_KNOW, detail={"by": "rule"}, findings=admits.findings)}
    schema = closed({NAME: closed({"reason": TEXT, "label": one_of((CORRECT, WRONG))})})
    shape = closed({NAME: case.rubric.metric(NAME).verdict_shape})
    heard = yield Ask(data_blocks(case.question, case.answer, shown(case)), schema, (NAME,), shape=shape)
    result = read_scores(case, heard)[NAME]
    if result.label == DONT_KNOW:  # the rule has decided that; a judge was not offered it
        result = Result.failed("scale", detail={"got": DONT_KNOW, "reason": result.reason})
    return {NAME: result}


FAMILY = Family(NAME, (SPEC,), judge, floor=lambda _: Result.labelled(WRONG))
