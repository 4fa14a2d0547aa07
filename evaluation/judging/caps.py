"""Caps: what flags found by rule make of a judged score, as the profile says. The judge's own value stays beside it."""

from __future__ import annotations

from dataclasses import replace

from evaluation.core.samples import Finding, Result, Status
from evaluation.judging.asking import Case, Results
from evaluation.metrics.hallucination_flags import hallucination_flags


def capped(case: Case, results: Results) -> Results:
    """The results with every cap of the profile applied. A failed or inapplicable score stays what it is."""
    wanted = [cap for cap in case.settings.caps if cap.metric in results]
    if not wanted:
        return results
    flags = hallucination_flags(case.question, case.answer, case.settings).findings
    found = {flag.verdict for flag in flags}
    for cap in wanted:
        if cap.flag in found:
            because = tuple(flag for flag in flags if flag.verdict == cap.flag)
            results = {**results, cap.metric: _at_most(results[cap.metric], cap.at_most, because)}
    return results


def _at_most(result: Result, limit: float, because: tuple[Finding, ...]) -> Result:
    if result.status is not Status.SCORED or result.value is None or result.value <= limit:
        return result
    judged = result.detail.get("judged", result.value)
    detail = {**result.detail, "judged": judged, "capped_at": limit}
    return replace(result, value=limit, detail=detail, findings=(*result.findings, *because))
