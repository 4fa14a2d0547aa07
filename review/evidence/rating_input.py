"""Rating input: a value, a label or "cannot judge", on the metric's scale or by its parts.

Claims and statements are those that the judge found, in the order of the text and without its verdicts. Nuggets are
those of the question, or else of the profile; passages are those of the answer. The metric's own formula gives the
score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from evaluation.core.errors import DomainError
from evaluation.core.samples import Finding as ResultFinding
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
    score_from_parts,
)
from evaluation.models import Answer, Finding, MetricDefinition
from evaluation.profiles.spec import ProfileSpec
from evaluation.scoring.scores import counting_scores
from review.models import Rating, RatingPart, ReviewItem

COMMENT_LIMIT = 10_000
# Steps of a five-level scale, the reference for scales without levels.
REFERENCE_STEPS = 4.0
# A change of at least this distance needs a reason.
REASON_DISTANCE = 2.0


class HasValue(Protocol):
    """Object with a value or a label."""

    @property
    def value(self) -> float | None: ...

    @property
    def label(self) -> str | None: ...


class OverrideReason(StrEnum):
    """Reason for overriding a judge's value: the closed list that calibration reads."""

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


class CannotJudgeReason(StrEnum):
    """Reason why an expert cannot judge a metric of an answer."""

    NOT_MY_FIELD = "not_my_field"
    EVIDENCE_MISSING = "evidence_missing"
    QUESTION_AMBIGUOUS = "question_ambiguous"
    ANSWER_UNCLEAR = "answer_unclear"
    NOTHING_TO_JUDGE = "nothing_to_judge"
    OTHER = "other"


class FlagKind(StrEnum):
    """Problem with an item other than the answer's quality."""

    BAD_QUESTION = "bad_question"
    BAD_REFERENCE = "bad_reference"
    UNREADABLE = "unreadable"
    UNSAFE = "unsafe"
    CONFLICT_OF_INTEREST = "conflict_of_interest"


@dataclass(frozen=True, slots=True)
class PartVerdict:
    """Verdict on one part: the offered part with that ``number`` (from 1), or 0 for a missing part with its own
    ``text``."""

    verdict: str
    number: int = 0
    text: str = ""

    def as_json(self) -> dict[str, Any]:
        """JSON form in drafts."""
        return {"number": self.number, "text": self.text, "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class RatingInput:
    """Rating input for one metric: exactly one of value, label and ``cannot_judge``.

    ``cannot_judge`` may have a reason code of :class:`CannotJudgeReason`. Metrics rated by parts have ``parts``; the
    formula sets their value later."""

    value: float | None = None
    label: str | None = None
    cannot_judge: bool = False
    comment: str = ""
    reason_code: str = ""
    parts: tuple[PartVerdict, ...] = ()

    def check(self, metric: str, scale: Scale) -> None:
        """Refuse input that is not on the scale.

        :raises DomainError: ``one_value``, ``off_scale``, ``comment_too_long`` or ``unknown_why_not``, naming the
        metric.
        """
        check_comment(self.comment)
        if self.reason_code and (not self.cannot_judge or self.reason_code not in set(CannotJudgeReason)):
            raise DomainError(
                "unknown_why_not", reason=self.reason_code, known=[reason.value for reason in CannotJudgeReason]
            )
        if (self.value is not None) + (self.label is not None) + self.cannot_judge != 1:
            raise DomainError("one_value", metric=metric)
        if not self.cannot_judge:
            check_value(metric, scale, self.value, self.label)

    def as_json(self) -> dict[str, Any]:
        """JSON form in drafts."""
        return {
            "value": self.value,
            "label": self.label,
            "cannot_judge": self.cannot_judge,
            "comment": self.comment,
            "reason_code": self.reason_code,
            "parts": [part.as_json() for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class RatingUpdate:
    """Update of a rating after the reveal of the judge, with its reason. Without a value and label, the first rating
    stays."""

    value: float | None = None
    label: str | None = None
    reason_code: str = ""
    comment: str = ""
    parts: tuple[PartVerdict, ...] = ()

    @property
    def keeps_first(self) -> bool:
        """Return whether the first rating stays."""
        return self.value is None and self.label is None and not self.parts


def check_value(metric: str, scale: Scale, value: float | None, label: str | None) -> None:
    """Refuse input other than exactly one value or label of the scale.

    :raises DomainError: ``one_value`` or ``off_scale``."""
    if (value is None) == (label is None):
        raise DomainError("one_value", metric=metric)
    on_scale = label in scale.labels if value is None else scale.contains(value)
    if not on_scale:
        raise DomainError("off_scale", metric=metric, value=label if value is None else value, scale=str(scale))


def check_comment(text: str) -> None:
    """Refuse a comment that is too long. A line break counts as one character, as in browsers, although they send two.

    :raises DomainError: ``comment_too_long`` beyond 10,000 characters."""
    length = len(text.replace("\r\n", "\n"))
    if length > COMMENT_LIMIT:
        raise DomainError("comment_too_long", length=length, limit=COMMENT_LIMIT)


def check_reason_code(code: str) -> None:
    """Refuse an unknown reason code; an empty code passes.

    :raises DomainError: ``unknown_reason``."""
    if code and code not in set(OverrideReason):
        raise DomainError("unknown_reason", reason=code, known=[reason.value for reason in OverrideReason])


def scale_distance(scale: Scale, first: HasValue, second: HasValue) -> float:
    """Distance between two values, in levels of the scale; 0 if either has none.

    Level scales count their own steps. A continuous scale is measured as if it had five levels. Yes/no and classes have
    no steps: different values are infinitely far apart."""
    if scale.kind is ScaleKind.CLASS:
        differs = None not in (first.label, second.label) and first.label != second.label
        return math.inf if differs else 0.0
    if first.value is None or second.value is None:
        return 0.0
    gap = abs(first.value - second.value)
    if scale.kind is ScaleKind.LEVELS:
        return gap
    if scale.kind is ScaleKind.YES_NO:
        return math.inf if gap >= 0.5 else 0.0
    return gap / scale.width * REFERENCE_STEPS


def crosses_threshold(threshold: float | None, first: float | None, second: float | None) -> bool:
    """Return whether a change of value crosses the metric's threshold; false without a threshold."""
    if threshold is None or first is None or second is None:
        return False
    return (first >= threshold) != (second >= threshold)


PRESENT, MISSING = "present", "missing"
CITED, UNCITED = "cited", "uncited"
CLAIM, STATEMENT, NUGGET, CONTEXT = "claim", "statement", "nugget", "context"
PART_FORMS = frozenset({ReviewForm.CLAIMS, ReviewForm.NUGGETS, ReviewForm.CONTEXTS})
MAX_ADDED_PARTS = 20
# Characters.
MAX_PART_LENGTH = 2_000
# Verdicts of rule metrics with parts: the one that counts first. Judge metrics have the verdicts of the formulas.
_RULE_VERDICTS: dict[str, tuple[str, str]] = {
    "nugget_coverage": (PRESENT, MISSING),
    "citation_coverage": (CITED, UNCITED),
}
_FORM_VERDICTS: dict[str, tuple[str, ...]] = {
    ReviewForm.CLAIMS: (SUPPORTED, PARTIAL, UNSUPPORTED, CONTRADICTED),
    ReviewForm.NUGGETS: (SUPPORTED, PARTIAL, UNSUPPORTED),
    ReviewForm.CONTEXTS: (RELEVANT, IRRELEVANT),
}


@dataclass(frozen=True, slots=True)
class OfferedPart:
    """Part to be decided, numbered from 1.

    ``context`` is the position of its passage, from 0. ``start`` and ``end`` are its place in the answer,
    ``approximate`` if that was found by similarity."""

    number: int
    kind: str
    text: str
    context: int | None = None
    start: int | None = None
    end: int | None = None
    approximate: bool = False


def is_rated_by_parts(metric: MetricDefinition) -> bool:
    """Return whether experts rate the metric by its parts: it has a form for parts and a formula."""
    return metric.review_form in PART_FORMS and (metric.name in FORMULAS or metric.name in _RULE_VERDICTS)


def allowed_verdicts(metric: MetricDefinition) -> tuple[str, ...]:
    """Verdicts that an expert can choose, the one that counts first."""
    return _RULE_VERDICTS.get(metric.name) or _FORM_VERDICTS[metric.review_form]


def can_add_parts(metric: MetricDefinition) -> bool:
    """Return whether an expert may add a missing part. Only claims and statements may be incomplete."""
    return metric.review_form == ReviewForm.CLAIMS


def offered_parts(item: ReviewItem, metric: MetricDefinition) -> tuple[OfferedPart, ...]:
    """Parts of an item's answer to decide for the metric, without the judge's verdicts."""
    if metric.review_form == ReviewForm.CONTEXTS:
        return _passages(item.answer)
    if metric.review_form == ReviewForm.NUGGETS:
        return _nuggets(item)
    parts = [
        OfferedPart(0, row.kind, row.text, None, row.start, row.end, row.approximate)
        for row in judged_parts(item, metric)
    ]
    parts.sort(key=lambda part: (part.start is None, part.start or 0))
    return tuple(replace(part, number=number) for number, part in enumerate(parts, start=1))


def judged_parts(item: ReviewItem, metric: MetricDefinition) -> list[Finding]:
    """Parts with the judge's verdicts, in the judge's order. Only for people who may see the judge.

    They come from the first score with parts, which never changes."""
    scores = counting_scores(item.run).filter(answer_id=item.answer_id, metric=metric)
    first = scores.filter(findings__isnull=False).order_by("repeat", "id").first()
    return list(Finding.objects.filter(score=first).order_by("position")) if first else []


def with_part_scores(
    item: ReviewItem, metrics: Sequence[MetricDefinition], values: Mapping[str, RatingInput]
) -> dict[str, RatingInput]:
    """Add the formula's score to every metric that was rated by its parts.

    :raises DomainError: ``parts_undecided``, ``unknown_verdict``, ``unknown_part`` for one that was not offered or may
    not
        be added, ``no_parts`` if there is nothing to decide, ``parts_needed`` for a bare value, or ``too_many_parts``.
    """
    inputs = dict(values)
    for metric in metrics:
        rating_input = inputs.get(metric.name)
        if rating_input is not None and not rating_input.cannot_judge and is_rated_by_parts(metric):
            if rating_input.value is not None and not rating_input.parts:
                raise DomainError("parts_needed", metric=metric.name)
            inputs[metric.name] = replace(
                rating_input, value=_part_score(metric, decided_parts(item, metric, rating_input.parts))
            )
    return inputs


def decided_parts(
    item: ReviewItem, metric: MetricDefinition, verdicts: Sequence[PartVerdict]
) -> list[tuple[OfferedPart, str]]:
    """Every offered part with its verdict, then the added ones.

    :raises DomainError: as :func:`with_part_scores`."""
    offered = offered_parts(item, metric)
    known = allowed_verdicts(metric)
    by_number = {part.number: part for part in verdicts if part.number}
    added = [part for part in verdicts if not part.number]
    if unknown_verdicts := sorted({part.verdict for part in verdicts} - set(known)):
        raise DomainError("unknown_verdict", metric=metric.name, verdicts=unknown_verdicts, known=list(known))
    if undecided := [part.number for part in offered if part.number not in by_number]:
        raise DomainError("parts_undecided", metric=metric.name, parts=undecided)
    if (added and not can_add_parts(metric)) or set(by_number) - {part.number for part in offered}:
        raise DomainError("unknown_part", metric=metric.name)
    if len(added) > MAX_ADDED_PARTS or any(not 0 < len(part.text.strip()) <= MAX_PART_LENGTH for part in added):
        raise DomainError("too_many_parts", metric=metric.name, limit=MAX_ADDED_PARTS, characters=MAX_PART_LENGTH)
    kind = offered[0].kind if offered else (STATEMENT if metric.name == "context_recall" else CLAIM)
    numbered = enumerate(added, start=len(offered) + 1)
    return [(part, by_number[part.number].verdict) for part in offered] + [
        (OfferedPart(number, kind, part.text.strip()), part.verdict) for number, part in numbered
    ]


def part_rows(rating: Rating, item: ReviewItem, verdicts: Sequence[PartVerdict]) -> list[RatingPart]:
    """Rows that store an expert's verdicts with the rating; empty for other metrics."""
    if rating.cannot_judge or not is_rated_by_parts(rating.metric):
        return []
    offered_count = sum(1 for part in verdicts if part.number)
    return [
        RatingPart(
            rating=rating,
            position=part.number,
            kind=part.kind,
            text=part.text,
            verdict=verdict,
            context=part.context,
            added=part.number > offered_count,
        )
        for part, verdict in decided_parts(item, rating.metric, verdicts)
    ]


def part_verdicts(rating: Rating) -> tuple[PartVerdict, ...]:
    """Stored verdicts of an expert, as form input."""
    return tuple(
        PartVerdict(row.verdict, 0, row.text) if row.added else PartVerdict(row.verdict, row.position)
        for row in rating.rated_parts.all()
    )


def _part_score(metric: MetricDefinition, parts: Sequence[tuple[OfferedPart, str]]) -> float:
    if metric.name in _RULE_VERDICTS:
        counting_verdict = _RULE_VERDICTS[metric.name][0]
        share = sum(verdict == counting_verdict for _, verdict in parts) / len(parts) if parts else 0.0
        empty = metric.review_form == ReviewForm.NUGGETS and not parts
        result = Result.not_applicable("no_nuggets") if empty else Result.scored(share)
    else:
        result = score_from_parts(
            metric.name, [ResultFinding(part.kind, part.text, verdict, part.context) for part, verdict in parts]
        )
    if result.value is None:
        raise DomainError("no_parts", metric=metric.name)
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
        OfferedPart(number, NUGGET, " / ".join([nugget.name, *nugget.alternatives]))
        for number, nugget in enumerate(nuggets, start=1)
    )
