"""Metrics that experts rate by their parts: which parts are offered, which verdicts there are, and the figure.

Claims and statements are those the judge found, in the order of their place in the text and without its verdicts;
nuggets are the question's, else the profile's; passages are the answer's. The figure is the metric's own formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.core.errors import Refused
from evaluation.core.registry import ReviewForm
from evaluation.core.samples import Finding as Part
from evaluation.core.samples import Result
from evaluation.judging.formulas import (
    CONTRADICTED,
    FORMULAS,
    IRRELEVANT,
    PARTIAL,
    RELEVANT,
    SUPPORTED,
    UNSUPPORTED,
    figure_from_parts,
)
from evaluation.models import Answer, Finding, MetricDefinition
from evaluation.profiles.spec import ProfileSpec
from evaluation.scoring.writing import counting
from review.evidence.rating_input import Given, PartGiven
from review.models import Rating, RatingPart, ReviewItem

PRESENT, MISSING = "present", "missing"
CITED, UNCITED = "cited", "uncited"
CLAIM, STATEMENT, NUGGET, CONTEXT = "claim", "statement", "nugget", "context"
FORMS = frozenset({ReviewForm.CLAIMS, ReviewForm.NUGGETS, ReviewForm.CONTEXTS})
MOST_ADDED = 20
LONGEST_PART = 2_000  # characters
#: Rule metrics with parts: the verdict that counts, and the other one. Judge metrics have the formulas' verdicts.
_RULES: dict[str, tuple[str, str]] = {"nugget_coverage": (PRESENT, MISSING), "citation_coverage": (CITED, UNCITED)}
_BY_FORM: dict[str, tuple[str, ...]] = {
    ReviewForm.CLAIMS: (SUPPORTED, PARTIAL, UNSUPPORTED, CONTRADICTED),
    ReviewForm.NUGGETS: (SUPPORTED, PARTIAL, UNSUPPORTED),
    ReviewForm.CONTEXTS: (RELEVANT, IRRELEVANT),
}


@dataclass(frozen=True, slots=True)
class OfferedPart:
    """A part to be decided, numbered from 1. ``context`` is the position of its passage, from 0; ``start`` and ``end``
    its place in the answer, ``approximate`` where that was found by likeness."""

    number: int
    kind: str
    text: str
    context: int | None = None
    start: int | None = None
    end: int | None = None
    approximate: bool = False


def is_by_parts(metric: MetricDefinition) -> bool:
    """Whether experts rate the metric by its parts: it has such a form, and a formula."""
    return metric.review_form in FORMS and (metric.name in FORMULAS or metric.name in _RULES)


def verdicts_of(metric: MetricDefinition) -> tuple[str, ...]:
    """The verdicts an expert chooses from, the one that counts first."""
    return _RULES.get(metric.name) or _BY_FORM[metric.review_form]


def may_add(metric: MetricDefinition) -> bool:
    """Whether an expert may add a missed part: claims and statements are found, the others are given."""
    return metric.review_form == ReviewForm.CLAIMS


def offered_parts(item: ReviewItem, metric: MetricDefinition) -> tuple[OfferedPart, ...]:
    """The parts of an item's answer to decide for the metric, without anything a judge said of them."""
    if metric.review_form == ReviewForm.CONTEXTS:
        return _passages(item.answer)
    if metric.review_form == ReviewForm.NUGGETS:
        return _nuggets(item)
    found = [
        OfferedPart(0, row.kind, row.text, None, row.start, row.end, row.approximate)
        for row in judged_parts(item, metric)
    ]
    found.sort(key=lambda part: (part.start is None, part.start or 0))
    return tuple(replace(part, number=number) for number, part in enumerate(found, start=1))


def judged_parts(item: ReviewItem, metric: MetricDefinition) -> list[Finding]:
    """The parts with the judge's verdicts, in the judge's order: of the first score that has any, which never changes.
    Only for people who may see the judge."""
    scores = counting(item.run).filter(answer_id=item.answer_id, metric=metric)
    first = scores.filter(findings__isnull=False).order_by("repeat", "id").first()
    return list(Finding.objects.filter(score=first).order_by("position")) if first else []


def with_figures(
    item: ReviewItem, metrics: Sequence[MetricDefinition], values: Mapping[str, Given]
) -> dict[str, Given]:
    """The same values, with the formula's figure for every metric that was rated by its parts.

    :raises Refused: ``parts_undecided``, ``unknown_verdict``, ``unknown_part`` for one that was not offered or may not
        be added, ``no_parts`` where there is nothing to decide, ``parts_needed`` for a bare value, or
        ``too_many_parts``.
    """
    found = dict(values)
    for metric in metrics:
        given = found.get(metric.name)
        if given is not None and not given.cannot_judge and is_by_parts(metric):
            if given.value is not None and not given.parts:
                raise Refused("parts_needed", metric=metric.name)
            found[metric.name] = replace(given, value=_figure(metric, decided(item, metric, given.parts)))
    return found


def decided(item: ReviewItem, metric: MetricDefinition, given: Sequence[PartGiven]) -> list[tuple[OfferedPart, str]]:
    """Every offered part with its verdict, then the added ones.

    :raises Refused: as :func:`with_figures`.
    """
    offered = offered_parts(item, metric)
    known = verdicts_of(metric)
    by_number = {part.number: part for part in given if part.number}
    added = [part for part in given if not part.number]
    if wrong := sorted({part.verdict for part in given} - set(known)):
        raise Refused("unknown_verdict", metric=metric.name, verdicts=wrong, known=list(known))
    if open_parts := [part.number for part in offered if part.number not in by_number]:
        raise Refused("parts_undecided", metric=metric.name, parts=open_parts)
    if (added and not may_add(metric)) or set(by_number) - {part.number for part in offered}:
        raise Refused("unknown_part", metric=metric.name)
    if len(added) > MOST_ADDED or any(not 0 < len(part.text.strip()) <= LONGEST_PART for part in added):
        raise Refused("too_many_parts", metric=metric.name, limit=MOST_ADDED, characters=LONGEST_PART)
    kind = offered[0].kind if offered else (STATEMENT if metric.name == "context_recall" else CLAIM)
    more = enumerate(added, start=len(offered) + 1)
    return [(part, by_number[part.number].verdict) for part in offered] + [
        (OfferedPart(number, kind, part.text.strip()), part.verdict) for number, part in more
    ]


def part_rows(rating: Rating, item: ReviewItem, given: Sequence[PartGiven]) -> list[RatingPart]:
    """The rows that keep an expert's verdicts beside the rating; none for other metrics."""
    if rating.cannot_judge or not is_by_parts(rating.metric):
        return []
    offered = sum(1 for part in given if part.number)
    return [
        RatingPart(
            rating=rating,
            position=part.number,
            kind=part.kind,
            text=part.text,
            verdict=verdict,
            context=part.context,
            added=part.number > offered,
        )
        for part, verdict in decided(item, rating.metric, given)
    ]


def parts_given(rating: Rating) -> tuple[PartGiven, ...]:
    """What an expert had decided, as a form takes it."""
    return tuple(
        PartGiven(row.verdict, 0, row.text) if row.added else PartGiven(row.verdict, row.position)
        for row in rating.rated_parts.all()
    )


def _figure(metric: MetricDefinition, parts: Sequence[tuple[OfferedPart, str]]) -> float:
    if metric.name in _RULES:
        counts = _RULES[metric.name][0]
        share = sum(verdict == counts for _, verdict in parts) / len(parts) if parts else 0.0
        empty = metric.review_form == ReviewForm.NUGGETS and not parts
        result = Result.not_applicable("no_nuggets") if empty else Result.scored(share)
    else:
        result = figure_from_parts(metric.name, [Part(p.kind, p.text, verdict, p.context) for p, verdict in parts])
    if result.value is None:
        raise Refused("no_parts", metric=metric.name)
    return result.value


def _passages(answer: Answer) -> tuple[OfferedPart, ...]:
    rows = answer.contexts.order_by("position").values_list("position", "chunk_id")
    return tuple(
        OfferedPart(number, CONTEXT, chunk or str(number), position)
        for number, (position, chunk) in enumerate(rows, start=1)
    )


def _nuggets(item: ReviewItem) -> tuple[OfferedPart, ...]:
    nuggets = item.answer.question.read().nuggets
    if not nuggets:
        nuggets = ProfileSpec.model_validate(item.run.profile_version.spec).nuggets
    return tuple(
        OfferedPart(number, NUGGET, " / ".join([one.name, *one.alternatives]))
        for number, one in enumerate(nuggets, start=1)
    )
