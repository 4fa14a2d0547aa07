"""Figures of judged metrics: one score or label a call, or computed from verdicts on parts, by the same formula whether
a judge or an expert gave them; the caps that flags put on scores; several judges as one; and whether a judge's scores
grow with the length of the answers.

One rule for all parts: only full support counts. Partial support is counted beside the figure.
"""

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
from evaluation.judging.calls import Ask, Case, Heard, Judging, Results, failed
from evaluation.judging.logprobs import covers, expected
from evaluation.judging.prompt import data_blocks, shown
from evaluation.judging.rubric import Rubric, RubricMetric, Schema, closed
from evaluation.metrics.hallucination_flags import hallucination_flags

_MOST_SHOWN = 80


def scored_in_one_call(case: Case) -> Judging:
    """Ask once for every metric of the case, with the data that these declare."""
    heard = yield scores_ask(case.rubric, case.metrics, data_blocks(case.question, case.answer, shown(case)))
    return read_scores(case, heard)


def scores_ask(
    rubric: Rubric, metrics: Sequence[str], blocks: Mapping[str, Any], beside: Mapping[str, Schema] | None = None
) -> Ask:
    """The request for a score or label of each metric; ``beside`` are further members of the reply.

    :raises UnknownName: for a metric that the rubric does not hold.
    """
    names = tuple(metrics)
    schema, shape = _plain(rubric, names)
    if beside:
        schema, shape = (closed({**known["properties"], **beside}) for known in (schema, shape))
    return Ask(blocks=blocks, schema=schema, names=names, shape=shape)


@lru_cache(maxsize=512)
def _plain(rubric: Rubric, names: tuple[str, ...]) -> tuple[Schema, Schema]:
    """What is asked for and what is read where nothing stands beside the metrics: the same for every answer."""
    asked = [rubric.metric(name) for name in names]
    schema = closed({metric.name: metric.verdict_schema for metric in asked})
    return schema, closed({metric.name: metric.verdict_shape for metric in asked})


def read_scores(case: Case, heard: Heard) -> Results:
    """One result per metric. A metric whose part is missing fails by ``parse``, one off its scale by ``scale``, one
    whose level cannot be expected although it should by :func:`expected`; each fails alone."""
    if heard.failure:
        return failed(case, heard)
    results = {}
    for name in case.metrics:
        metric = case.rubric.metric(name)
        said = read_verdict(metric, heard.parts.get(name))
        results[name] = expected(said, heard.chances.get(name, {})) if case.expects and covers(metric) else said
    return results


def read_verdict(metric: RubricMetric, verdict: Mapping[str, Any] | None) -> Result:
    """The result that a metric's part of a reply stands for. Nothing is clamped or rounded; a level has to be written
    as a whole number."""
    if verdict is None:
        return Result.failed("parse")
    scale, reason = metric.read_scale(), verdict["reason"]
    said = verdict["label"] if metric.labels else verdict["score"]
    if metric.labels:
        if isinstance(said, str) and said in scale.labels:
            return Result.labelled(said, reason=reason)
    elif isinstance(said, int if scale.levels else int | float) and not isinstance(said, bool) and scale.holds(said):
        return Result.scored(said, reason=reason)
    got = type(said).__name__ if isinstance(said, list | dict) else json.dumps(said)[:_MOST_SHOWN]
    return Result.failed("scale", detail={"got": got, "reason": reason})


def mapped(rubric: Rubric, results: Results) -> Results:
    """The results read on the score maps of the rubric's version; what the judge gave stays beside them."""
    found = dict(results)
    for metric in rubric.metrics:
        result = results.get(metric.name)
        if metric.score_map and result is not None and result.value is not None:
            said, counts = zip(*metric.score_map, strict=True)
            value = round(float(np.interp(result.value, said, counts)), 6)
            found[metric.name] = replace(result, value=value, detail={**result.detail, "before_map": result.value})
    return found


def capped(case: Case, results: Results) -> Results:
    """The results with every cap that flags found by rule put on them, as the profile says; the judge's own value stays
    beside it. A failed or inapplicable score stays what it is."""
    wanted = [cap for cap in case.settings.caps if cap.metric in results]
    if not wanted:
        return results
    flags = hallucination_flags(case.question, case.answer, case.settings).findings
    found = {flag.verdict for flag in flags}
    for cap in wanted:
        result = results[cap.metric]
        if cap.flag in found and result.value is not None and result.value > cap.at_most:
            because = (flag for flag in flags if flag.verdict == cap.flag)
            judged = result.detail.get("judged", result.value)
            detail = {**result.detail, "judged": judged, "capped_at": cap.at_most}
            capped = replace(result, value=cap.at_most, detail=detail, findings=(*result.findings, *because))
            results = {**results, cap.metric: capped}
    return results


SUPPORTED, PARTIAL, UNSUPPORTED, CONTRADICTED = "supported", "partial", "unsupported", "contradicted"
RELEVANT, IRRELEVANT = "relevant", "irrelevant"
_PERCENT = 100.0
Formula = Callable[[Sequence[Finding]], Result]


def claim_support(parts: Sequence[Finding]) -> Result:
    """Supported claims / claims, 0 to 1. Without claims there is nothing to support: not applicable."""
    return _supported(parts) if parts else Result.not_applicable("no_claims")


def context_recall(parts: Sequence[Finding]) -> Result:
    """Statements of the reference that a passage supports / statements, 0 to 100."""
    return _supported(parts, _PERCENT) if parts else Result.not_applicable("no_statements")


def context_precision(parts: Sequence[Finding]) -> Result:
    """Relevant passages / passages, 0 to 100; 0 where nothing was retrieved."""
    relevant = _relevance(parts)
    value = _PERCENT * sum(relevant) / len(relevant) if relevant else 0.0
    return Result.scored(value, detail={"relevant": sum(relevant), "contexts": len(relevant)}, findings=tuple(parts))


def context_average_precision(parts: Sequence[Finding]) -> Result:
    """Average precision of the ranking, 0 to 100: the mean over the relevant passages of the precision down to each;
    0 without a relevant passage."""
    relevant = _relevance(parts)
    found = total = 0.0
    for rank, is_relevant in enumerate(relevant, start=1):
        if is_relevant:
            found += 1
            total += found / rank
    detail = {"relevant": int(found), "contexts": len(relevant)}
    return Result.scored(_PERCENT * total / found if found else 0.0, detail=detail, findings=tuple(parts))


def nugget_support(parts: Sequence[Finding], vital: Sequence[bool] = ()) -> Result:
    """Supported nuggets / nuggets, 0 to 1. Beside it: the share with partial support counted half, and both shares over
    the vital nuggets alone (as in TREC's nugget evaluations: all and vital, with partial support and strict)."""
    if not parts:
        return Result.not_applicable("no_nuggets")
    detail = _counts(parts)
    kept = [part for part, is_vital in zip(parts, vital, strict=True) if is_vital] if vital else []
    if kept:
        detail["vital"] = len(kept)
        detail["vital_strict"] = _share(kept)
        detail["vital_with_partial"] = _share(kept, partial=0.5)
    return Result.scored(_share(parts), detail=detail, findings=tuple(parts))


FORMULAS: dict[str, Formula] = {
    "claim_support": claim_support,
    "context_recall": context_recall,
    "context_precision": context_precision,
    "context_average_precision": context_average_precision,
    "nugget_support": nugget_support,
}


def figure_from_parts(metric: str, parts: Sequence[Finding]) -> Result:
    """What a metric's formula makes of verdicts on parts, given in the order of the parts.

    :raises UnknownName: for a metric that is not computed from parts.
    """
    if metric not in FORMULAS:
        raise UnknownName("metric with parts", metric, list(FORMULAS))
    return FORMULAS[metric](parts)


def _supported(parts: Sequence[Finding], whole: float = 1.0) -> Result:
    return Result.scored(whole * _share(parts), detail=_counts(parts), findings=tuple(parts))


def _share(parts: Sequence[Finding], partial: float = 0.0) -> float:
    points = {SUPPORTED: 1.0, PARTIAL: partial}
    return sum(points.get(part.verdict, 0.0) for part in parts) / len(parts)


def _counts(parts: Sequence[Finding]) -> dict[str, Any]:
    """How many parts have which verdict, and the share with partial support counted half."""
    return {**Counter(part.verdict for part in parts), "parts": len(parts), "with_partial": _share(parts, partial=0.5)}


def _relevance(parts: Sequence[Finding]) -> list[bool]:
    """Whether each passage is relevant, by rank; imported verdicts say supported for it."""
    return [part.verdict in {RELEVANT, SUPPORTED} for part in parts]


class JuryRule(StrEnum):
    """How numbers are joined. Classes are always decided by a majority."""

    MEAN = "mean"
    MEDIAN = "median"
    MAJORITY = "majority"


def joined(members: Mapping[str, Result], rule: JuryRule) -> Result:
    """The jury's result from those of its members by name.

    More than half of the members have to give a value; where most find that the metric does not apply, so does the
    jury. The mean and the median (of an even number: the mean of the middle two) are on the metric's scale but need
    not be a level; a majority is what more than half of all members said. The members' values and their spread (the
    standard deviation of the population, for numbers) stand in the details.

    Fails with ``jury_short`` where too few members gave a value, ``jury_split`` where no majority was found.
    """
    scored = {name: result for name, result in members.items() if result.status is Status.SCORED}
    said = {name: _said(result) for name, result in sorted(members.items())}
    detail: dict[str, object] = {"rule": str(rule), "members": said}
    if 2 * len(scored) <= len(members):
        aside = [result for result in members.values() if result.status is Status.NOT_APPLICABLE]
        if 2 * len(aside) > len(members):
            return Result.not_applicable(aside[0].reason)
        return Result.failed("jury_short", detail=detail)
    values = [result.value for result in scored.values() if result.value is not None]
    if len(values) == len(scored):
        detail["spread"] = statistics.pstdev(values)
    if rule is JuryRule.MAJORITY or len(values) < len(scored):
        given = [said[name] for name in scored]
        commonest = statistics.mode(given)
        if 2 * given.count(commonest) <= len(members):
            return Result.failed("jury_split", detail=detail)
        if isinstance(commonest, str):
            return Result.labelled(commonest, detail=detail)
        return Result.scored(float(commonest), detail=detail)
    value = math.fsum(values) / len(values) if rule is JuryRule.MEAN else statistics.median(values)
    return Result.scored(value, detail=detail)


def _said(result: Result) -> float | str:
    """The value or label of a scored result, else its reason."""
    if result.status is not Status.SCORED:
        return result.reason
    return result.label if result.value is None else result.value  # type: ignore[return-value]  # one of them stands


FEWEST = 20  # answers below which nothing is said
Z = 1.959963984540054  # 97.5 % of the standard normal distribution
WORTH_SAYING = 0.2  # the interval's lower end from which a person is told


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Spearman's correlation of score and length, -1 to 1, with its 95 % interval, over ``n`` answers."""

    rho: float
    low: float
    high: float
    n: int

    @property
    def worth_saying(self) -> bool:
        """Whether the scores grow with length beyond chance and by more than a little."""
        return self.low > WORTH_SAYING


def length_bias(scores: Sequence[float], lengths: Sequence[float]) -> LengthBias | None:
    """The correlation; ``None`` for fewer than 20 answers or where scores or lengths are all the same.

    Interval: Fisher's z with the standard error ``sqrt((1 + rho^2 / 2) / (n - 3))`` of Bonett and Wright (2000),
    Psychometrika 65. A correlation of exactly 1 or -1 has the interval of one point.
    """
    n = len(scores)
    if n < FEWEST:
        return None
    try:
        rho = max(-1.0, min(1.0, statistics.correlation(_ranks(scores), _ranks(lengths))))
    except statistics.StatisticsError:  # one of them is constant
        return None
    if abs(rho) > 1 - 1e-12:
        return LengthBias(round(rho), round(rho), round(rho), n)
    half = Z * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return LengthBias(rho, math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half), n)


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; tied values share their middle one."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles: list[float] = (counts.cumsum() - (counts - 1) / 2)[places].tolist()
    return middles
