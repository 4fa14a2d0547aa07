"""What a run says first, in plain sentences: whether its judge can be trusted and for what, the score to quote, and
what to do next. The run page, the HTML report, ``results`` and JSON say it from here, in the same words.

Trust rests on agreement beyond chance (quadratic kappa of levels; 1 is perfect, 0 is chance) between judge and experts
on blind first ratings, beside what the experts reach among themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.registry import JUDGED, Bilingual, Scale
from evaluation.models import Run
from evaluation.profiles.arithmetic import Label
from evaluation.systems.protocol import RETRIEVAL_ONLY
from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from review.evidence.scorers import RULES
from review.reports.report import Report
from review.statistics.agreement.catalogue import headline_statistic

WEAK = 0.4  # below it, agreement beyond chance is usually called poor to fair
GOOD = 0.6  # from it on, substantial (Landis and Koch 1977)
FEW = 20  # with fewer answers a kappa says little
SURE = 50  # with fewer, the interval of a good kappa still reaches down to a poor one
CHANCE = 0.2  # below it, slight at most
AS_WELL = 0.05  # a difference that nobody need look at
NAMED = 3  # metrics that a sentence names before it only counts them


class Trust(StrEnum):
    """How far the judge can be trusted on a metric; what speaks against it first."""

    NO = "no"
    EXPERTS_DISAGREE = "experts_disagree"  # then nothing tells whether the judge is right
    UNDEFINED = "undefined"  # enough ratings, and yet no figure: all the same, say
    CARE = "with_care"
    YES = "yes"
    FEW = "few_ratings"
    UNRATED = "not_rated"


CHIPS: Mapping[Trust, str | Promise] = {
    Trust.NO: _("no"),
    Trust.EXPERTS_DISAGREE: _("experts disagree"),
    Trust.UNDEFINED: _("cannot tell"),
    Trust.CARE: _("with care"),
    Trust.YES: _("yes"),
    Trust.FEW: _("too early"),
    Trust.UNRATED: _("not rated"),
}


MEANINGS: Mapping[Trust, str | Promise] = {
    Trust.NO: _("Judge and experts agree too little to rely on the judge."),
    Trust.EXPERTS_DISAGREE: _(
        "Experts rate the same answers differently, so there is nothing to hold the judge against."
    ),
    Trust.UNDEFINED: _("There are ratings, but agreement beyond chance cannot be computed from them."),
    Trust.CARE: _("Judge and experts agree in part: means are rough, and a single value may be wrong."),
    Trust.YES: _("The judge agrees with experts as well as they agree with each other."),
    Trust.FEW: _("Too few answers are rated to tell."),
    Trust.UNRATED: _("No expert has rated an answer."),
}


@dataclass(frozen=True, slots=True)
class MetricTrust:
    """One judged metric. ``judge`` is the agreement of judge and experts over ``n`` answers, ``experts`` that of the
    experts among themselves over ``shared`` answers that several rated; ``None`` where there is no figure, of the judge
    with its ``reason``. ``weighted``: both count answers by their probability of being drawn."""

    name: str
    title: Bilingual
    trust: Trust
    judge: float | None = None
    experts: float | None = None
    n: int = 0
    shared: int = 0
    reason: str = ""
    weighted: bool = False

    @property
    def rank(self) -> int:
        """Where it stands among others: what speaks against the judge first."""
        return list(Trust).index(self.trust)

    @property
    def chip(self) -> str:
        """The verdict in a word or two."""
        return str(CHIPS[self.trust])

    @property
    def says(self) -> str:
        """What the figures mean, in a sentence without any."""
        if self.trust is Trust.CARE and self.judge is not None and self.judge >= GOOD:
            return gettext("Judge and experts agree well, but on too few answers to be sure.")
        if self.trust is Trust.NO and self.judge is not None and self.judge < CHANCE:
            return gettext("Judge and experts agree hardly more than chance would have it.")
        if self.trust is Trust.YES and (self.experts is None or self.shared < FEW):
            return gettext("Judge and experts agree well; how well experts agree with each other is not known yet.")
        if self.trust is Trust.YES and self.experts is not None and (self.judge or 0.0) < self.experts - AS_WELL:
            return gettext("Judge and experts agree well, though experts agree with each other better.")
        return str(MEANINGS[self.trust])

    @property
    def missing(self) -> str:
        """What a surer verdict takes; empty where nothing is missing."""
        needed = SURE if self.judge is not None and self.judge >= GOOD else FEW
        if self.n < needed:
            return gettext("%(count)d more rated answers") % {"count": needed - self.n}
        if self.trust is Trust.UNDEFINED:
            return explain_reason(self.reason)
        if self.shared < FEW:
            return gettext("%(count)d more answers rated by two experts") % {"count": FEW - self.shared}
        return ""

    def to_dict(self) -> dict[str, Any]:
        """The figures and the verdict as JSON values."""
        found = {name: getattr(self, name) for name in ("judge", "experts", "n", "shared")}
        return {"trust": str(self.trust), **found, "missing": self.missing}


def metric_trust(name: str, title: Bilingual, judge: Mapping[str, Any], experts: Mapping[str, Any]) -> MetricTrust:
    """The verdict on one metric from the agreement figures of a judge and of the experts, in the contract's form."""
    statistic = headline_statistic(Scale.parse(experts["scale"]))
    own, among, n, shared = judge.get(statistic), experts.get(statistic), int(judge["n"]), int(experts["n"])
    if n < FEW:
        trust = Trust.FEW if n else Trust.UNRATED
    elif among is not None and among < WEAK and shared >= FEW:
        trust = Trust.EXPERTS_DISAGREE
    elif own is None:
        trust = Trust.UNDEFINED
    else:
        trust = Trust.NO if own < WEAK else Trust.CARE if own < GOOD or n < SURE else Trust.YES
    reason = "" if own is not None else judge.get("undefined", {}).get(statistic, "no_pairs")
    return MetricTrust(name, title, trust, own, among, n, shared, reason, judge.get("sampling") == "weighted")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentences of a run, each empty where it has nothing to say, and the judged metrics they rest on, what speaks
    against the judge first."""

    judge: str
    score: str
    next: str
    metrics: tuple[MetricTrust, ...]

    @property
    def rated(self) -> bool:
        """Whether experts have rated what the judge scored."""
        return any(one.n for one in self.metrics)

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
            judge = gettext("Only passages were asked for: no answers, so there is nothing to judge.")
    if (carried := report.overall.carried) and metrics and all(one.trust is Trust.UNRATED for one in metrics):
        text = gettext(
            "No expert has rated an answer of this run, only equal ones of earlier runs (%(runs)s): see there how far "
            "its judge can be trusted."
        )
        judge = text % {"runs": ", ".join(f"#{one.run_id}" for one in carried)}
    return Verdict(judge, _about_score(report), _next(report, metrics), metrics)


def _metrics(report: Report) -> Iterator[MetricTrust]:
    judges, experts = report.agreement.get("judges", {}), report.agreement.get("experts", {})
    of_judges = [of for author, of in judges.items() if author != RULES]
    judged = any(one.primary for one in report.provenance.judges) or bool(report.provenance.imported_judges)
    for line in report.metrics:
        said = next((of[line.name] for of in of_judges if line.name in of and of[line.name]["primary"]), None)
        if said is not None:
            yield metric_trust(line.name, line.title, said, experts[line.name])
        elif line.kind in JUDGED and judged and line.coverage.scored:
            yield MetricTrust(line.name, line.title, Trust.UNRATED)


def judge_sentences(metrics: Sequence[MetricTrust]) -> str:
    """Whether the judge can be trusted and for which metrics, worst first; empty without any."""
    if metrics and all(one.trust is Trust.UNRATED for one in metrics):
        return gettext("Nobody knows yet whether the judge can be trusted: no expert has rated an answer.")
    groups = [found for trust in Trust if (found := [one for one in metrics if one.trust is trust])]
    return " ".join(_group(found, first=at == 0) for at, found in enumerate(groups))


HEADS: Mapping[Trust, str | Promise] = {
    Trust.NO: _("No for %(metrics)s: %(agreement)s."),
    Trust.EXPERTS_DISAGREE: _(
        "Nobody can say for %(metrics)s: experts agree with each other only %(experts)s (0: by chance, 1: always), so "
        "nothing tells whether the judge is right."
    ),
    Trust.UNDEFINED: _("Cannot tell for %(metrics)s: %(reason)s"),
    Trust.CARE: _("Only with care for %(metrics)s: %(agreement)s."),
    Trust.YES: _("Yes for %(metrics)s: %(agreement)s."),
    Trust.FEW: _("Too early to say for %(metrics)s: %(n)s answers rated, %(few)d needed."),
    Trust.UNRATED: _("Unknown for %(metrics)s: not rated by experts."),
}


def _group(metrics: Sequence[MetricTrust], *, first: bool) -> str:
    """The metrics of one verdict; only the first sentence sets the judge beside the experts."""
    trust, experts = metrics[0].trust, _range([one.experts for one in metrics])
    agreement = gettext("experts and judge agree %(judge)s")
    if first and experts:
        agreement = gettext(
            "experts agree with each other %(experts)s, with the judge %(judge)s (0: by chance, 1: always)"
        )
    figures = {"experts": experts, "judge": _range([one.judge for one in metrics])}
    facts = {
        **figures,
        "agreement": agreement % figures,
        "metrics": _names(metrics),
        "n": "–".join(dict.fromkeys(str(end(one.n for one in metrics)) for end in (min, max))),
        "few": FEW,
        "reason": explain_reason(metrics[0].reason) if metrics[0].reason else "",
    }
    return str(HEADS[trust]) % facts


def _names(metrics: Sequence[MetricTrust]) -> str:
    language = get_language() or "en"
    named = ", ".join(one.title.in_language(language) for one in metrics[:NAMED])
    if len(metrics) <= NAMED:
        return named
    return gettext("%(names)s and %(count)d more") % {"names": named, "count": len(metrics) - NAMED}


def _range(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = numbers.plain(min(known)), numbers.plain(max(known))
    return low if low == high else numbers.interval(min(known), max(known))


def _about_score(report: Report) -> str:
    """The score to quote and how sure it is, or why there is none."""
    overall, corrected = report.overall, report.overall.corrected
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
                gettext("No overall score to quote: rules alone give %(value)s for %(share)s of the profile's weight.")
                % facts
            )
        return (
            gettext(
                "No overall score to quote: what was computed gives %(value)s for %(share)s of the profile's weight."
            )
            % facts
        )
    figure = corrected
    if figure.partly_corrected:
        text = _("Quote no single score: experts would say %(interval)s; parts of it were rated by nobody.")
    elif figure.value is not None and figure.low == figure.high is not None:
        text = _("The score to quote is %(value)s: experts have rated every answer.")
    elif figure.value is not None and figure.low is not None:
        text = _(
            "The score to quote is %(value)s: what experts would say of all answers, 95%% sure within %(interval)s."
        )
    elif figure.value is not None:
        text = _("The score to quote is %(value)s: what experts would say of all answers; how sure is not known.")
    elif overall.reviewed_answers and overall.reviewed.value is not None:
        figure = overall.reviewed
        text = _("There is no score to quote yet: %(value)s still rests on the judge where experts did not rate.")
    elif overall.judge_only.value is not None:
        figure = overall.judge_only
        text = _("There is no score to quote yet: %(value)s is only what the judge says.")
    else:
        return _no_score(why_no_headline(report) or explain_reason(overall.judge_only.withheld))
    facts = {"value": numbers.plain(figure.value or 0.0), "interval": numbers.interval(figure.low, figure.high)}
    return str(text) % facts


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
    return gettext("There is no score to quote. %(why)s") % {"why": why}


def _next(report: Report, metrics: Sequence[MetricTrust]) -> str:
    """The one thing to do next; empty while the run is at work."""
    if report.header.state not in Run.ENDED:
        return ""
    if report.header.state == Run.State.INCOMPLETE:
        coverage = [line.coverage for line in report.metrics]
        if any(one.failed for one in coverage) or not any(one.not_applicable for one in coverage):
            return gettext("Retry what failed.")
        return gettext("Have experts rate the answers in which the judge found nothing.")
    if torn := [one for one in metrics if one.trust is Trust.EXPERTS_DISAGREE]:
        return gettext("Settle with the experts what to look for, before more is rated: %(metrics)s.") % {
            "metrics": _names(torn)
        }
    if report.next_review is not None:
        return str(report.next_review["sentence"])
    if any(one.trust in {Trust.UNRATED, Trust.FEW} for one in metrics):
        return gettext("Have experts review a sample.")
    if any(one.trust in {Trust.NO, Trust.CARE} for one in metrics):
        return gettext("Read the largest disagreements and improve the judge's prompt.")
    return gettext("Compare it with another run over the same questions.")
