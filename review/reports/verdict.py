"""Verdict of a run: whether to trust the judge and for which metrics, the score to report, and the next step.

:mod:`review.statistics.agreement.trust` decides and this module words it. The run page, the HTML report, ``results``
and JSON show the sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.connectors.protocol import RETRIEVAL_ONLY
from evaluation.core.metric_specs import JUDGED_KINDS, Bilingual
from evaluation.core.scales import Scale
from evaluation.messages import numbers
from evaluation.messages.explanations import explain_reason
from evaluation.models import Run
from evaluation.profiles.arithmetic import FigureLabel
from evaluation.profiles.per_answer import ANSWER_OVERALL
from review.evidence.scorers import RULES
from review.reports.report import Report
from review.statistics.agreement.trust import MIN_ANSWERS, JudgeTrust, Trust

# Metrics that a sentence names; it only counts the others.
MAX_NAMED_METRICS = 3
# Agreement below this is slight at most (Landis and Koch 1977).
SLIGHT_AGREEMENT = 0.2
# Smaller differences are not mentioned.
NEGLIGIBLE_DIFFERENCE = 0.05


class VerdictKind(StrEnum):
    """Qualification of agreement beyond chance in the verdict on a metric."""

    PLAIN = ""
    SKEWED = "skewed"
    LENIENT = "lenient"
    STRICT = "strict"


CHIPS: Mapping[Trust, str | Promise] = {
    Trust.NO: _("no"),
    Trust.EXPERTS_DISAGREE: _("experts disagree"),
    Trust.CARE: _("with care"),
    Trust.CANNOT_TELL: _("cannot tell yet"),
    Trust.YES: _("yes"),
    Trust.BUILT_ON: _("no unseen ratings"),
    Trust.UNRATED: _("not rated"),
}


MEANINGS: Mapping[Trust, str | Promise] = {
    Trust.NO: _("Judge and experts agree too little to rely on the judge."),
    Trust.EXPERTS_DISAGREE: _(
        "Experts disagree on the same answers, so there is no standard to compare the judge with."
    ),
    Trust.CARE: _("Judge and experts agree partly. Means are rough, and a single value may be wrong."),
    Trust.CANNOT_TELL: _("The ratings so far can't tell a good judge from a poor one."),
    Trust.YES: _("The judge agrees with experts as well as they agree with each other."),
    Trust.BUILT_ON: _("Every rating was used to build the judge's prompt, so none of them tests it."),
    Trust.UNRATED: _("No expert has rated an answer."),
}


@dataclass(frozen=True, slots=True)
class MetricTrust:
    """A judged metric with the figures behind its verdict.

    ``scale`` is ``None`` if nobody rated the metric. With ``weighted``, figures weight answers by the inverse of their
    sampling probability."""

    name: str
    title: Bilingual
    figures: JudgeTrust
    scale: Scale | None = None
    weighted: bool = False

    @property
    def trust(self) -> Trust:
        return self.figures.trust

    @property
    def kind(self) -> VerdictKind:
        if self.figures.bias is not None:
            return VerdictKind.LENIENT if self.figures.lenient else VerdictKind.STRICT
        return VerdictKind.SKEWED if self.figures.commonest is not None else VerdictKind.PLAIN

    @property
    def rank(self) -> int:
        """Sort key: verdicts against the judge come first."""
        return list(Trust).index(self.trust)

    @property
    def chip(self) -> str:
        """The verdict in a few words."""
        if self.trust is Trust.CANNOT_TELL and self.figures.more:
            return gettext("cannot tell yet: %(count)d more ratings") % {"count": self.figures.more}
        if self.trust is Trust.CARE and self.figures.bias is not None:
            by = {"bias": numbers.format_number(abs(self.figures.bias))}
            lenient = self.kind is VerdictKind.LENIENT
            text = (
                gettext("with care: too lenient by %(bias)s")
                if lenient
                else gettext("with care: too strict by %(bias)s")
            )
            return text % by
        return str(CHIPS[self.trust])

    @property
    def meaning(self) -> str:
        """Explain the verdict in a sentence without numbers."""
        figures = self.figures
        if self.kind in BIASED and self.trust in {Trust.CARE, Trust.NO}:
            return str(BIASED[self.kind])
        if self.kind is VerdictKind.SKEWED and self.trust is Trust.CARE:
            return gettext(
                "Nearly all ratings are the same. The judge matches them, but may miss the answers that differ."
            )
        if self.trust is Trust.CANNOT_TELL and figures.reason:
            return explain_reason(figures.reason)
        if self.trust is Trust.CANNOT_TELL and figures.n < MIN_ANSWERS:
            return gettext("Too few answers are rated to tell.")
        if self.trust is Trust.NO and figures.value is not None and figures.value < SLIGHT_AGREEMENT:
            return gettext("Judge and experts agree little more than chance.")
        if self.trust is Trust.YES and (figures.experts is None or figures.shared < MIN_ANSWERS):
            return gettext("Judge and experts agree well. How well experts agree with each other is still unknown.")
        if (
            self.trust is Trust.YES
            and figures.experts is not None
            and (figures.value or 0.0) < figures.experts - NEGLIGIBLE_DIFFERENCE
        ):
            return gettext("Judge and experts agree well, but experts agree with each other better.")
        return str(MEANINGS[self.trust])

    @property
    def missing(self) -> str:
        """Requirement for a firmer verdict, or an empty text."""
        figures = self.figures
        if figures.more:
            return gettext("%(count)d more rated answers") % {"count": figures.more}
        if self.trust is Trust.CANNOT_TELL and figures.reason:
            return explain_reason(figures.reason)
        if self.kind is VerdictKind.SKEWED and self.trust is Trust.CARE:
            return gettext("more ratings of answers that the judge scored differently")
        if figures.shared < MIN_ANSWERS:
            return gettext("%(count)d more answers rated by two experts") % {"count": MIN_ANSWERS - figures.shared}
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Return figures and verdict as JSON values. ``judge`` and ``experts`` are the agreement by ``statistic``."""
        document = self.figures.to_dict()
        document["judge"] = document.pop("value")
        return document | {"missing": self.missing}


BIASED: Mapping[VerdictKind, str | Promise] = {
    VerdictKind.LENIENT: _("The judge scores clearly higher than experts. Use the corrected score."),
    VerdictKind.STRICT: _("The judge scores clearly lower than experts. Use the corrected score."),
}


def metric_trust(name: str, title: Bilingual, judge: Mapping[str, Any]) -> MetricTrust:
    """Read a metric's verdict from a judge's entry in the agreement JSON."""
    return MetricTrust(
        name,
        title,
        JudgeTrust.from_dict(judge["trust"]),
        Scale.parse(judge["scale"]),
        judge.get("sampling") == "weighted",
    )


def unrated_metric(name: str, title: Bilingual) -> MetricTrust:
    return MetricTrust(name, title, JudgeTrust(Trust.UNRATED, "", 0, 0))


class NextStep(StrEnum):
    """Page that the next step leads to."""

    NOWHERE = ""
    REVIEW = "review"
    DISAGREEMENTS = "disagreements"
    COMPARE = "compare"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Sentences about a run, each possibly empty, and its judged metrics with the least trusted first."""

    judge: str
    score: str
    next: str
    metrics: tuple[MetricTrust, ...]
    step: NextStep

    @property
    def rated(self) -> bool:
        return any(metric.figures.n for metric in self.metrics)

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(sentence for sentence in (self.judge, self.score, self.next) if sentence)

    def to_dict(self) -> dict[str, Any]:
        """Return sentences, in the reader's language, and figures as JSON values."""
        sentences = {"judge": self.judge, "score": self.score, "next": self.next}
        return {**sentences, "metrics": {metric.name: metric.to_dict() for metric in self.metrics}}


def verdict_of(report: Report) -> Verdict:
    """Word the verdict on a run. The next step uses ``report.next_review`` if a review is planned."""
    metrics = tuple(sorted(_metrics(report), key=lambda metric: metric.rank))
    judge = judge_sentences(metrics)
    if not metrics and report.header.state in Run.ENDED and not report.header.judges:
        judge = gettext("No judge scored these answers. All figures were computed by rules.")
        if report.provenance.evaluation_type == RETRIEVAL_ONLY:
            judge = gettext("Only passages were retrieved, so there are no answers to judge.")
    if (carried := report.overall.carried) and metrics and all(metric.trust is Trust.UNRATED for metric in metrics):
        text = gettext(
            "Experts have rated no answer of this run, only identical ones in earlier runs (%(runs)s). "
            "Check there how far its judge can be trusted."
        )
        judge = text % {"runs": ", ".join(f"#{source.run_id}" for source in carried)}
    step, sentence = _next_step(report, metrics)
    return Verdict(judge, _score_sentence(report, metrics), sentence, metrics, step)


def _metrics(report: Report) -> Iterator[MetricTrust]:
    judges = report.agreement.get("judges", {})
    judge_figures = [by_metric for author, by_metric in judges.items() if author != RULES]
    judged = any(judge.primary for judge in report.provenance.judges) or bool(report.provenance.imported_judges)
    for line in report.metrics:
        figures = next(
            (
                by_metric[line.name]
                for by_metric in judge_figures
                if line.name in by_metric and by_metric[line.name]["primary"]
            ),
            None,
        )
        if figures is not None:
            yield metric_trust(line.name, line.title, figures)
        elif line.kind in JUDGED_KINDS and judged and line.coverage.scored:
            yield unrated_metric(line.name, line.title)


def judge_sentences(metrics: Sequence[MetricTrust]) -> str:
    """One sentence for each verdict on the judge, worst first. Empty without metrics."""
    if metrics and all(metric.trust is Trust.UNRATED for metric in metrics):
        return gettext("Not known yet whether the judge can be trusted: no expert has rated an answer.")
    keys = dict.fromkeys((metric.trust, metric.kind) for metric in sorted(metrics, key=lambda metric: metric.rank))
    groups = [[metric for metric in metrics if (metric.trust, metric.kind) == key] for key in keys]
    return " ".join(_group_sentence(group, first=index == 0) for index, group in enumerate(groups))


HEADS: Mapping[Trust, str | Promise] = {
    Trust.NO: _("Do not rely on the judge for %(metrics)s: %(agreement)s."),
    Trust.EXPERTS_DISAGREE: _(
        "Cannot tell for %(metrics)s: experts agree with each other only %(experts)s (0 = chance, 1 = perfect), so "
        "there is no standard to compare the judge with."
    ),
    Trust.CARE: _("Use the judge with care for %(metrics)s: %(agreement)s."),
    Trust.CANNOT_TELL: _(
        "Too few ratings to tell whether the judge can be trusted for %(metrics)s: rate about %(more)d more "
        "answers (%(n)s so far)."
    ),
    Trust.YES: _("The judge can be trusted for %(metrics)s: %(agreement)s."),
    Trust.BUILT_ON: _(
        "Cannot tell for %(metrics)s: every rating was used to build the judge's prompt, so none of them tests it."
    ),
    Trust.UNRATED: _("Not known for %(metrics)s: not rated by experts."),
}
SKEWED_HEAD = _(
    "Use the judge with care for %(metrics)s: %(agreement)s. It is unknown whether the judge finds "
    "answers that deserve another rating."
)
UNDEFINED_HEAD = _("Cannot tell for %(metrics)s: %(reason)s")


def _group_sentence(metrics: Sequence[MetricTrust], *, first: bool) -> str:
    """Word one verdict for several metrics. Only the first sentence compares the judge with the experts."""
    lead = metrics[0]
    trust, kind = lead.trust, lead.kind
    text = HEADS[trust]
    if trust is Trust.CARE and kind is VerdictKind.SKEWED:
        text = SKEWED_HEAD
    if trust is Trust.CANNOT_TELL and not lead.figures.more:
        text = UNDEFINED_HEAD
    facts = {
        "agreement": _agreement_phrase(metrics, kind, first=first),
        "experts": _range([metric.figures.experts for metric in metrics]),
        "metrics": _names(metrics),
        "more": max(metric.figures.more for metric in metrics),
        "n": "–".join(dict.fromkeys(str(end(metric.figures.n for metric in metrics)) for end in (min, max))),
        "reason": explain_reason(lead.figures.reason) if lead.figures.reason else "",
    }
    return str(text) % facts


def _agreement_phrase(metrics: Sequence[MetricTrust], kind: VerdictKind, *, first: bool) -> str:
    """Word the figures that decide the verdict."""
    trusts = [metric.figures for metric in metrics]
    facts = {
        "judge": _range([trust.value for trust in trusts]),
        "experts": _range([trust.experts for trust in trusts]),
        "bias": _on_scale(_range([abs(trust.bias) for trust in trusts if trust.bias is not None]), metrics),
        "exact": _range([trust.exact for trust in trusts], numbers.format_share),
        "share": _range([trust.share for trust in trusts], numbers.format_share),
        "level": ", ".join(dict.fromkeys(_level(metric) for metric in metrics)),
    }
    if kind is VerdictKind.LENIENT:
        text = gettext("on average the judge is too lenient by %(bias)s (agreement %(judge)s; 0 = chance, 1 = perfect)")
    elif kind is VerdictKind.STRICT:
        text = gettext("on average the judge is too strict by %(bias)s (agreement %(judge)s; 0 = chance, 1 = perfect)")
    elif kind is VerdictKind.SKEWED:
        text = gettext(
            "%(share)s of the ratings are %(level)s, and the judge matches the experts on %(exact)s of "
            "answers (AC1 %(judge)s)"
        )
    elif first and facts["experts"]:
        text = gettext("experts with each other %(experts)s, judge with experts %(judge)s (0 = chance, 1 = perfect)")
    else:
        text = gettext("judge with experts %(judge)s")
    return text % facts


def _level(metric: MetricTrust) -> str:
    return numbers.on_scale(metric.figures.commonest, metric.scale) if metric.scale else ""


def _on_scale(difference: str, metrics: Sequence[MetricTrust]) -> str:
    """Add the scale to a difference if all metrics share one."""
    scales = {(metric.scale.low, metric.scale.high) for metric in metrics if metric.scale}
    if len(scales) != 1:
        return difference
    low, high = (numbers.format_number(end, 0) for end in scales.pop())
    return gettext("%(difference)s on a scale of %(low)s to %(high)s") % {
        "difference": difference,
        "low": low,
        "high": high,
    }


def _names(metrics: Sequence[MetricTrust]) -> str:
    language = get_language() or "en"
    names = ", ".join(metric.title.in_language(language) for metric in metrics[:MAX_NAMED_METRICS])
    if len(metrics) <= MAX_NAMED_METRICS:
        return names
    return gettext("%(names)s and %(count)d more") % {"names": names, "count": len(metrics) - MAX_NAMED_METRICS}


def _range(values: Sequence[float | None], format_value: Callable[[float], str] = numbers.format_number) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = format_value(min(known)), format_value(max(known))
    return low if low == high else gettext("%(low)s to %(high)s") % {"low": low, "high": high}


def _score_sentence(report: Report, metrics: Sequence[MetricTrust]) -> str:
    """The score to report with its interval, or why there is none."""
    overall = report.overall
    if report.header.state not in Run.ENDED:
        return ""
    if not report.header.complete:
        return _no_score_sentence(missing_headline_reason(report) or explain_reason("not_finished"))
    if report.provenance.evaluation_type == RETRIEVAL_ONLY and (measured := _measured_means(report)):
        return gettext("No overall score without answers. Measured: %(metrics)s.") % {"metrics": measured}
    if (part := overall.part_only) is not None and part.value is not None:
        facts = {"value": numbers.format_number(part.value), "share": numbers.format_share(overall.weight)}
        if overall.label is FigureLabel.RULES_ONLY:
            return (
                gettext("No overall score to report: rules give %(value)s for %(share)s of the profile's weight.")
                % facts
            )
        return (
            gettext(
                "No overall score to report: the computed parts give %(value)s for %(share)s of the profile's weight."
            )
            % facts
        )
    figure, like_these = overall.corrected_this_run, overall.corrected
    disputed = _disputed_metrics(metrics)
    if disputed and figure.value is not None:
        text = _("No score to report yet: %(value)s is based on experts who disagree with each other on %(metrics)s.")
    elif figure.partly_corrected:
        text = _("No single score to report, because some parts are not rated. Experts would give %(interval)s.")
    elif figure.value is not None and figure.low == figure.high is not None:
        text = _(
            "Score to report: %(value)s. Experts have rated every answer. 95%% CI for questions like these: %(wider)s."
        )
    elif figure.value is not None and figure.low is not None:
        text = _(
            "Score to report: %(value)s, the estimate if experts had rated all %(answers)d answers. 95%% CI: "
            "%(wider)s for questions like these, %(interval)s for these answers only."
        )
    elif figure.value is not None:
        text = _(
            "Score to report: %(value)s, the estimate if experts had rated all %(answers)d answers. Its "
            "margin is unknown."
        )
    elif overall.reviewed_answers and overall.reviewed.value is not None:
        figure = overall.reviewed
        text = _("No score to report yet: %(value)s still relies on the judge for unrated answers.")
    elif overall.judge_only.value is not None:
        figure = overall.judge_only
        text = _("No score to report yet: %(value)s is only the judge's score.")
    else:
        return _no_score_sentence(missing_headline_reason(report) or explain_reason(overall.judge_only.withheld))
    return str(text) % {
        "value": numbers.format_number(figure.value or 0.0),
        "interval": numbers.format_interval(figure.low, figure.high),
        "wider": numbers.format_interval(like_these.low, like_these.high) or gettext("unknown"),
        "answers": overall.answers,
        "metrics": _names(disputed),
    }


def _measured_means(report: Report) -> str:
    language = get_language() or "en"
    means = [(line.title.in_language(language), line.judge_only.value) for line in report.metrics]
    return ", ".join(f"{title} {numbers.format_number(mean)}" for title, mean in means if mean is not None)


# Format of the stored reason for missing values, one part per metric.
_MISSING_VALUES = re.compile(r"(\w+): (\d+)/(\d+)")


def missing_headline_reason(report: Report) -> str:
    """Explain why a run has no headline score. Empty if no reason is stored."""
    reason = report.header.reason
    parts = [_MISSING_VALUES.fullmatch(part) for part in reason.split(", ")]
    counts = [part.groups() for part in parts if part]
    if not reason or len(counts) < len(parts):
        return explain_reason(reason) if reason else ""
    titles = {line.name: line.title for line in report.metrics} | {ANSWER_OVERALL.name: ANSWER_OVERALL.title}
    language = get_language() or "en"
    text = gettext("%(metric)s for %(failed)s of %(all)s answers")
    phrases = [
        text
        % {
            "metric": titles[name].in_language(language) if name in titles else name,
            "failed": failed,
            "all": total,
        }
        for name, failed, total in counts
    ]
    return gettext("Too many values are missing: %(parts)s.") % {"parts": ", ".join(phrases)}


def _no_score_sentence(reason: str) -> str:
    return gettext("No score to report. %(why)s") % {"why": reason}


def _disputed_metrics(metrics: Sequence[MetricTrust]) -> list[MetricTrust]:
    return [metric for metric in metrics if metric.trust is Trust.EXPERTS_DISAGREE]


def _next_step(report: Report, metrics: Sequence[MetricTrust]) -> tuple[NextStep, str]:
    """The next step. Empty while the run is in progress."""
    if report.header.state not in Run.ENDED:
        return NextStep.NOWHERE, ""
    if report.header.state == Run.State.INCOMPLETE:
        coverage = [line.coverage for line in report.metrics]
        if any(metric_coverage.failed for metric_coverage in coverage) or not any(
            metric_coverage.not_applicable for metric_coverage in coverage
        ):
            return NextStep.NOWHERE, gettext("Retry the failed results.")
        return NextStep.NOWHERE, gettext("Ask experts to rate the answers where the judge found nothing.")
    if disputed := _disputed_metrics(metrics):
        text = gettext("Agree on the criteria with the experts before collecting more ratings: %(metrics)s.")
        return NextStep.NOWHERE, text % {"metrics": _names(disputed)}
    more = max((metric.figures.more for metric in metrics), default=0)
    if report.next_review is not None:
        sentence = f"{report.next_review['sentence']} {_trust_sentence(report, more, report.next_review['items'])}"
        return NextStep.REVIEW, sentence.strip()
    if any(metric.trust is Trust.BUILT_ON for metric in metrics):
        return NextStep.NOWHERE, gettext("Ask experts to rate answers that were not used to build the judge's prompt.")
    if more:
        text = gettext("Ask experts to rate about %(more)d more answers of another run by this judge.")
        return NextStep.NOWHERE, text % {"more": more}
    if any(metric.trust is Trust.UNRATED for metric in metrics):
        return NextStep.REVIEW, gettext("Ask experts to review a sample.")
    doubted = [metric for metric in metrics if metric.trust in {Trust.NO, Trust.CARE}]
    if doubted and all(metric.kind is VerdictKind.SKEWED for metric in doubted):
        return NextStep.NOWHERE, gettext(
            "Evaluate harder questions too. Nearly all answers got the same rating, so it is unclear "
            "whether the judge finds bad ones."
        )
    if doubted and any(judge.primary and judge.baseline for judge in report.provenance.judges):
        return NextStep.DISAGREEMENTS, gettext(
            "Check the largest disagreements, and use a language model as the judge."
        )
    if doubted:
        return NextStep.DISAGREEMENTS, gettext("Check the largest disagreements and improve the judge's prompt.")
    return NextStep.COMPARE, gettext("Compare it with another run on the same questions.")


def _trust_sentence(report: Report, more: int, items: int) -> str:
    """State whether a review of ``items`` answers yields the ``more`` ratings that a verdict needs."""
    if more > report.overall.answers - report.overall.reviewed_answers:
        return gettext("To tell whether the judge can be trusted, also rate answers from other runs it judged.")
    if 0 < more <= items:
        text = gettext("About %(more)d of them should tell whether the judge can be trusted.")
        return text % {"more": more}
    return ""
