"""Families whose texts are checked one by one against the retrieved passages: ``claims``, the answer's factual claims,
and ``statements``, those of the reference. The texts are found once; then each gets a verdict with the passage it
rests on.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import ADMITS_IGNORANCE, SAYS_NOTHING, ContextSpec, Finding, Result
from evaluation.core.scales import PERCENT, ReviewForm
from evaluation.judging.calls import Ask, Case, Family, Heard, Judging, failed
from evaluation.judging.formulas import UNSUPPORTED, claim_support, context_recall
from evaluation.judging.prompt import Span, locate, numbered, placed, reference_block
from evaluation.judging.rubric import TEXT, closed, list_of, one_of, whole_number
from evaluation.metrics.phrases import dont_know

CLAIM, STATEMENT = "claim", "statement"
EXTRACT, VERIFY, ATTRIBUTE = "extract", "verify", "attribute"  # the steps
BATCH = 25  # texts in one request: more would cut off long replies


def checked(
    case: Case, step: str, kind: str, texts: Sequence[str], contexts: Sequence[ContextSpec]
) -> Generator[Ask, Heard, list[Finding] | Heard]:
    """Each text as a finding with its verdict, asked for in batches; what was heard instead where one batch failed.

    A verdict has ``reason``, ``verdict`` (a label of the step's metric), ``context`` (the number of the passage it
    rests on, 0 for none) and ``quote``.
    """
    metric = case.rubric.metric(case.rubric.step(step).metric)
    found: list[Finding] = []
    for first in range(0, len(texts), BATCH):
        batch = {f"{kind}_{first + i}": text for i, text in enumerate(texts[first : first + BATCH], start=1)}
        verdict = closed(
            {
                "reason": TEXT,
                "verdict": one_of(metric.verdicts),
                "context": whole_number(range(len(contexts) + 1)),
                "quote": TEXT,
            }
        )
        blocks = {"question": case.question.text, f"{kind}s": batch, "contexts": numbered(contexts)}
        heard = yield Ask(blocks, closed(dict.fromkeys(batch, verdict)), tuple(batch), step, whole=True)
        if heard.failure:
            return heard
        found += [_as_finding(kind, text, heard.parts[key], contexts) for key, text in batch.items()]
    return found


def _as_finding(kind: str, text: str, verdict: Mapping[str, Any], contexts: Sequence[ContextSpec]) -> Finding:
    """A verdict as a finding, with the passage it rests on and the place of its quote there."""
    number: int = verdict["context"]
    place = locate(verdict["quote"], contexts[number - 1].text) if number else None
    return Finding(
        kind,
        text,
        verdict["verdict"],
        context=number - 1 if number else None,
        reason=verdict["reason"],
        quote=verdict["quote"] if number else "",
        quote_start=place.start if place else None,
        quote_end=place.end if place else None,
    )


def extracted(
    case: Case, step: str, kind: str, blocks: Mapping[str, Any], item: Mapping[str, Any]
) -> Generator[Ask, Heard, list[Mapping[str, Any]] | Heard]:
    """The list a judge finds: ``{"<kind>s": [item, ...]}``; what was heard instead where that failed."""
    schema = closed({f"{kind}s": list_of(closed(item))})
    heard = yield Ask(blocks, schema, (f"{kind}s",), step, whole=True)
    if heard.failure:
        return heard
    return [one for one in heard.parts[f"{kind}s"] if one[kind]]


_CLAIM_SUPPORT = judged_spec(
    name="claim_support",
    title=Bilingual("Claim support", "주장 근거율"),
    formula=Bilingual(
        "claims of the answer that the retrieved passages support / claims; partial support does not count; "
        "not applicable without claims",
        "검색된 문단이 뒷받침하는 답변의 주장 수 / 주장 수. 부분 근거는 세지 않으며, 주장이 없으면 해당 없음",
    ),
    source="001, 004",
    inputs=("contexts",),
    review_form=ReviewForm.CLAIMS,
    rubric_family="claims",
)


def judge_claims(case: Case) -> Judging:
    """Extract the claims, then check each against the passages. Where nothing was retrieved none is supported. The
    reason tells an answer without claims that admits not to know by rule from one that only the judge found empty."""
    blocks = {"question": case.question.text, "answer": case.answer.text}
    claims = yield from extracted(case, EXTRACT, CLAIM, blocks, {CLAIM: TEXT, "quote": TEXT})
    if isinstance(claims, Heard):
        return failed(case, claims)
    if not claims and dont_know(case.question, case.answer, case.settings).value:
        return {"claim_support": Result.not_applicable(ADMITS_IGNORANCE)}
    contexts = case.answer.contexts or ()
    texts = [claim[CLAIM] for claim in claims]
    if texts and contexts:
        parts = yield from checked(case, VERIFY, CLAIM, texts, contexts)
        if isinstance(parts, Heard):
            return failed(case, parts)
    else:
        parts = [Finding(CLAIM, text, UNSUPPORTED) for text in texts]
    places = _places([(claim["quote"], claim[CLAIM]) for claim in claims], case.answer.text)
    return {"claim_support": claim_support([placed(part, at) for part, at in zip(parts, places, strict=True)])}


def _places(claims: Sequence[tuple[str, str]], text: str) -> list[Span | None]:
    """The place of each claim's quote, else of the claim itself; of equal ones the next behind the one before."""
    found: list[Span | None] = []
    ends: dict[tuple[str, str], int] = {}
    for claim in claims:
        after = ends.get(claim, 0)
        place = next((at for words in claim if (at := locate(words, text, after))), None)
        ends[claim] = place.end if place else 0
        found.append(place)
    return found


Stated = list[tuple[int, str]]  # the reference's number, from 1, and one of its statements

_CONTEXT_RECALL = judged_spec(
    name="context_recall",
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
    rubric_family="statements",
)


def judge_statements(case: Case) -> Judging:
    """Break every reference into statements (expected keywords are statements already), then look for each in the
    passages. References are equally good, so the one that is held best counts. Nothing retrieved needs no asking."""
    contexts = case.answer.contexts or ()
    if not contexts:
        return {"context_recall": Result.scored(0.0, detail={"contexts": 0})}
    stated = yield from _statements(case)
    if isinstance(stated, Heard):
        return failed(case, stated)
    parts = yield from checked(case, ATTRIBUTE, STATEMENT, [text for _, text in stated], contexts)
    if isinstance(parts, Heard):
        return failed(case, parts)
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


CLAIMS = Family("claims", (_CLAIM_SUPPORT,), judge_claims, floor=lambda _: Result.not_applicable(SAYS_NOTHING))
STATEMENTS = Family("statements", (_CONTEXT_RECALL,), judge_statements)
