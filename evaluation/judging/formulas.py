"""Scores of judged metrics: one score or label per call, or computed from verdicts on parts by the same formula for
judges and experts. Also score caps, juries and length bias.

Only full support counts; partial support is reported in the detail."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np

from evaluation.core.errors import UnknownName
from evaluation.core.samples import Finding, Result, Status
from evaluation.judging.calls import JudgeCase, JudgeRequest, Judging, ParsedReply, Results, failed_results
from evaluation.judging.logprobs import expected_level, has_digit_levels
from evaluation.judging.prompt import data_blocks, declared_inputs
from evaluation.judging.rubric import Rubric, RubricMetric, Schema, object_schema
from evaluation.metrics.hallucination_flags import hallucination_flags

_MAX_EXCERPT = 80


def score_in_one_call(case: JudgeCase) -> Judging:
    """Request all metrics of the case in one call, with the data that they declare."""
    reply = yield scores_request(
        case.rubric, case.metrics, data_blocks(case.question, case.answer, declared_inputs(case))
    )
    return read_scores(case, reply)


def scores_request(
    rubric: Rubric, metrics: Sequence[str], blocks: Mapping[str, Any], extra_members: Mapping[str, Schema] | None = None
) -> JudgeRequest:
    """Request a score or label for each metric; ``extra_members`` are further members of the reply.

    :raises UnknownName: for a metric that the rubric does not contain."""
    names = tuple(metrics)
    schema, shape = _score_schemas(rubric, names)
    if extra_members:
        schema, shape = (object_schema({**base["properties"], **extra_members}) for base in (schema, shape))
    return JudgeRequest(blocks=blocks, schema=schema, names=names, accepted_schema=shape)


@lru_cache(maxsize=512)
def _score_schemas(rubric: Rubric, names: tuple[str, ...]) -> tuple[Schema, Schema]:
    """Requested and accepted schema without extra members, cached because they are equal for every answer."""
    rubric_metrics = [rubric.metric(name) for name in names]
    schema = object_schema({metric.name: metric.verdict_schema for metric in rubric_metrics})
    return schema, object_schema({metric.name: metric.lenient_verdict_schema for metric in rubric_metrics})


def read_scores(case: JudgeCase, reply: ParsedReply) -> Results:
    """One result per metric; each fails alone. A missing part fails as ``parse``, an off-scale value as ``scale``, a
    missing expected level as in :func:`expected_level`."""
    if reply.failure:
        return failed_results(case, reply)
    results = {}
    for name in case.metrics:
        metric = case.rubric.metric(name)
        result = read_verdict(metric, reply.parts.get(name))
        results[name] = (
            expected_level(result, reply.chances.get(name, {})) if case.expects and has_digit_levels(metric) else result
        )
    return results


def read_verdict(metric: RubricMetric, verdict: Mapping[str, Any] | None) -> Result:
    """Result of a metric's part of a reply. Values are neither clamped nor rounded; a level must be an integer."""
    if verdict is None:
        return Result.failed("parse")
    scale, reason = metric.read_scale(), verdict["reason"]
    value = verdict["label"] if metric.labels else verdict["score"]
    if metric.labels:
        if isinstance(value, str) and value in scale.labels:
            return Result.labelled(value, reason=reason)
    elif (
        isinstance(value, int if scale.levels else int | float)
        and not isinstance(value, bool)
        and scale.contains(value)
    ):
        return Result.scored(value, reason=reason)
    excerpt = type(value).__name__ if isinstance(value, list | dict) else json.dumps(value)[:_MAX_EXCERPT]
    return Result.failed("scale", detail={"got": excerpt, "reason": reason})


def apply_score_maps(rubric: Rubric, results: Results) -> Results:
    """Apply the rubric's score maps. The judge's score stays in the detail as ``before_map``."""
    mapped_results = dict(results)
    for metric in rubric.metrics:
        result = results.get(metric.name)
        if metric.score_map and result is not None and result.value is not None:
            judge_scores, mapped_scores = zip(*metric.score_map, strict=True)
            value = round(float(np.interp(result.value, judge_scores, mapped_scores)), 6)
            mapped_results[metric.name] = replace(
                result, value=value, detail={**result.detail, "before_map": result.value}
            )
    return mapped_results


def apply_caps(case: JudgeCase, results: Results) -> Results:
    """Apply the profile's caps for flags found by rule. The judge's value stays in the detail as ``judged``; failed and
    inapplicable scores are unchanged."""
    caps = [cap for cap in case.settings.caps if cap.metric in results]
    if not caps:
        return results
    flags = hallucination_flags(case.question, case.answer, case.settings).findings
    flagged = {flag.verdict for flag in flags}
    for cap in caps:
        result = results[cap.metric]
        if cap.flag in flagged and result.value is not None and result.value > cap.at_most:
            flag_findings = (flag for flag in flags if flag.verdict == cap.flag)
            judged = result.detail.get("judged", result.value)
            detail = {**result.detail, "judged": judged, "capped_at": cap.at_most}
            capped_result = replace(
                result, value=cap.at_most, detail=detail, findings=(*result.findings, *flag_findings)
            )
            results = {**results, cap.metric: capped_result}
    return results


SUPPORTED, PARTIAL, UNSUPPORTED, CONTRADICTED = "supported", "partial", "unsupported", "contradicted"
RELEVANT, IRRELEVANT = "relevant", "irrelevant"
_PERCENT = 100.0
Formula = Callable[[Sequence[Finding]], Result]


def claim_support(parts: Sequence[Finding]) -> Result:
    """Supported claims / claims, 0 to 1. Not applicable without claims."""
    return _support_result(parts) if parts else Result.not_applicable("no_claims")


def context_recall(parts: Sequence[Finding]) -> Result:
    """Statements of the reference that a passage supports / statements, 0 to 100. Not applicable without statements."""
    return _support_result(parts, _PERCENT) if parts else Result.not_applicable("no_statements")


def context_precision(parts: Sequence[Finding]) -> Result:
    """Relevant passages / passages, 0 to 100; 0 if nothing was retrieved."""
    relevant = _relevance(parts)
    value = _PERCENT * sum(relevant) / len(relevant) if relevant else 0.0
    return Result.scored(value, detail={"relevant": sum(relevant), "contexts": len(relevant)}, findings=tuple(parts))


def context_average_precision(parts: Sequence[Finding]) -> Result:
    """Average precision of the ranking, 0 to 100: the mean of precision@rank over the relevant passages; 0 without
    one."""
    relevant = _relevance(parts)
    hits = total = 0.0
    for rank, is_relevant in enumerate(relevant, start=1):
        if is_relevant:
            hits += 1
            total += hits / rank
    detail = {"relevant": int(hits), "contexts": len(relevant)}
    return Result.scored(_PERCENT * total / hits if hits else 0.0, detail=detail, findings=tuple(parts))


def nugget_support(parts: Sequence[Finding], vital: Sequence[bool] = ()) -> Result:
    """Supported nuggets / nuggets, 0 to 1. The detail has the share with partial support counted half, and both shares
    over vital nuggets (all/vital and partial/strict as in TREC's nugget evaluations)."""
    if not parts:
        return Result.not_applicable("no_nuggets")
    detail = _verdict_counts(parts)
    vital_parts = [part for part, is_vital in zip(parts, vital, strict=True) if is_vital] if vital else []
    if vital_parts:
        detail["vital"] = len(vital_parts)
        detail["vital_strict"] = _supported_share(vital_parts)
        detail["vital_with_partial"] = _supported_share(vital_parts, partial=0.5)
    return Result.scored(_supported_share(parts), detail=detail, findings=tuple(parts))


FORMULAS: dict[str, Formula] = {
    "claim_support": claim_support,
    "context_recall": context_recall,
    "context_precision": context_precision,
    "context_average_precision": context_average_precision,
    "nugget_support": nugget_support,
}


def score_from_parts(metric: str, parts: Sequence[Finding]) -> Result:
    """Score of a metric from verdicts in the order of the parts.

    :raises UnknownName: for a metric that is not computed from parts."""
    if metric not in FORMULAS:
        raise UnknownName("metric with parts", metric, list(FORMULAS))
    return FORMULAS[metric](parts)


def _support_result(parts: Sequence[Finding], top: float = 1.0) -> Result:
    return Result.scored(top * _supported_share(parts), detail=_verdict_counts(parts), findings=tuple(parts))


def _supported_share(parts: Sequence[Finding], partial: float = 0.0) -> float:
    points = {SUPPORTED: 1.0, PARTIAL: partial}
    return sum(points.get(part.verdict, 0.0) for part in parts) / len(parts)


def _verdict_counts(parts: Sequence[Finding]) -> dict[str, Any]:
    """Number of parts per verdict, and the share with partial support counted half."""
    return {
        **Counter(part.verdict for part in parts),
        "parts": len(parts),
        "with_partial": _supported_share(parts, partial=0.5),
    }


def _relevance(parts: Sequence[Finding]) -> list[bool]:
    """Relevance of each passage by rank; imported verdicts use ``supported`` for relevant."""
    return [part.verdict in {RELEVANT, SUPPORTED} for part in parts]


class JuryRule(StrEnum):
    """Rule that combines numeric scores. Classes are always decided by majority."""

    MEAN = "mean"
    MEDIAN = "median"
    MAJORITY = "majority"


def jury_result(members: Mapping[str, Result], rule: JuryRule) -> Result:
    """Result of a jury from those of its members by name.

    More than half of the members must give a value; if more than half find the metric not applicable, so does the jury.
    Mean and median (for an even number: the mean of the middle two) stay on the scale but need not be levels. A
    majority is the value of more than half of all members. Details hold the members' values and, for numbers, their
    population standard deviation.

    Fails with ``jury_short`` if too few members gave a value, with ``jury_split`` without a majority."""
    scored = {name: result for name, result in members.items() if result.status is Status.SCORED}
    member_values = {name: _value_or_reason(result) for name, result in sorted(members.items())}
    detail: dict[str, object] = {"rule": str(rule), "members": member_values}
    if 2 * len(scored) <= len(members):
        not_applicable = [result for result in members.values() if result.status is Status.NOT_APPLICABLE]
        if 2 * len(not_applicable) > len(members):
            return Result.not_applicable(not_applicable[0].reason)
        return Result.failed("jury_short", detail=detail)
    values = [result.value for result in scored.values() if result.value is not None]
    if len(values) == len(scored):
        detail["spread"] = statistics.pstdev(values)
    if rule is JuryRule.MAJORITY or len(values) < len(scored):
        votes = [member_values[name] for name in scored]
        most_common = statistics.mode(votes)
        if 2 * votes.count(most_common) <= len(members):
            return Result.failed("jury_split", detail=detail)
        if isinstance(most_common, str):
            return Result.labelled(most_common, detail=detail)
        return Result.scored(float(most_common), detail=detail)
    value = math.fsum(values) / len(values) if rule is JuryRule.MEAN else statistics.median(values)
    return Result.scored(value, detail=detail)


def _value_or_reason(result: Result) -> float | str:
    """Value or label of a scored result, else its reason."""
    if result.status is not Status.SCORED:
        return result.reason
    return result.label if result.value is None else result.value  # type: ignore[return-value]  # one of them stands


# Minimum number of answers for a correlation.
MIN_ANSWERS = 20
# 97.5% quantile of the standard normal distribution.
Z = 1.959963984540054
# Report the bias if the lower bound of the interval exceeds this.
NOTABLE_CORRELATION = 0.2


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Spearman correlation of score and answer length, -1 to 1, with its 95% interval over ``n`` answers."""

    rho: float
    low: float
    high: float
    n: int

    @property
    def notable(self) -> bool:
        """Return whether scores rise with length clearly beyond chance."""
        return self.low > NOTABLE_CORRELATION


def length_bias(scores: Sequence[float], lengths: Sequence[float]) -> LengthBias | None:
    """Correlation of scores and lengths; ``None`` for fewer than 20 answers or constant scores or lengths.

    Interval: Fisher's z with the standard error ``sqrt((1 + rho^2 / 2) / (n - 3))`` of Bonett and Wright (2000),
    Psychometrika 65. For a correlation of exactly 1 or -1 the interval is that point."""
    n = len(scores)
    if n < MIN_ANSWERS:
        return None
    try:
        rho = max(-1.0, min(1.0, statistics.correlation(_ranks(scores), _ranks(lengths))))
    # One of the two is constant.
    except statistics.StatisticsError:
        return None
    if abs(rho) > 1 - 1e-12:
        return LengthBias(round(rho), round(rho), round(rho), n)
    half = Z * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return LengthBias(rho, math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half), n)


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; ties share their mean rank."""
    _, positions, counts = np.unique(values, return_inverse=True, return_counts=True)
    mid_ranks: list[float] = (counts.cumsum() - (counts - 1) / 2)[positions].tolist()
    return mid_ranks
