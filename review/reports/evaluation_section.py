"""The ``evaluation`` section of a report, in the names and shape of source 000."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.core.registry import JUDGED
from evaluation.profiles.arithmetic import Label
from evaluation.profiles.spec import OVERALL, ProfileSpec
from review.reports.figure import Figure
from review.reports.report import CategoryLine, MetricLine, ThreeScores


def evaluation_section(
    profile: ProfileSpec,
    overall: ThreeScores,
    metrics: Sequence[MetricLine],
    categories: Sequence[CategoryLine],
    average_latency: float | None,
) -> dict[str, Any]:
    """Rates and judge means under the profile's report names, judge-only; without ``details``.

    The overall score is null unless it may be called so. A run without a judge has ``llm_judge`` null and its figure
    under ``rules_only`` with its weight.
    """
    shown = [line for line in metrics if line.name in profile.metrics and not line.latency]
    section: dict[str, Any] = _rates(profile, shown, {line.name: line.judge_only for line in shown})
    section[profile.report_name(OVERALL)] = _shown(profile, OVERALL, overall.judge_only.value)
    if overall.part_only is not None:
        section[str(overall.label)] = {"value": overall.part_only.value, "weight": round(overall.weight, 9)}
    section["avg_latency_seconds"] = average_latency
    section["by_category"] = {
        line.name: {
            **_rates(profile, shown, {name: pair[0] for name, pair in line.metrics.items()}),
            profile.report_name(OVERALL): _shown(profile, OVERALL, _overall(line, overall)),
            "avg_latency_seconds": line.latency.mean if line.latency else None,
            "count": line.answers,
        }
        for line in categories
    }
    return section


def _shown(profile: ProfileSpec, name: str, value: float | None) -> float | None:
    """The value as the profile's source shows it."""
    return None if value is None else profile.report_value(name, value)


def _rates(profile: ProfileSpec, shown: Sequence[MetricLine], figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Rule metrics at the top, judge metrics together under ``llm_judge``, as the source has them."""
    there = [line for line in shown if line.name in figures]
    values = {line.report_name: _shown(profile, line.name, figures[line.name].value) for line in there}
    judged = {line.report_name for line in shown if line.kind in JUDGED}
    rates: dict[str, Any] = {name: value for name, value in values.items() if name not in judged}
    rates["llm_judge"] = {name: value for name, value in values.items() if name in judged} or None
    return rates


def _overall(line: CategoryLine, overall: ThreeScores) -> float | None:
    return line.judge_only.value if overall.label is Label.OVERALL_SCORE else None
