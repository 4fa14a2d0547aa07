"""Can the judge be trusted: its agreement with the experts, beside that of the experts and of the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import get_language, gettext

from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from review.reports.provenance import JudgeUsed
from review.reports.report import MetricLine, Report

WEAK = 0.4  # below it, agreement beyond chance is usually called poor to fair
FEW = 20  # with fewer answers a kappa says little


@dataclass(frozen=True, slots=True)
class TrustRow:
    """One judge metric. Texts are empty or a dash where there is nothing; ``reason`` says why kappa is missing."""

    title: str
    kappa: str
    reason: str
    experts: str
    baseline: str
    bias: str
    exact: str
    n: int
    weak: bool
    few: bool


@dataclass(frozen=True, slots=True)
class TrustCard:
    """The card of trust. ``judges`` names who is judged; ``baseline`` tells that it is the offline baseline itself,
    ``compared`` that the baseline's own agreement stands in a column."""

    rows: tuple[TrustRow, ...]
    judges: tuple[str, ...]
    baseline: bool
    compared: bool


def trust_card(report: Report) -> TrustCard:
    """The primary judges' agreement, metric by metric, from blind first ratings only."""
    used = report.provenance.judges
    primary = [judge for judge in used if judge.primary]
    others = [judge for judge in used if judge.baseline and not judge.primary]
    language = get_language() or "en"
    rows = [
        trust_row(line.title.in_language(language), *found)
        for line in report.metrics
        if (found := _figures(report.agreement, line, primary, others)) is not None
    ]
    names = dict.fromkeys(judge_title(judge) for judge in primary)
    return TrustCard(tuple(rows), tuple(names), any(judge.baseline for judge in primary), bool(others))


def judge_title(judge: JudgeUsed) -> str:
    """The judge as pages call it: the baseline always by that word."""
    if judge.baseline:
        return gettext("offline baseline")
    return f"{judge.judge.name} v{judge.judge.version}"


def _author(judge: JudgeUsed) -> str:
    return f"{judge.judge.name}@{judge.judge.version}"


def _figures(
    agreement: Mapping[str, Any], line: MetricLine, primary: list[JudgeUsed], others: list[JudgeUsed]
) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]] | None:
    judges: Mapping[str, Mapping[str, Any]] = agreement.get("judges", {})
    found = next((judges[_author(j)][line.name] for j in primary if line.name in judges.get(_author(j), {})), None)
    if found is None:
        return None
    beside: Mapping[str, Any] = next(
        (judges[_author(j)][line.name] for j in others if line.name in judges.get(_author(j), {})), {}
    )
    return found, agreement.get("experts", {}).get(line.name, {}), beside


def trust_row(
    title: str, judge: Mapping[str, Any], experts: Mapping[str, Any], baseline: Mapping[str, Any]
) -> TrustRow:
    """The row of one metric from the figures of judge, experts and baseline."""
    kappa = judge.get("cohen_kappa_quadratic")
    reasons: Mapping[str, str] = judge.get("undefined", {})
    n = int(judge.get("n", 0))
    return TrustRow(
        title=title,
        kappa=_number(kappa),
        reason="" if kappa is not None else explain_reason(reasons.get("cohen_kappa_quadratic", "no_pairs")),
        experts=_number(experts.get("cohen_kappa_quadratic")),
        baseline=_number(baseline.get("cohen_kappa_quadratic")),
        bias="–" if judge.get("bias") is None else numbers.signed(judge["bias"]),
        exact="–" if judge.get("exact") is None else numbers.share(judge["exact"]),
        n=n,
        weak=kappa is not None and kappa < WEAK and n >= FEW,
        few=n < FEW,
    )


def _number(value: float | None) -> str:
    return "–" if value is None else numbers.plain(value)
