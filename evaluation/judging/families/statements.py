"""Family ``statements``: which statements of the reference the retrieved passages hold, and which passage does."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm
from evaluation.core.samples import Finding, Result
from evaluation.core.scales import PERCENT
from evaluation.judging.asking import Case, Family, Heard, Judging, failed
from evaluation.judging.calls import Ask
from evaluation.judging.formulas import context_recall
from evaluation.judging.prompt import reference_block
from evaluation.judging.shapes import TEXT, whole_number
from evaluation.judging.verifying import as_finding, extracted, verdicts_on

NAME = "statements"
STATEMENT = "statement"
EXTRACT, ATTRIBUTE = "extract", "attribute"
Stated = list[tuple[int, str]]  # the reference's number, from 1, and one of its statements

METRICS = (
    MetricSpec(
        name="context_recall",
        kind=Kind.JUDGE,
        scale=PERCENT,
        title=Bilingual("Context recall", "문단 재현율"),
        formula=Bilingual(
            "statements of the reference that a retrieved passage supports / statements x 100, of several references "
            "the best; 0 where nothing was retrieved",
            "검색된 문단이 뒷받침하는 기대 답변의 진술 수 / 진술 수 x 100. 기대 답변이 여러 개이면 가장 높은 값, "
            "검색된 것이 없으면 0",
        ),
        source="001",
        inputs=("reference", "contexts"),
        review_form=ReviewForm.CLAIMS,
        rubric_family=NAME,
    ),
)


def judge(case: Case) -> Judging:
    """Break every reference into statements (expected keywords are statements already), then look for each in the
    passages. References are equally good, so the one that is held best counts. Nothing retrieved needs no asking."""
    contexts = case.answer.contexts or ()
    if not contexts:
        return {"context_recall": Result.scored(0.0, detail={"contexts": 0})}
    stated = yield from _statements(case)
    if isinstance(stated, Heard):
        return failed(case, stated)
    texts = [text for _, text in stated]
    verdicts = yield from verdicts_on(case, ATTRIBUTE, STATEMENT, texts, contexts)
    if isinstance(verdicts, Heard):
        return failed(case, verdicts)
    parts = [as_finding(STATEMENT, text, verdict, contexts) for text, verdict in zip(texts, verdicts, strict=True)]
    return {"context_recall": _best([number for number, _ in stated], parts)}


def _statements(case: Case) -> Generator[Ask, Heard, Stated | Heard]:
    if not case.question.references:
        return [(1, " | ".join(alternatives)) for alternatives in case.question.keywords]
    count = len(case.question.references)
    item = {"reference": whole_number(range(1, count + 1)), STATEMENT: TEXT}
    blocks = {"question": case.question.text, **reference_block(case.question)}
    found = yield from extracted(case, EXTRACT, STATEMENT, blocks, item)
    return found if isinstance(found, Heard) else [(one["reference"], one[STATEMENT]) for one in found]


def _best(numbers: Sequence[int], parts: Sequence[Finding]) -> Result:
    """The recall of the reference with the highest; only its statements are kept."""
    results = []
    for number in dict.fromkeys(numbers):
        kept = [part for owner, part in zip(numbers, parts, strict=True) if owner == number]
        result = context_recall(kept)
        results.append(replace(result, detail={**result.detail, "reference": number}))
    return max(results, key=lambda result: result.value or 0.0, default=context_recall(()))


FAMILY = Family(NAME, METRICS, judge)
