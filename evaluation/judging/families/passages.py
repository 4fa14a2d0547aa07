"""Family ``passages``: whether each retrieved passage helps to answer the question; precision and average precision."""

from __future__ import annotations

from functools import partial

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import Finding
from evaluation.core.scales import PERCENT, ReviewForm
from evaluation.judging.calls import Ask, Case, Family, Judging, failed
from evaluation.judging.formulas import figure_from_parts
from evaluation.judging.prompt import numbered, reference_block
from evaluation.judging.rubric import TEXT, closed, one_of

NAME = "passages"
CONTEXT = "context"
RATE = "rate"
BATCH = 20  # passages in one request
_spec = partial(
    judged_spec,
    scale=PERCENT,
    source="001",
    inputs=("contexts",),
    optional_inputs=("reference",),
    review_form=ReviewForm.CONTEXTS,
    rubric_family=NAME,
)

METRICS = (
    _spec(
        name="context_precision",
        title=Bilingual("Context precision", "문단 정밀도"),
        formula=Bilingual(
            "relevant retrieved passages / retrieved passages x 100; 0 where nothing was retrieved",
            "질문에 도움이 되는 검색 문단 수 / 검색 문단 수 x 100. 검색된 것이 없으면 0",
        ),
    ),
    _spec(
        name="context_average_precision",
        title=Bilingual("Context average precision", "문단 평균 정밀도"),
        formula=Bilingual(
            "mean over the relevant passages of the precision down to each rank x 100; 0 without a relevant passage",
            "도움이 되는 문단마다 그 순위까지의 정밀도를 구해 평균 x 100. 도움이 되는 문단이 없으면 0",
        ),
    ),
)


def judge(case: Case) -> Judging:
    """One verdict per passage, in batches, shared by both metrics. Nothing retrieved needs no asking: both are 0."""
    contexts = case.answer.contexts or ()
    parts: list[Finding] = []
    verdicts = case.rubric.metric(case.rubric.step(RATE).metric).verdicts
    verdict = closed({"reason": TEXT, "verdict": one_of(verdicts)})
    for first in range(0, len(contexts), BATCH):
        batch = contexts[first : first + BATCH]
        keys = tuple(f"{CONTEXT}_{first + place}" for place in range(1, len(batch) + 1))
        shown = {**reference_block(case.question), "contexts": numbered(batch, first + 1)}
        blocks = {"question": case.question.text, **shown}
        heard = yield Ask(blocks, closed(dict.fromkeys(keys, verdict)), keys, RATE, whole=True)
        if heard.failure:
            return failed(case, heard)
        for place, context in enumerate(batch, start=first):
            said = heard.parts[f"{CONTEXT}_{place + 1}"]
            name = context.chunk_id or str(place + 1)
            parts.append(Finding(CONTEXT, name, said["verdict"], context=place, reason=said["reason"]))
    return {name: figure_from_parts(name, parts) for name in case.metrics}


FAMILY = Family(NAME, METRICS, judge)
