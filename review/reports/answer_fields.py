"""Every answer of a run in the fields of the profile's source: its figures, and what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from evaluation.core.metric_specs import JUDGED
from evaluation.core.samples import Status
from evaluation.judging.formulas import PARTIAL, SUPPORTED
from evaluation.metrics.keyword_coverage import MISSING
from evaluation.models import Finding
from evaluation.profiles.arithmetic import Passing, PassOrFail, band_of
from evaluation.profiles.per_answer import AnswerOverall
from evaluation.profiles.spec import OVERALL, ProfileSpec
from evaluation.scoring.writing import counting
from review.reports.gathering import Gathered
from review.reports.profile_section import each_answer, flags_of

Fields = dict[str, Any]


class _Part(NamedTuple):
    """A finding behind a score."""

    kind: str
    text: str
    verdict: str


class _Scored(NamedTuple):
    """A score that counts, without a model object: there are many."""

    metric: str
    kind: str
    status: str
    value: float | None
    label: str | None
    reason: str
    detail: Mapping[str, Any]
    parts: Sequence[_Part]


_SCORED = ("metric__name", "metric__kind", "status", "value", "label", "reason", "detail")


def answer_fields(basis: Gathered, at_once: int) -> Iterator[dict[int, Fields]]:
    """The fields of each answer by its key, of so many answers at a time. Two queries for those, one more in all where
    the profile has automatic failures."""
    profile, answers, scores = basis.profile, basis.sides.machine.answers, basis.machine.answers
    passing = each_answer(profile, basis.sides.machine, scores, flags_of(basis.run, profile)) if scores else []
    rows = counting(basis.run).filter(metric__name__in=profile.metrics, repeat=1).order_by("answer_id", "metric__name")
    for start in range(0, len(answers), at_once):
        found: dict[int, Fields] = {answer.answer_id: {} for answer in answers[start : start + at_once]}
        parts = _parts_of(basis, found)
        for pk, answer_id, *about in rows.filter(answer_id__in=found).values_list("pk", "answer_id", *_SCORED):
            _add(profile, found[answer_id], _Scored._make((*about, parts.get(pk, ()))))
        own = zip(scores[start : start + at_once], passing[start : start + at_once], strict=True)
        for fields, (one, verdict) in zip(found.values(), own, strict=False):
            _add_overall(profile, fields, one, verdict)
        yield found


def _parts_of(basis: Gathered, answer_ids: Collection[int]) -> dict[int, list[_Part]]:
    """The findings by their score, of those metrics alone whose fields say them."""
    named = [name for name in basis.profile.metrics if PARTS.get(name) in FROM_FINDINGS]
    of_answers = Finding.objects.filter(score__run=basis.run, score__answer_id__in=answer_ids)
    rows = of_answers.filter(score__metric__name__in=named).order_by("score_id", "kind", "position")
    found = rows.values_list("score_id", "kind", "text", "verdict")
    return {pk: [_Part(*about) for _, *about in several] for pk, several in groupby(found, key=itemgetter(0))}


def _add(profile: ProfileSpec, fields: Fields, score: _Scored) -> None:
    name = score.metric
    number = None if score.value is None else profile.report_value(name, score.value)
    fields[profile.report_name(name)] = score.label if score.label is not None else number
    if score.status == Status.SCORED and name in PARTS:
        fields |= PARTS[name](score)
    else:  # the names stand there all the same, so that every answer has the same fields
        for absent in NAMES.get(name, ()):
            fields.setdefault(absent, None)
    if score.kind in JUDGED and score.reason and score.status == Status.SCORED:
        fields.setdefault("reasoning", {})[profile.report_name(name)] = score.reason
    if score.status == Status.FAILED:
        fields.setdefault("failed", {})[profile.report_name(name)] = score.reason


def _add_overall(profile: ProfileSpec, fields: Fields, one: AnswerOverall, verdict: PassOrFail | None) -> None:
    """Overall score, weights, band, and whether the answer passes."""
    value = None if one.value is None else profile.report_value(OVERALL, one.value)
    fields[profile.report_name(OVERALL)] = value
    fields["weights"] = {profile.report_name(name): weight for name, weight in one.weights_used.items()}
    if profile.bands and one.value is not None:
        band = band_of(profile.bands, one.value)
        fields["band"] = band.name if band else None
        fields["needs_improvement"] = bool(band and band.name == "needs_improvement")
    if profile.thresholds and verdict is not None:
        fields["passed"] = {Passing.PASSED: True, Passing.FAILED: False}.get(verdict.verdict)
        status = {profile.report_name(name): met for name, met in verdict.status.items()}
        fields["metric_status"] = status
        fields["metric_scores"] = {name: fields[name] for name in status if name in fields}
        if profile.automatic_failures:
            fields["automatic_failures"] = list(verdict.flags)


def _cited(one: _Scored) -> Fields:
    return {"cited_chunks": one.detail.get("cited", []), "uncited_chunks": one.detail.get("uncited", [])}


def _nuggets(one: _Scored) -> Fields:
    covered = [f.text for f in one.parts if f.verdict not in {MISSING, "unsupported", PARTIAL, "negated"}]
    missing = [f.text for f in one.parts if f.text not in covered]
    return {"covered_nuggets": covered, "missing_nuggets": missing}


def _claims(one: _Scored) -> Fields:
    return {
        "supported_claims": [f.text for f in one.parts if f.verdict == SUPPORTED],
        "unsupported_claims": [f.text for f in one.parts if f.verdict != SUPPORTED],
    }


def _steps(one: _Scored) -> Fields:
    detail = one.detail
    return {name: detail.get(name, []) for name in ("suggested_queries", "action_items")} | {"urgency": one.label}


def _remarks(one: _Scored) -> Fields:
    """Issues and strengths stand with whichever of the four scores was read first."""
    found: Fields = {}
    for name, kind in (("issues", "issue"), ("strengths", "strength")):
        listed = [f.text for f in one.parts if f.kind == kind]
        if listed or one.metric == "accuracy":
            found[name] = listed
    return found


def _grade(one: _Scored) -> Fields:
    return {"grade": one.detail.get("grade")}


PARTS: Mapping[str, Callable[[_Scored], Fields]] = {
    "citation_coverage": _cited,
    "nugget_coverage": _nuggets,
    "nugget_support": _nuggets,
    "claim_support": _claims,
    "next_steps": _steps,
    "next_steps_by_judge": _steps,
    "accuracy": _remarks,
    "answer_completeness": _remarks,
    "citations": _remarks,
    "context_relevance": _remarks,
    "factual_accuracy": _grade,
}
"""What the sources list beside a metric's figure."""
FROM_FINDINGS = {_nuggets, _claims, _remarks}
_CITED, _NUGGETS = ("cited_chunks", "uncited_chunks"), ("covered_nuggets", "missing_nuggets")
_STEPS = ("suggested_queries", "action_items", "urgency")
NAMES: Mapping[str, tuple[str, ...]] = {
    "citation_coverage": _CITED,
    "nugget_coverage": _NUGGETS,
    "nugget_support": _NUGGETS,
    "claim_support": ("supported_claims", "unsupported_claims"),
    "next_steps": _STEPS,
    "next_steps_by_judge": _STEPS,
    "accuracy": ("issues", "strengths"),
    "factual_accuracy": ("grade",),
}
"""The names of these fields, by metric; null where the metric has no score."""
