"""Family ``nuggets``: required facts that the answer contains."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import Finding
from evaluation.core.scales import ReviewForm
from evaluation.judging.calls import Family, JudgeCase, JudgeRequest, Judging, failed_results
from evaluation.judging.formulas import nugget_support
from evaluation.judging.prechecks import worst_result
from evaluation.judging.prompt import locate_quote, with_span
from evaluation.judging.rubric import TEXT, choice_schema, object_schema

NAME = "nuggets"
NUGGET, ASSIGN = "nugget", "assign"

SPEC = judged_spec(
    name="nugget_support",
    title=Bilingual("Nugget support", "핵심 사실 뒷받침률"),
    formula=Bilingual(
        "nuggets that the answer fully supports / nuggets; also with partial support counted as half, and both for "
        "vital nuggets only",
        "답변이 온전히 담은 핵심 사실 수 / 핵심 사실 수. 일부만 담으면 절반으로 센 값과 필수 사실만 센 값도 함께",
    ),
    source="phases",
    inputs=("nuggets",),
    review_form=ReviewForm.NUGGETS,
    rubric_family=NAME,
)


def judge(case: JudgeCase) -> Judging:
    """Request one verdict per nugget, with a quote from the answer."""
    nuggets = case.question.nuggets or case.settings.nuggets
    listed = {f"{NUGGET}_{i}": [fact.name, *fact.alternatives] for i, fact in enumerate(nuggets, start=1)}
    verdict = object_schema(
        {"reason": TEXT, "verdict": choice_schema(case.rubric.metric("nugget_support").verdicts), "quote": TEXT}
    )
    blocks = {"question": case.question.text, "nuggets": listed, "answer": case.answer.text}
    reply = yield JudgeRequest(
        blocks, object_schema(dict.fromkeys(listed, verdict)), tuple(listed), ASSIGN, all_parts_required=True
    )
    if reply.failure:
        return failed_results(case, reply)
    parts = []
    for nugget, key in zip(nuggets, listed, strict=True):
        verdict_part = reply.parts[key]
        part = Finding(NUGGET, nugget.name, verdict_part["verdict"], reason=verdict_part["reason"])
        parts.append(with_span(part, locate_quote(verdict_part["quote"], case.answer.text)))
    return {"nugget_support": nugget_support(parts, [nugget.vital for nugget in nuggets])}


FAMILY = Family(NAME, (SPEC,), judge, floor=worst_result)
