"""What an expert says about an answer: a value, a label or "cannot judge", on the metric's scale or by its parts.

Claims and statements are those the judge found, in the order of their place in the text and without its verdicts;
nuggets are the question's, else the profile's; passages are the answer's. The figure is the metric's own formula.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from evaluation.core.errors import Refused
from evaluation.core.samples import Finding as Part
from evaluation.core.samples import Result
from evaluation.core.scales import ReviewForm, Scale, ScaleKind
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
from review.models import Rating, RatingPart, ReviewItem

COMMENT_LIMIT = 10_000
FIVE_LEVELS = 4.0  # steps of a five-level scale: the yardstick for scales without levels
MOVED = 2.0  # from this distance on a change needs a reason


class Valued(Protocol):
    """Anything that has a value or a label."""

    @property
    def value(self) -> float | None: ...

    @property
    def label(self) -> str | None: ...


class OverrideReason(StrEnum):
    """Why a judge's value does not stand: the closed list that calibration reads."""

    JUDGE_FACTUAL_ERROR = "judge_factual_error"
    JUDGE_MISSED_CLAIM = "judge_missed_claim"
    JUDGE_TOO_STRICT = "judge_too_strict"
    JUDGE_TOO_LENIENT = "judge_too_lenient"
    REFERENCE_WRONG = "reference_wrong"
    QUESTION_AMBIGUOUS = "question_ambiguous"
    EVIDENCE_MISSING = "evidence_missing"
    FORMAT_ONLY = "format_only"
    MANIPULATION = "manipulation"
    POLICY = "policy"


class WhyNot(StrEnum):
    """Why an expert cannot judge a metric of an answer."""

    NOT_MY_FIELD = "not_my_field"
    EVIDENCE_MISSING = "evidence_missing"
    QUESTION_AMBIGUOUS = "question_ambiguous"
    ANSWER_UNCLEAR = "answer_unclear"
    NOTHING_TO_JUDGE = "nothing_to_judge"
    OTHER = "other"


class FlagKind(StrEnum):
    """What can be wrong with an item beside the answer's quality."""

    BAD_QUESTION = "bad_question"
    BAD_REFERENCE = "bad_reference"
    UNREADABLE = "unreadable"
    UNSAFE = "unsafe"
    CONFLICT_OF_INTEREST = "conflict_of_interest"


@dataclass(frozen=True, slots=True)
class PartGiven:
    """A verdict on one part: the offered one of that ``number`` (from 1), or with 0 one the expert found missing,
    which brings its own ``text``."""

    verdict: str
    number: int = 0
    text: str = ""

    def as_json(self) -> dict[str, Any]:
        """The form in which drafts hold it."""
        return {"number": self.number, "text": self.text, "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Given:
    """What was given for one metric: exactly one of value, label and ``cannot_judge``, which may say why in a code of
    :class:`WhyNot`. Metrics rated by their parts have ``parts``, and a value only once the formula gave it."""

    value: float | None = None
    label: str | None = None
    cannot_judge: bool = False
    comment: str = ""
    reason_code: str = ""
    parts: tuple[PartGiven, ...] = ()

    def check(self, metric: str, scale: Scale) -> None:
        """Refuse what is not on the scale.

        :raises Refused: ``one_value``, ``off_scale``, ``comment_too_long`` or ``unknown_why_not``, naming the metric.
        """
        check_comment(self.comment)
        if self.reason_code and (not self.cannot_judge or self.reason_code not in set(WhyNot)):
            raise Refused("unknown_why_not", reason=self.reason_code, known=[why.value for why in WhyNot])
        if (self.value is not None) + (self.label is not None) + self.cannot_judge != 1:
            raise Refused("one_value", metric=metric)
        if not self.cannot_judge:
            check_value(metric, scale, self.value, self.label)

    def as_json(self) -> dict[str, Any]:
        """The form in which drafts hold it."""
        return {
            "value": self.value,
            "label": self.label,
            "cannot_judge": self.cannot_judge,
            "comment": self.comment,
            "reason_code": self.reason_code,
            "parts": [part.as_json() for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class Change:
    """A new value or label for one metric after the judge was shown, and why. Without either the first one stays."""

    value: float | None = None
    label: str | None = None
    reason_code: str = ""
    comment: str = ""
    parts: tuple[PartGiven, ...] = ()

    @property
    def keeps(self) -> bool:
        """Whether the first rating stays."""
        return self.value is None and self.label is None and not self.parts


def check_value(metric: str, scale: Scale, value: float | None, label: str | None) -> None:
    """Refuse anything but one value or one label of the scale.

    :raises Refused: ``one_value`` or ``off_scale``.
    """
    if (value is None) == (label is None):
        raise Refused("one_value", metric=metric)
    on_scale = label in scale.labels if value is None else scale.holds(value)
    if not on_scale:
        raise Refused("off_scale", metric=metric, value=label if value is None else value, scale=str(scale))


def check_comment(text: str) -> None:
    """:raises Refused: ``comment_too_long`` beyond 10,000 characters. A line break is one, as browsers count, although
    they send two."""
    length = len(text.replace("\r\n", "\n"))
    if length > COMMENT_LIMIT:
        raise Refused("comment_too_long", length=length, limit=COMMENT_LIMIT)


def check_reason_code(code: str) -> None:
    """:raises Refused: ``unknown_reason`` for a code that is not on the closed list; an empty one passes."""
    if code and code not in set(OverrideReason):
        raise Refused("unknown_reason", reason=code, known=[reason.value for reason in OverrideReason])


def distance(scale: Scale, one: Valued, other: Valued) -> float:
    """How far two values lie apart, in levels of the scale; 0 where either has none.

    Level scales count their own steps. A real scale is measured as if it had five levels between its ends. Yes/no
    and classes have no steps: two different values are infinitely far apart.
    """
    if scale.kind is ScaleKind.CLASS:
        differs = None not in (one.label, other.label) and one.label != other.label
        return math.inf if differs else 0.0
    if one.value is None or other.value is None:
        return 0.0
    apart = abs(one.value - other.value)
    if scale.kind is ScaleKind.LEVELS:
        return apart
    if scale.kind is ScaleKind.YES_NO:
        return math.inf if apart >= 0.5 else 0.0
    return apart / scale.width * FIVE_LEVELS


def flips(threshold: float | None, first: float | None, second: float | None) -> bool:
    """Whether a change of value crosses the metric's threshold; false where there is none."""
    if threshold is None or first is None or second is None:
        return False
    return (first >= threshold) != (second >= threshold)


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
