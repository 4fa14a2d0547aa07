"""Families that check texts one by one against the retrieved passages: ``claims`` of the answer and ``statements`` of
the reference. The texts are extracted once; each then gets a verdict and its supporting passage."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import ADMITS_IGNORANCE, SAYS_NOTHING, ContextSpec, Finding, Result
from evaluation.core.scales import PERCENT, ReviewForm
from evaluation.judging.calls import Family, JudgeCase, JudgeRequest, Judging, ParsedReply, failed_results
from evaluation.judging.formulas import UNSUPPORTED, claim_support, context_recall
from evaluation.judging.prompt import Span, locate_quote, numbered_passages, reference_block, with_span
from evaluation.judging.rubric import TEXT, choice_schema, integer_schema, list_schema, object_schema
from evaluation.metrics.phrases import dont_know

CLAIM, STATEMENT = "claim", "statement"
# Steps of the rubric.
EXTRACT, VERIFY, ATTRIBUTE = "extract", "verify", "attribute"
# Texts in one request; more would truncate long replies.
BATCH = 25


def check_texts(
    case: JudgeCase, step: str, kind: str, texts: Sequence[str], contexts: Sequence[ContextSpec]
) -> Generator[JudgeRequest, ParsedReply, list[Finding] | ParsedReply]:
    """Request verdicts in batches and return a finding per text, or the failed reply of a batch.

    A verdict has ``reason``, ``verdict`` (a label of the step's metric), ``context`` (number of the supporting passage,
    0 for none) and ``quote``."""
    metric = case.rubric.metric(case.rubric.step(step).metric)
    findings: list[Finding] = []
    for first in range(0, len(texts), BATCH):
        batch = {f"{kind}_{first + i}": text for i, text in enumerate(texts[first : first + BATCH], start=1)}
        verdict = object_schema(
            {
                "reason": TEXT,
                "verdict": choice_schema(metric.verdicts),
                "context": integer_schema(range(len(contexts) + 1)),
                "quote": TEXT,
            }
        )
        blocks = {"question": case.question.text, f"{kind}s": batch, "contexts": numbered_passages(contexts)}
        reply = yield JudgeRequest(
            blocks, object_schema(dict.fromkeys(batch, verdict)), tuple(batch), step, all_parts_required=True
        )
        if reply.failure:
            return reply
        findings += [_verdict_finding(kind, text, reply.parts[key], contexts) for key, text in batch.items()]
    return findings


def _verdict_finding(kind: str, text: str, verdict: Mapping[str, Any], contexts: Sequence[ContextSpec]) -> Finding:
    """Finding of a verdict, with its passage and the span of the quote there."""
    number: int = verdict["context"]
    span = locate_quote(verdict["quote"], contexts[number - 1].text) if number else None
    return Finding(
        kind,
        text,
        verdict["verdict"],
        context=number - 1 if number else None,
        reason=verdict["reason"],
        quote=verdict["quote"] if number else "",
        quote_start=span.start if span else None,
        quote_end=span.end if span else None,
    )


def extract_texts(
    case: JudgeCase, step: str, kind: str, blocks: Mapping[str, Any], item: Mapping[str, Any]
) -> Generator[JudgeRequest, ParsedReply, list[Mapping[str, Any]] | ParsedReply]:
    """Request a list ``{"<kind>s": [item, ...]}`` from the judge; return the list or the failed reply."""
    schema = object_schema({f"{kind}s": list_schema(object_schema(item))})
    reply = yield JudgeRequest(blocks, schema, (f"{kind}s",), step, all_parts_required=True)
    if reply.failure:
        return reply
    return [entry for entry in reply.parts[f"{kind}s"] if entry[kind]]


_CLAIM_SUPPORT = judged_spec(
    name="claim_support",
    title=Bilingual("Claim support", "주장 근거율"),
    formula=Bilingual(
        "claims of the answer that the retrieved passages support / claims; partial support does not count; "
        "not applicable without claims",
        "검색된 문단이 뒷받침하는 답변의 주장 수 / 주장 수. 부분 근거는 세지 않으며, 주장이 없으면 해당 없음",
    ),
    source="ragas, phases",
    inputs=("contexts",),
    review_form=ReviewForm.CLAIMS,
    rubric_family="claims",
)


def judge_claims(case: JudgeCase) -> Judging:
    """Extract the claims, then check each against the passages. Without passages every claim is unsupported. The reason
    of an answer without claims tells whether it admits ignorance by rule."""
    blocks = {"question": case.question.text, "answer": case.answer.text}
    claims = yield from extract_texts(case, EXTRACT, CLAIM, blocks, {CLAIM: TEXT, "quote": TEXT})
    if isinstance(claims, ParsedReply):
        return failed_results(case, claims)
    if not claims and dont_know(case.question, case.answer, case.settings).value:
        return {"claim_support": Result.not_applicable(ADMITS_IGNORANCE)}
    contexts = case.answer.contexts or ()
    texts = [claim[CLAIM] for claim in claims]
    if texts and contexts:
        parts = yield from check_texts(case, VERIFY, CLAIM, texts, contexts)
        if isinstance(parts, ParsedReply):
            return failed_results(case, parts)
    else:
        parts = [Finding(CLAIM, text, UNSUPPORTED) for text in texts]
    spans = _locate_claims([(claim["quote"], claim[CLAIM]) for claim in claims], case.answer.text)
    return {"claim_support": claim_support([with_span(part, span) for part, span in zip(parts, spans, strict=True)])}


def _locate_claims(claims: Sequence[tuple[str, str]], text: str) -> list[Span | None]:
    """Span of each claim's quote, else of the claim. Equal claims get successive occurrences."""
    spans: list[Span | None] = []
    ends: dict[tuple[str, str], int] = {}
    for claim in claims:
        after = ends.get(claim, 0)
        span = next((candidate for words in claim if (candidate := locate_quote(words, text, after))), None)
        ends[claim] = span.end if span else 0
        spans.append(span)
    return spans


# Number of the reference, from 1, and one of its statements.
NumberedStatements = list[tuple[int, str]]

_CONTEXT_RECALL = judged_spec(
    name="context_recall",
    scale=PERCENT,
    title=Bilingual("Context recall", "문단 재현율"),
    formula=Bilingual(
        "statements of the reference that a retrieved passage supports / statements x 100; the best of several "
        "references; 0 if nothing was retrieved",
        "검색된 문단이 뒷받침하는 기대 답변의 진술 수 / 진술 수 x 100. 기대 답변이 여러 개이면 가장 높은 값, "
        "검색된 것이 없으면 0",
    ),
    source="ragas",
    inputs=("reference", "contexts"),
    review_form=ReviewForm.CLAIMS,
    rubric_family="statements",
)


def judge_statements(case: JudgeCase) -> Judging:
    """Break every reference into statements (expected keywords are statements already) and check each against the
    passages. The best-supported reference counts. Without passages no call is made."""
    contexts = case.answer.contexts or ()
    if not contexts:
        return {"context_recall": Result.scored(0.0, detail={"contexts": 0})}
    statements = yield from _statements(case)
    if isinstance(statements, ParsedReply):
        return failed_results(case, statements)
    parts = yield from check_texts(case, ATTRIBUTE, STATEMENT, [text for _, text in statements], contexts)
    if isinstance(parts, ParsedReply):
        return failed_results(case, parts)
    return {"context_recall": _best_recall([number for number, _ in statements], parts)}


def _statements(case: JudgeCase) -> Generator[JudgeRequest, ParsedReply, NumberedStatements | ParsedReply]:
    if not case.question.references:
        return [(1, " | ".join(alternatives)) for alternatives in case.question.keywords]
    count = len(case.question.references)
    item = {"reference": integer_schema(range(1, count + 1)), STATEMENT: TEXT}
    blocks = {"question": case.question.text, **reference_block(case.question)}
    statements = yield from extract_texts(case, EXTRACT, STATEMENT, blocks, item)
    return (
        statements
        if isinstance(statements, ParsedReply)
        else [(statement["reference"], statement[STATEMENT]) for statement in statements]
    )


def _best_recall(numbers: Sequence[int], parts: Sequence[Finding]) -> Result:
    """Highest recall over the references; only that reference's statements are kept."""
    results = []
    for number in dict.fromkeys(numbers):
        own_parts = [part for owner, part in zip(numbers, parts, strict=True) if owner == number]
        result = context_recall(own_parts)
        results.append(replace(result, detail={**result.detail, "reference": number}))
    return max(results, key=lambda result: result.value or 0.0, default=context_recall(()))


CLAIMS = Family("claims", (_CLAIM_SUPPORT,), judge_claims, floor=lambda _: Result.not_applicable(SAYS_NOTHING))
STATEMENTS = Family("statements", (_CONTEXT_RECALL,), judge_statements)
