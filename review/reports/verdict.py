"""The first sentences of a run: whether its judge can be trusted and for which metrics, the score to report, and the
next step. The run page, the HTML report, ``results`` and JSON take them from here.

:mod:`review.statistics.agreement.trust` decides; this module words it.
"""

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
from evaluation.core.metric_specs import JUDGED, Bilingual
from evaluation.core.scales import Scale
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_reason
from evaluation.models import Run
from evaluation.profiles.arithmetic import Label
from review.evidence.scorers import RULES
from review.reports.report import Report
from review.statistics.agreement.trust import FEW, JudgeTrust, Trust

NAMED = 3  # metrics that a sentence names before it only counts them
CHANCE = 0.2  # below it, agreement is slight at most (Landis and Koch 1977)
AS_WELL = 0.05  # a difference that nobody need look at


class Kind(StrEnum):
    """What goes before agreement beyond chance in the verdict on a metric."""

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
    Trust.CARE: _("Judge and experts agree in part: means are rough, and a single value may be wrong."),
    Trust.CANNOT_TELL: _("The ratings so far fit a good judge as well as a poor one."),
    Trust.YES: _("The judge agrees with experts as well as they agree with each other."),
    Trust.BUILT_ON: _("Every rating was used to build the judge's prompt, so none of them tests it."),
    Trust.UNRATED: _("No expert has rated an answer."),
}


@dataclass(frozen=True, slots=True)
class MetricTrust:
    """One judged metric with the figures behind the verdict. ``scale`` is ``None`` where nobody rated; ``weighted``:
    the figures count answers by their probability of being drawn."""

    name: str
    title: Bilingual
    figures: JudgeTrust
    scale: Scale | None = None
    weighted: bool = False

    @property
    def trust(self) -> Trust:
        """The verdict."""
        return self.figures.trust

    @property
    def kind(self) -> Kind:
        """What goes before agreement beyond chance."""
        if self.figures.bias is not None:
            return Kind.LENIENT if self.figures.lenient else Kind.STRICT
        return Kind.SKEWED if self.figures.commonest is not None else Kind.PLAIN

    @property
    def rank(self) -> int:
        """Where it stands among others: what speaks against the judge first."""
        return list(Trust).index(self.trust)

    @property
    def chip(self) -> str:
        """The verdict in a few words."""
        if self.trust is Trust.CANNOT_TELL and self.figures.more:
            return gettext("cannot tell yet: %(count)d more ratings") % {"count": self.figures.more}
        if self.trust is Trust.CARE and self.figures.bias is not None:
            by = {"bias": numbers.plain(abs(self.figures.bias))}
            lenient = self.kind is Kind.LENIENT
            text = (
                gettext("with care: too lenient by %(bias)s")
                if lenient
                else gettext("with care: too strict by %(bias)s")
            )
            return text % by
        return str(CHIPS[self.trust])

    @property
    def says(self) -> str:
        """What the figures mean, in a sentence without any."""
        found = self.figures
        if self.kind in BIASED and self.trust in {Trust.CARE, Trust.NO}:
            return str(BIASED[self.kind])
        if self.kind is Kind.SKEWED and self.trust is Trust.CARE:
            return gettext(
                "Nearly all ratings are the same. The judge matches them, but is not shown to find the other answers."
            )
        if self.trust is Trust.CANNOT_TELL and found.reason:
            return explain_reason(found.reason)
        if self.trust is Trust.CANNOT_TELL and found.n < FEW:
            return gettext("Too few answers are rated to tell.")
        if self.trust is Trust.NO and found.value is not None and found.value < CHANCE:
            return gettext("Judge and experts agree little more than chance.")
        if self.trust is Trust.YES and (found.experts is None or found.shared < FEW):
            return gettext("Judge and experts agree well; how well experts agree with each other is not known yet.")
        if self.trust is Trust.YES and found.experts is not None and (found.value or 0.0) < found.experts - AS_WELL:
            return gettext("Judge and experts agree well, though experts agree with each other better.")
        return str(MEANINGS[self.trust])

    @property
    def missing(self) -> str:
        """What a surer verdict takes; empty where nothing is missing."""
        found = self.figures
        if found.more:
            return gettext("%(count)d more rated answers") % {"count": found.more}
        if self.trust is Trust.CANNOT_TELL and found.reason:
            return explain_reason(found.reason)
        if self.kind is Kind.SKEWED and self.trust is Trust.CARE:
            return gettext("more ratings of answers that the judge scored differently")
        if found.shared < FEW:
            return gettext("%(count)d more answers rated by two experts") % {"count": FEW - found.shared}
        return ""

    def to_dict(self) -> dict[str, Any]:
        """The figures and the verdict as JSON values; ``judge`` and ``experts`` are the agreement by ``statistic``."""
        found = self.figures.to_dict()
        found["judge"] = found.pop("value")
        return found | {"missing": self.missing}


BIASED: Mapping[Kind, str | Promise] = {
    Kind.LENIENT: _("The judge gives clearly more than experts do: use the corrected score."),
    Kind.STRICT: _("The judge gives clearly less than experts do: use the corrected score."),
}


def metric_trust(name: str, title: Bilingual, judge: Mapping[str, Any]) -> MetricTrust:
    """The verdict on one metric from the agreement figures of a judge in the form of the contract."""
    return MetricTrust(
        name,
        title,
        JudgeTrust.from_dict(judge["trust"]),
        Scale.parse(judge["scale"]),
        judge.get("sampling") == "weighted",
    )


def unrated_metric(name: str, title: Bilingual) -> MetricTrust:
    """A metric that a judge scored and nobody rated."""
    return MetricTrust(name, title, JudgeTrust(Trust.UNRATED, "", 0, 0))


class Step(StrEnum):
    """Where the next step is taken."""

    NOWHERE = ""
    REVIEW = "review"
    DISAGREEMENTS = "disagreements"
    COMPARE = "compare"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentences of a run, each empty where it has nothing to say, and the judged metrics they rest on, what speaks
    against the judge first."""

    judge: str
    score: str
    next: str
    metrics: tuple[MetricTrust, ...]
    step: Step

    @property
    def rated(self) -> bool:
        """Whether experts have rated what the judge scored."""
        return any(one.figures.n for one in self.metrics)

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that is said, in order."""
        return tuple(one for one in (self.judge, self.score, self.next) if one)

    def to_dict(self) -> dict[str, Any]:
        """Sentences and figures as JSON values, sentences in the reader's language."""
        said = {"judge": self.judge, "score": self.score, "next": self.next}
        return {**said, "metrics": {one.name: one.to_dict() for one in self.metrics}}


def verdict_of(report: Report) -> Verdict:
    """The verdict on a run; what to do next as ``report.next_review`` plans it, where it was planned."""
    metrics = tuple(sorted(_metrics(report), key=lambda one: one.rank))
    judge = judge_sentences(metrics)
    if not metrics and report.header.state in Run.ENDED and not report.header.judges:
        judge = gettext("No judge scored these answers: rules computed the figures, so there is no judge to doubt.")
        if report.provenance.evaluation_type == RETRIEVAL_ONLY:
            judge = gettext("Only passages were retrieved, so there are no answers to judge.")
    if (carried := report.overall.carried) and metrics and all(one.trust is Trust.UNRATED for one in metrics):
        text = gettext(
            "No expert has rated an answer of this run, only equal ones of earlier runs (%(runs)s). Those runs show "
            "how far its judge can be trusted."
        )
        judge = text % {"runs": ", ".join(f"#{one.run_id}" for one in carried)}
    step, then = _next(report, metrics)
    return Verdict(judge, _about_score(report, metrics), then, metrics, step)


def _metrics(report: Report) -> Iterator[MetricTrust]:
    judges = report.agreement.get("judges", {})
    of_judges = [of for author, of in judges.items() if author != RULES]
    judged = any(one.primary for one in report.provenance.judges) or bool(report.provenance.imported_judges)
    for line in report.metrics:
        figures = next((of[line.name] for of in of_judges if line.name in of and of[line.name]["primary"]), None)
        if figures is not None:
            yield metric_trust(line.name, line.title, figures)
        elif line.kind in JUDGED and judged and line.coverage.scored:
            yield unrated_metric(line.name, line.title)


def judge_sentences(metrics: Sequence[MetricTrust]) -> str:
    """Whether the judge can be trusted and for which metrics, worst first; empty without any."""
    if metrics and all(one.trust is Trust.UNRATED for one in metrics):
        return gettext("Not known yet whether the judge can be trusted: no expert has rated an answer.")
    keys = dict.fromkeys((one.trust, one.kind) for one in sorted(metrics, key=lambda one: one.rank))
    groups = [[one for one in metrics if (one.trust, one.kind) == key] for key in keys]
    return " ".join(_group(found, first=at == 0) for at, found in enumerate(groups))


HEADS: Mapping[Trust, str | Promise] = {
    Trust.NO: _("Do not rely on the judge for %(metrics)s: %(agreement)s."),
    Trust.EXPERTS_DISAGREE: _(
        "Cannot tell for %(metrics)s: experts agree with each other only %(experts)s (0 = chance, 1 = perfect), so "
        "there is no standard to compare the judge with."
    ),
    Trust.CARE: _("Use the judge with care for %(metrics)s: %(agreement)s."),
    Trust.CANNOT_TELL: _(
        "Cannot tell yet whether to trust the judge for %(metrics)s: about %(more)d more ratings needed (%(n)s so far)."
    ),
    Trust.YES: _("The judge can be trusted for %(metrics)s: %(agreement)s."),
    Trust.BUILT_ON: _(
        "Cannot tell for %(metrics)s: every rating was used to build the judge's prompt, so none of them tests it."
    ),
    Trust.UNRATED: _("Not known for %(metrics)s: not rated by experts."),
}
NOT_FOUND = _(
    "Use the judge with care for %(metrics)s: %(agreement)s. Whether the judge finds answers that deserve another "
    "rating is not shown."
)
UNDEFINED = _("Cannot tell for %(metrics)s: %(reason)s")


def _group(metrics: Sequence[MetricTrust], *, first: bool) -> str:
    """The metrics of one verdict; only the first sentence compares the judge with the experts."""
    lead = metrics[0]
    trust, kind = lead.trust, lead.kind
    text = HEADS[trust]
    if trust is Trust.CARE and kind is Kind.SKEWED:
        text = NOT_FOUND
    if trust is Trust.CANNOT_TELL and not lead.figures.more:
        text = UNDEFINED
    facts = {
        "agreement": _agreement(metrics, kind, first=first),
        "experts": _range([one.figures.experts for one in metrics]),
        "metrics": _names(metrics),
        "more": max(one.figures.more for one in metrics),
        "n": "–".join(dict.fromkeys(str(end(one.figures.n for one in metrics)) for end in (min, max))),
        "reason": explain_reason(lead.figures.reason) if lead.figures.reason else "",
    }
    return str(text) % facts


def _agreement(metrics: Sequence[MetricTrust], kind: Kind, *, first: bool) -> str:
    """The figures that decide the verdict on some metrics."""
    found = [one.figures for one in metrics]
    facts = {
        "judge": _range([one.value for one in found]),
        "experts": _range([one.experts for one in found]),
        "bias": _on_scale(_range([abs(one.bias) for one in found if one.bias is not None]), metrics),
        "exact": _range([one.exact for one in found], numbers.share),
        "share": _range([one.share for one in found], numbers.share),
        "level": ", ".join(dict.fromkeys(_level(one) for one in metrics)),
    }
    if kind is Kind.LENIENT:
        text = gettext("on average the judge is too lenient by %(bias)s (agreement %(judge)s; 0 = chance, 1 = perfect)")
    elif kind is Kind.STRICT:
        text = gettext("on average the judge is too strict by %(bias)s (agreement %(judge)s; 0 = chance, 1 = perfect)")
    elif kind is Kind.SKEWED:
        text = gettext(
            "%(share)s of the ratings are %(level)s, and the judge gives the experts' value for %(exact)s of answers "
            "(AC1 %(judge)s)"
        )
    elif first and facts["experts"]:
        text = gettext("experts with each other %(experts)s, judge with experts %(judge)s (0 = chance, 1 = perfect)")
    else:
        text = gettext("judge with experts %(judge)s")
    return text % facts


def _level(one: MetricTrust) -> str:
    return numbers.on_scale(one.figures.commonest, one.scale) if one.scale else ""


def _on_scale(difference: str, metrics: Sequence[MetricTrust]) -> str:
    """A difference with the scale that it is on, where all metrics share one."""
    scales = {(one.scale.low, one.scale.high) for one in metrics if one.scale}
    if len(scales) != 1:
        return difference
    low, high = (numbers.plain(end, 0) for end in scales.pop())
    return gettext("%(difference)s on a scale of %(low)s to %(high)s") % {
        "difference": difference,
        "low": low,
        "high": high,
    }


def _names(metrics: Sequence[MetricTrust]) -> str:
    language = get_language() or "en"
    named = ", ".join(one.title.in_language(language) for one in metrics[:NAMED])
    if len(metrics) <= NAMED:
        return named
    return gettext("%(names)s and %(count)d more") % {"names": named, "count": len(metrics) - NAMED}


def _range(values: Sequence[float | None], written: Callable[[float], str] = numbers.plain) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = written(min(known)), written(max(known))
    return low if low == high else gettext("%(low)s to %(high)s") % {"low": low, "high": high}


def _about_score(report: Report, metrics: Sequence[MetricTrust]) -> str:
    """The score to quote and how sure it is, or why there is none."""
    overall = report.overall
    if report.header.state not in Run.ENDED:
        return ""
    if not report.header.complete:
        return _no_score(why_no_headline(report) or explain_reason("not_finished"))
    if report.provenance.evaluation_type == RETRIEVAL_ONLY and (measured := _measured(report)):
        return gettext("There is no overall score without answers. Measured: %(metrics)s.") % {"metrics": measured}
    if (part := overall.part_only) is not None and part.value is not None:
        facts = {"value": numbers.plain(part.value), "share": numbers.share(overall.weight)}
        if overall.label is Label.RULES_ONLY:
            return (
                gettext("No overall score to report: rules alone give %(value)s for %(share)s of the profile's weight.")
                % facts
            )
        return (
            gettext(
                "No overall score to report: what was computed gives %(value)s for %(share)s of the profile's weight."
            )
            % facts
        )
    figure, wider = overall.corrected_this_run, overall.corrected
    disputed = _disputed(metrics)
    if disputed and figure.value is not None:
        text = _("No score to report yet: %(value)s rests on experts who disagree with each other on %(metrics)s.")
    elif figure.partly_corrected:
        text = _("No single score to report: experts would give %(interval)s. Nobody rated some of its parts.")
    elif figure.value is not None and figure.low == figure.high is not None:
        text = _("Score to report: %(value)s. Experts have rated every answer. On questions like these: %(wider)s.")
    elif figure.value is not None and figure.low is not None:
        text = _(
            "Score to report: %(value)s (95%% CI on questions like these: %(wider)s), the estimate if experts had "
            "rated all %(answers)d answers. These answers alone: %(interval)s."
        )
    elif figure.value is not None:
        text = _(
            "Score to report: %(value)s, the estimate if experts had rated all %(answers)d answers. Its margin is not "
            "known."
        )
    elif overall.reviewed_answers and overall.reviewed.value is not None:
        figure = overall.reviewed
        text = _("No score to report yet: %(value)s still relies on the judge for unrated answers.")
    elif overall.judge_only.value is not None:
        figure = overall.judge_only
        text = _("No score to report yet: %(value)s is the judge's score alone.")
    else:
        return _no_score(why_no_headline(report) or explain_reason(overall.judge_only.withheld))
    return str(text) % {
        "value": numbers.plain(figure.value or 0.0),
        "interval": numbers.interval(figure.low, figure.high),
        "wider": numbers.interval(wider.low, wider.high) or gettext("not known"),
        "answers": overall.answers,
        "metrics": _names(disputed),
    }


def _measured(report: Report) -> str:
    """The first means of what was computed, with their titles."""
    language = get_language() or "en"
    means = [(line.title.in_language(language), line.judge_only.value) for line in report.metrics]
    return ", ".join(f"{title} {numbers.plain(mean)}" for title, mean in means if mean is not None)


_FAILED = re.compile(r"(\w+): (\d+)/(\d+)")  # as a run that lacks results gives its reason, metric by metric


def why_no_headline(report: Report) -> str:
    """In words, why a run has no headline; empty where nothing says so."""
    reason = report.header.reason
    parts = [_FAILED.fullmatch(part) for part in reason.split(", ")]
    found = [part.groups() for part in parts if part]
    if not reason or len(found) < len(parts):
        return explain_reason(reason) if reason else ""
    titles = {line.name: line.title.in_language(get_language() or "en") for line in report.metrics}
    text = gettext("%(metric)s for %(failed)s of %(all)s answers")
    said = [text % {"metric": titles.get(name, name), "failed": bad, "all": every} for name, bad, every in found]
    return gettext("Too many values are missing: %(parts)s.") % {"parts": ", ".join(said)}


def _no_score(why: str) -> str:
    return gettext("No score to report. %(why)s") % {"why": why}


def _disputed(metrics: Sequence[MetricTrust]) -> list[MetricTrust]:
    """Metrics on which experts disagree with each other."""
    return [one for one in metrics if one.trust is Trust.EXPERTS_DISAGREE]


def _next(report: Report, metrics: Sequence[MetricTrust]) -> tuple[Step, str]:
    """The one thing to do next; empty while the run is at work."""
    if report.header.state not in Run.ENDED:
        return Step.NOWHERE, ""
    if report.header.state == Run.State.INCOMPLETE:
        coverage = [line.coverage for line in report.metrics]
        if any(one.failed for one in coverage) or not any(one.not_applicable for one in coverage):
            return Step.NOWHERE, gettext("Retry what failed.")
        return Step.NOWHERE, gettext("Have experts rate the answers in which the judge found nothing.")
    if disputed := _disputed(metrics):
        text = gettext("Agree with the experts on the criteria before anyone rates more: %(metrics)s.")
        return Step.NOWHERE, text % {"metrics": _names(disputed)}
    more = max((one.figures.more for one in metrics), default=0)
    if report.next_review is not None:
        sentence = f"{report.next_review['sentence']} {_about_trust(report, more, report.next_review['items'])}"
        return Step.REVIEW, sentence.strip()
    if any(one.trust is Trust.BUILT_ON for one in metrics):
        return Step.NOWHERE, gettext("Have experts rate answers that the judge's prompt was not built on.")
    if more:
        text = gettext("Have experts rate answers of another run by this judge: about %(more)d more are needed.")
        return Step.NOWHERE, text % {"more": more}
    if any(one.trust is Trust.UNRATED for one in metrics):
        return Step.REVIEW, gettext("Have experts review a sample.")
    doubted = [one for one in metrics if one.trust in {Trust.NO, Trust.CARE}]
    if doubted and all(one.kind is Kind.SKEWED for one in doubted):
        return Step.NOWHERE, gettext(
            "Evaluate harder questions too: nearly all answers got the same rating, so nobody knows whether the judge "
            "finds bad ones."
        )
    if doubted and any(one.primary and one.baseline for one in report.provenance.judges):
        return Step.DISAGREEMENTS, gettext("Read the largest disagreements, and judge with a language model instead.")
    if doubted:
        return Step.DISAGREEMENTS, gettext("Read the largest disagreements and improve the judge's prompt.")
    return Step.COMPARE, gettext("Compare it with another run over the same questions.")


def _about_trust(report: Report, more: int, items: int) -> str:
    """Whether a review of ``items`` answers gives the ``more`` ratings that a verdict on the judge takes."""
    if more > report.overall.answers - report.overall.reviewed_answers:
        return gettext("To tell whether the judge can be trusted, rate answers of other runs by it as well.")
    if 0 < more <= items:
        text = gettext("About %(more)d of them should tell whether the judge can be trusted.")
        return text % {"more": more}
    return ""
