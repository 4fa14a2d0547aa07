"""Fields of every answer as the profile's source names them: figures and their components."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from evaluation.core.metric_specs import JUDGED_KINDS
from evaluation.core.samples import Status
from evaluation.judging.formulas import PARTIAL, SUPPORTED
from evaluation.metrics.keyword_coverage import MISSING
from evaluation.models import Finding
from evaluation.profiles.arithmetic import PassResult, PassVerdict, band_of
from evaluation.profiles.per_answer import AnswerOverall
from evaluation.profiles.spec import OVERALL, ProfileSpec
from evaluation.scoring.scores import counting_scores
from review.reports.inputs import ReportInputs
from review.reports.profile_section import answer_verdicts, flags_of

Fields = dict[str, Any]


class _FindingRow(NamedTuple):
    kind: str
    text: str
    verdict: str


class _ScoreRow(NamedTuple):
    """A counting score as a plain tuple, to save memory."""

    metric: str
    kind: str
    status: str
    value: float | None
    label: str | None
    reason: str
    detail: Mapping[str, Any]
    parts: Sequence[_FindingRow]


_SCORE_COLUMNS = ("metric__name", "metric__kind", "status", "value", "label", "reason", "detail")


def answer_fields(basis: ReportInputs, batch_size: int) -> Iterator[dict[int, Fields]]:
    """Yield fields by answer, ``batch_size`` answers at a time.

    Two queries per batch, one more in total if the profile has automatic failures."""
    profile, answers, scores = basis.profile, basis.sides.machine.answers, basis.machine.answers
    passing = answer_verdicts(profile, basis.sides.machine, scores, flags_of(basis.run, profile)) if scores else []
    rows = (
        counting_scores(basis.run)
        .filter(metric__name__in=profile.metrics, repeat=1)
        .order_by("answer_id", "metric__name")
    )
    for start in range(0, len(answers), batch_size):
        fields_by_answer: dict[int, Fields] = {answer.answer_id: {} for answer in answers[start : start + batch_size]}
        parts = _findings_by_score(basis, fields_by_answer)
        for pk, answer_id, *columns in rows.filter(answer_id__in=fields_by_answer).values_list(
            "pk", "answer_id", *_SCORE_COLUMNS
        ):
            _add_score(profile, fields_by_answer[answer_id], _ScoreRow._make((*columns, parts.get(pk, ()))))
        overalls = zip(scores[start : start + batch_size], passing[start : start + batch_size], strict=True)
        for fields, (overall, verdict) in zip(fields_by_answer.values(), overalls, strict=False):
            _add_overall(profile, fields, overall, verdict)
        yield fields_by_answer


def _findings_by_score(basis: ReportInputs, answer_ids: Collection[int]) -> dict[int, list[_FindingRow]]:
    """Findings by score, for metrics whose fields list them."""
    metric_names = [name for name in basis.profile.metrics if FIELD_READERS.get(name) in FROM_FINDINGS]
    findings = Finding.objects.filter(score__run=basis.run, score__answer_id__in=answer_ids)
    rows = findings.filter(score__metric__name__in=metric_names).order_by("score_id", "kind", "position")
    values = rows.values_list("score_id", "kind", "text", "verdict")
    return {pk: [_FindingRow(*columns) for _, *columns in group] for pk, group in groupby(values, key=itemgetter(0))}


def _add_score(profile: ProfileSpec, fields: Fields, score: _ScoreRow) -> None:
    name = score.metric
    number = None if score.value is None else profile.report_value(name, score.value)
    fields[profile.report_name(name)] = score.label if score.label is not None else number
    if score.status == Status.SCORED and name in FIELD_READERS:
        fields |= FIELD_READERS[name](score)
    # Every answer has the same fields.
    else:
        for absent in FIELD_NAMES.get(name, ()):
            fields.setdefault(absent, None)
    if score.kind in JUDGED_KINDS and score.reason and score.status == Status.SCORED:
        fields.setdefault("reasoning", {})[profile.report_name(name)] = score.reason
    if score.status == Status.FAILED:
        fields.setdefault("failed", {})[profile.report_name(name)] = score.reason


def _add_overall(profile: ProfileSpec, fields: Fields, overall: AnswerOverall, verdict: PassResult | None) -> None:
    """Add overall score, weights, band, and pass verdict."""
    value = None if overall.value is None else profile.report_value(OVERALL, overall.value)
    fields[profile.report_name(OVERALL)] = value
    fields["weights"] = {profile.report_name(name): weight for name, weight in overall.weights_used.items()}
    if profile.bands and overall.value is not None:
        band = band_of(profile.bands, overall.value)
        fields["band"] = band.name if band else None
        fields["needs_improvement"] = bool(band and band.name == "needs_improvement")
    if profile.thresholds and verdict is not None:
        fields["passed"] = {PassVerdict.PASSED: True, PassVerdict.FAILED: False}.get(verdict.verdict)
        status = {profile.report_name(name): met for name, met in verdict.status.items()}
        fields["metric_status"] = status
        fields["metric_scores"] = {name: fields[name] for name in status if name in fields}
        if profile.automatic_failures:
            fields["automatic_failures"] = list(verdict.flags)


def _cited(score: _ScoreRow) -> Fields:
    return {"cited_chunks": score.detail.get("cited", []), "uncited_chunks": score.detail.get("uncited", [])}


def _nuggets(score: _ScoreRow) -> Fields:
    covered = [f.text for f in score.parts if f.verdict not in {MISSING, "unsupported", PARTIAL, "negated"}]
    missing = [f.text for f in score.parts if f.text not in covered]
    return {"covered_nuggets": covered, "missing_nuggets": missing}


def _claims(score: _ScoreRow) -> Fields:
    return {
        "supported_claims": [f.text for f in score.parts if f.verdict == SUPPORTED],
        "unsupported_claims": [f.text for f in score.parts if f.verdict != SUPPORTED],
    }


def _steps(score: _ScoreRow) -> Fields:
    detail = score.detail
    return {name: detail.get(name, []) for name in ("suggested_queries", "action_items")} | {"urgency": score.label}


def _remarks(score: _ScoreRow) -> Fields:
    """Issues and strengths, from the first of the four scores that has them."""
    fields: Fields = {}
    for name, kind in (("issues", "issue"), ("strengths", "strength")):
        listed = [f.text for f in score.parts if f.kind == kind]
        if listed or score.metric == "accuracy":
            fields[name] = listed
    return fields


def _grade(score: _ScoreRow) -> Fields:
    return {"grade": score.detail.get("grade")}


FIELD_READERS: Mapping[str, Callable[[_ScoreRow], Fields]] = {
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
FIELD_NAMES: Mapping[str, tuple[str, ...]] = {
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
