"""Family ``proposals``: next steps that a judge proposes, in the fields of rule metric ``next_steps``; not scored."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, Direction, judged_spec
from evaluation.core.samples import Finding, Result
from evaluation.core.scales import ReviewForm, Scale, ScaleKind
from evaluation.judging.calls import Ask, Case, Family, Judging, failed
from evaluation.judging.prompt import data_blocks
from evaluation.judging.rubric import TEXT, closed, list_of, one_of
from evaluation.metrics.phrases import URGENCIES

NAME = "proposals"
METRIC = "next_steps_by_judge"
PROPOSE = "propose"
KINDS = {"suggested_queries": "suggestion", "action_items": "action"}

SPEC = judged_spec(
    name=METRIC,
    scale=Scale(ScaleKind.CLASS, labels=URGENCIES),
    title=Bilingual("Next steps, by a judge", "판정관이 제안한 후속 안내"),
    formula=Bilingual(
        "urgency, suggested questions and actions as a judge proposes them; reported, never scored",
        "판정관이 제안한 긴급도, 후속 질문, 조치. 보고만 하며 점수에 넣지 않음",
    ),
    source="004",
    direction=Direction.NONE,
    review_form=ReviewForm.NONE,
    rubric_family=NAME,
)


def judge(case: Case) -> Judging:
    """One call; the urgency is the label, the proposals are findings."""
    schema = closed({**{member: list_of(TEXT) for member in KINDS}, "urgency": one_of(URGENCIES)})
    heard = yield Ask(data_blocks(case.question, case.answer, ("passages",)), schema, tuple(KINDS), PROPOSE, whole=True)
    if heard.failure:
        return failed(case, heard)
    proposed = {member: [text for text in heard.parts[member] if text] for member in KINDS}
    findings = tuple(Finding("next_step", text, kind) for member, kind in KINDS.items() for text in proposed[member])
    detail = {**proposed, "by": "judge"}
    return {METRIC: Result.labelled(heard.parts["urgency"], detail=detail, findings=findings)}


FAMILY = Family(NAME, (SPEC,), judge)
