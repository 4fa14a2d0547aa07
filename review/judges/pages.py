"""Content of the judge list and judge pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.utils.translation import get_language, gettext

from evaluation.extensions import JudgeAttacks, features
from evaluation.judging.criteria.spec import CriterionSpec
from evaluation.messages.explanations import explain_reason
from evaluation.models import CriterionEvent, CriterionVersion, JudgeVersion
from review.comparisons.trend import JudgeRecord, MetricRecord
from review.reports.verdict import MetricTrust
from review.statistics.agreement.trust import Trust


class JudgeMetric(NamedTuple):
    """A metric of a judge. ``newer_version`` is a text about a newer rubric version, if there is one. ``trust`` is
    ``None`` without agreement."""

    record: MetricRecord
    newer_version: str
    trust: MetricTrust | None


class JudgeCard(NamedTuple):
    """A judge with its metrics and warnings. ``price`` is empty if unknown."""

    record: JudgeRecord
    title: str
    price: str
    metrics: tuple[JudgeMetric, ...]
    warnings: tuple[str, ...]


class CriterionLine(NamedTuple):
    """An active custom criterion in the reader's language."""

    version: CriterionVersion
    spec: CriterionSpec
    title: str
    question: str


def attacks_of(judge: JudgeVersion) -> JudgeAttacks | None:
    """Results of attacks on a judge. ``None`` without the feature."""
    return next((feature.attacks(judge) for feature in features() if feature.attacks), None)


def judge_card(record: JudgeRecord) -> JudgeCard:
    judge = record.judge
    return JudgeCard(
        record=record,
        title=gettext("Offline baseline") if judge.is_baseline else f"{judge.name} v{judge.version}",
        price=_price(record),
        metrics=tuple(_metric(metric) for metric in record.metrics),
        warnings=tuple(_warnings(record)),
    )


def _price(record: JudgeRecord) -> str:
    if record.judge.is_baseline:
        return gettext("free: no model is called")
    if record.price is None:
        return ""
    prices = {"input": f"{record.price.input:g}", "output": f"{record.price.output:g}"}
    return gettext("$%(input)s in, $%(output)s out per million tokens") % prices


def _metric(record: MetricRecord) -> JudgeMetric:
    newer_version = (
        gettext("newer version: %(number)d") % {"number": record.newer_version} if record.newer_version else ""
    )
    trust = (
        None
        if record.trust is None
        else MetricTrust(record.spec.name, record.spec.title, record.trust, record.spec.scale)
    )
    return JudgeMetric(record, newer_version, trust)


def _warnings(record: JudgeRecord) -> Iterator[str]:
    if record.judge.is_baseline:
        yield gettext("A simple word-overlap baseline. Use it as a reference point, not as a judge.")
    elif record.price is None:
        yield gettext("The price of its model is unknown, so run costs are too.")
    if record.preflight_failure:
        yield gettext("Its last check failed: %(reason)s") % {"reason": explain_reason(record.preflight_failure)}
    if record.model_change:
        earlier_model, current_model = record.model_change
        yield gettext(
            "Its agreement was measured with %(before)s, but %(now)s now answers under this name. Rate "
            "answers of a newer run."
        ) % {"before": earlier_model, "now": current_model}
    if record.newer_version:
        yield gettext("Newer version of this judge: %(number)d.") % {"number": record.newer_version}
    if record.runs and record.measured_run is None:
        yield gettext("No answers it judged have been rated, so its reliability is unknown.")
    if any(metric.trust is not None and metric.trust.trust is Trust.NO for metric in record.metrics):
        yield gettext("Don't rely on it for some metrics: it agrees too little with the experts.")


def criterion_line(event: CriterionEvent) -> CriterionLine:
    spec, language = event.version.read(), get_language() or "en"
    title = spec.title_ko if language.startswith("ko") else spec.title_en
    return CriterionLine(event.version, spec, title, spec.texts(language).question)
