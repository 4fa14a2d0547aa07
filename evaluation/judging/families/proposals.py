"""Family ``proposals``: next steps proposed by a judge, in the fields of the rule metric ``next_steps``; not scored."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, Direction, judged_spec
from evaluation.core.samples import Finding, Result
from evaluation.core.scales import ReviewForm, Scale, ScaleKind
from evaluation.judging.calls import Family, JudgeCase, JudgeRequest, Judging, failed_results
from evaluation.judging.prompt import data_blocks
from evaluation.judging.rubric import TEXT, choice_schema, list_schema, object_schema
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
        "urgency, follow-up questions and actions that a judge proposes; reported, not scored",
        "판정관이 제안한 긴급도, 후속 질문, 조치. 보고만 하며 점수에 넣지 않음",
    ),
    source="phases",
    direction=Direction.NONE,
    review_form=ReviewForm.NONE,
    rubric_family=NAME,
)


def judge(case: JudgeCase) -> Judging:
    """Make one call; the urgency is the label, the proposals are findings."""
    schema = object_schema({**{member: list_schema(TEXT) for member in KINDS}, "urgency": choice_schema(URGENCIES)})
    reply = yield JudgeRequest(
        data_blocks(case.question, case.answer, ("passages",)), schema, tuple(KINDS), PROPOSE, all_parts_required=True
    )
    if reply.failure:
        return failed_results(case, reply)
    proposed = {member: [text for text in reply.parts[member] if text] for member in KINDS}
    findings = tuple(Finding("next_step", text, kind) for member, kind in KINDS.items() for text in proposed[member])
    detail = {**proposed, "by": "judge"}
    return {METRIC: Result.labelled(reply.parts["urgency"], detail=detail, findings=findings)}


FAMILY = Family(NAME, (SPEC,), judge)
