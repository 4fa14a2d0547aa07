"""Family ``nuggets``: which of the facts an answer should hold it holds."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import Finding
from evaluation.core.scales import ReviewForm
from evaluation.judging.calls import Ask, Case, Family, Judging, failed
from evaluation.judging.formulas import nugget_support
from evaluation.judging.gates import bottom
from evaluation.judging.prompt import locate, placed
from evaluation.judging.rubric import TEXT, closed, one_of

NAME = "nuggets"
NUGGET, ASSIGN = "nugget", "assign"

SPEC = judged_spec(
    name="nugget_support",
    title=Bilingual("Nugget support", "핵심 사실 뒷받침률"),
    formula=Bilingual(
        "nuggets that the answer fully supports / nuggets; beside it with partial support counted half, and both "
        "over the vital nuggets alone",
        "답변이 온전히 담은 핵심 사실 수 / 핵심 사실 수. 일부만 담으면 절반으로 센 값과 필수 사실만 센 값도 함께",
    ),
    source="004",
    inputs=("nuggets",),
    review_form=ReviewForm.NUGGETS,
    rubric_family=NAME,
)


def judge(case: Case) -> Judging:
    """One verdict per nugget, each with the words of the answer it rests on."""
    nuggets = case.question.nuggets or case.settings.nuggets
    listed = {f"{NUGGET}_{i}": [one.name, *one.alternatives] for i, one in enumerate(nuggets, start=1)}
    verdict = closed({"reason": TEXT, "verdict": one_of(case.rubric.metric("nugget_support").verdicts), "quote": TEXT})
    blocks = {"question": case.question.text, "nuggets": listed, "answer": case.answer.text}
    heard = yield Ask(blocks, closed(dict.fromkeys(listed, verdict)), tuple(listed), ASSIGN, whole=True)
    if heard.failure:
        return failed(case, heard)
    parts = []
    for nugget, key in zip(nuggets, listed, strict=True):
        said = heard.parts[key]
        part = Finding(NUGGET, nugget.name, said["verdict"], reason=said["reason"])
        parts.append(placed(part, locate(said["quote"], case.answer.text)))
    return {"nugget_support": nugget_support(parts, [nugget.vital for nugget in nuggets])}


FAMILY = Family(NAME, (SPEC,), judge, floor=bottom)
