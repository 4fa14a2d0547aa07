"""Family ``passages``: relevance of each retrieved passage, for precision and average precision."""

from __future__ import annotations

from functools import partial

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import Finding
from evaluation.core.scales import PERCENT, ReviewForm
from evaluation.judging.calls import Family, JudgeCase, JudgeRequest, Judging, failed_results
from evaluation.judging.formulas import score_from_parts
from evaluation.judging.prompt import numbered_passages, reference_block
from evaluation.judging.rubric import TEXT, choice_schema, object_schema

NAME = "passages"
CONTEXT = "context"
RATE = "rate"
# Passages in one request.
BATCH = 20
_spec = partial(
    judged_spec,
    scale=PERCENT,
    source="ragas",
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
            "relevant retrieved passages / retrieved passages x 100; 0 if nothing was retrieved",
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


def judge(case: JudgeCase) -> Judging:
    """Request one verdict per passage in batches, shared by both metrics. Without passages no call is made and both are
    0."""
    contexts = case.answer.contexts or ()
    parts: list[Finding] = []
    verdicts = case.rubric.metric(case.rubric.step(RATE).metric).verdicts
    verdict = object_schema({"reason": TEXT, "verdict": choice_schema(verdicts)})
    for first in range(0, len(contexts), BATCH):
        batch = contexts[first : first + BATCH]
        keys = tuple(f"{CONTEXT}_{first + index}" for index in range(1, len(batch) + 1))
        passage_blocks = {**reference_block(case.question), "contexts": numbered_passages(batch, first + 1)}
        blocks = {"question": case.question.text, **passage_blocks}
        reply = yield JudgeRequest(
            blocks, object_schema(dict.fromkeys(keys, verdict)), keys, RATE, all_parts_required=True
        )
        if reply.failure:
            return failed_results(case, reply)
        for index, context in enumerate(batch, start=first):
            verdict_part = reply.parts[f"{CONTEXT}_{index + 1}"]
            name = context.chunk_id or str(index + 1)
            parts.append(Finding(CONTEXT, name, verdict_part["verdict"], context=index, reason=verdict_part["reason"]))
    return {name: score_from_parts(name, parts) for name in case.metrics}


FAMILY = Family(NAME, METRICS, judge)
