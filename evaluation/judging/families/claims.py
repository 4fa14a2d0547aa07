"""Family ``claims``: the answer's factual claims, found once, and whether the retrieved passages support each."""

from __future__ import annotations

from dataclasses import replace

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm
from evaluation.core.samples import Finding, Result
from evaluation.core.scales import UNIT
from evaluation.judging.asking import Case, Family, Heard, Judging, failed
from evaluation.judging.formulas import UNSUPPORTED, claim_support
from evaluation.judging.reading import locate
from evaluation.judging.shapes import TEXT
from evaluation.judging.verifying import as_finding, extracted, verdicts_on

NAME = "claims"
CLAIM = "claim"
EXTRACT, VERIFY = "extract", "verify"

METRICS = (
    MetricSpec(
        name="claim_support",
        kind=Kind.JUDGE,
        scale=UNIT,
        title=Bilingual("Claim support", "주장 근거율"),
        formula=Bilingual(
            "claims of the answer that the retrieved passages support / claims; partial support does not count; "
            "not applicable without claims",
            "검색된 문단이 뒷받침하는 답변의 주장 수 / 주장 수. 부분 근거는 세지 않으며, 주장이 없으면 해당 없음",
        ),
        source="001, 004",
        inputs=("contexts",),
        review_form=ReviewForm.CLAIMS,
        rubric_family=NAME,
    ),
)


def judge(case: Case) -> Judging:
    """Extract the claims, then check each against the passages. Where nothing was retrieved none is supported."""
    blocks = {"question": case.question.text, "answer": case.answer.text}
    claims = yield from extracted(case, EXTRACT, CLAIM, blocks, {CLAIM: TEXT, "quote": TEXT})
    if isinstance(claims, Heard):
        return failed(case, claims)
    contexts = case.answer.contexts or ()
    texts = [claim[CLAIM] for claim in claims]
    if texts and contexts:
        verdicts = yield from verdicts_on(case, VERIFY, CLAIM, texts, contexts)
        if isinstance(verdicts, Heard):
            return failed(case, verdicts)
        parts = [as_finding(CLAIM, t, verdict, contexts) for t, verdict in zip(texts, verdicts, strict=True)]
    else:
        parts = [Finding(CLAIM, text, UNSUPPORTED) for text in texts]
    placed = [_placed(part, claim["quote"], case.answer.text) for part, claim in zip(parts, claims, strict=True)]
    return {"claim_support": claim_support(placed)}


def _placed(part: Finding, quote: str, answer: str) -> Finding:
    """The claim with the place in the answer where it is made: of the quote, else of the claim itself."""
    place = locate(quote, answer) or locate(part.text, answer)
    if place is None:
        return part
    return replace(part, start=place.start, end=place.end, approximate=place.approximate)


FAMILY = Family(NAME, METRICS, judge, floor=lambda _: Result.not_applicable("no_claims"))
