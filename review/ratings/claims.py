"""The claims of an answer as a card shows them: numbered and neutral before the rating, judged and with their
supporting words after it."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.models import Finding
from review.evidence.rated_claims import judged_parts, offered_parts
from review.models import ReviewItem
from review.models.statements import SCORED_BY

CLAIM_METRIC = "claim_support"


@dataclass(frozen=True, slots=True)
class JudgeOnClaim:
    """What the judge said of a claim: its verdict and reason, the passage it rests on (its number, from 1) and the
    supporting words there with their place. ``approximate``: the words are not found word for word in the passage."""

    verdict: str
    reason: str
    passage: int | None
    quote: str
    quote_start: int | None
    quote_end: int | None
    approximate: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with its number and its place in the answer; ``approximate`` where that was found by likeness.
    ``judge`` is ``None`` while hidden."""

    number: int
    text: str
    start: int | None
    end: int | None
    approximate: bool
    judge: JudgeOnClaim | None


def claims_on_card(item: ReviewItem, *, judged: bool) -> tuple[Claim, ...]:
    """The claims the judge found in the answer, in the order of their place; none where none were looked for."""
    if (row := SCORED_BY.first(name=CLAIM_METRIC, run=item.run_id, answer=item.answer_id)) is None:
        return ()
    metric = row[0]
    said = {one.text: one for one in judged_parts(item, metric)} if judged else {}
    return tuple(
        Claim(part.number, part.text, part.start, part.end, part.approximate, _judge(said.get(part.text)))
        for part in offered_parts(item, metric)
    )


def _judge(found: Finding | None) -> JudgeOnClaim | None:
    if found is None:
        return None
    return JudgeOnClaim(
        verdict=found.verdict,
        reason=found.reason,
        passage=None if found.context is None else found.context + 1,
        quote=found.quote,
        quote_start=found.quote_start,
        quote_end=found.quote_end,
        approximate=bool(found.quote) and found.quote_start is None,
    )
