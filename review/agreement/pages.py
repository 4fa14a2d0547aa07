"""Agreement in detail: for each metric every statistic of every judge, beside the experts and a constant guess; what
experts reach who are compared with their colleagues as the judge is; where ratings vary; and the plots for a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.metric_specs import Bilingual
from evaluation.core.scales import Scale
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_reason
from evaluation.models import Run
from review.agreement.plots import FIRST, STATISTICS, JudgePlots, judge_plots, over_time
from review.agreement.run_agreement import By, kept_agreement
from review.comparisons.trend import trends_of
from review.reports.verdict import MetricTrust, judge_sentences, metric_trust
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.variance import Missing, Source
from review.statistics.precision import Spend

SOURCES: Mapping[Source, tuple[str | Promise, str | Promise]] = {
    Source.ANSWERS: (_("answers"), _("how far answers truly differ")),
    Source.REVIEWERS: (_("reviewers"), _("how lenient or strict each reviewer is")),
    Source.TASTE: (_("reviewer and answer"), _("how far reviewers differ on single answers")),
    Source.REST: (_("the rest"), _("what the same reviewer would say at another time")),
    Source.JUDGE: (_("judge"), _("how far the judge is off on an answer, whenever asked")),
    Source.NOISE: (_("judge's noise"), _("how far the judge's repeats scatter")),
}
NEEDS: Mapping[Missing, str | Promise] = {
    Missing.NEEDS_OVERLAP: _("not known: have two reviewers rate some of the same answers"),
    Missing.NEEDS_TWO_REVIEWERS: _("not known: only one reviewer has rated"),
    Missing.NEEDS_HIDDEN_REPEATS: _("not known apart: show reviewers some answers a second time"),
    Missing.NEEDS_JUDGE_REPEATS: _("not known: have the judge score every answer more than once (--repeat)"),
    Missing.NEEDS_RATINGS: _("not known: too few answers are rated"),
}
ADVICE: Mapping[Spend, str | Promise] = {
    Spend.QUESTIONS: _("Spend next on more questions: %(share)s of the mean's variance comes from how answers differ."),
    Spend.REVIEWERS: _("Spend next on more reviewers: %(share)s of the mean's variance is how strict they are."),
    Spend.RATINGS: _(
        "Spend next on more ratings: %(share)s of the mean's variance comes from the judge's errors on single answers "
        "and from single ratings."
    ),
    Spend.REPEATS: _("Spend next on repeats of the judge: %(share)s of the mean's variance is its noise."),
}


class SourceRow(NamedTuple):
    """A source of variance. ``missing`` instead of figures where it cannot be told apart."""

    title: str
    meaning: str
    variance: str
    share: str
    missing: str


class VariationCard(NamedTuple):
    """One metric's sources; ``advice`` is empty where nothing is known or nothing varies."""

    title: str
    rows: tuple[SourceRow, ...]
    design: str
    advice: str


def variation_cards(found: Mapping[str, Any]) -> tuple[VariationCard, ...]:
    """The cards of ``variance`` as the agreement figures have it, by metric."""
    return tuple(_card(one) for one in found.values())


def _card(one: Mapping[str, Any]) -> VariationCard:
    title = one["title"]["ko" if (get_language() or "en").startswith("ko") else "en"]
    rows = tuple(row for source in Source if (row := _source_row(source, one)))
    return VariationCard(title, rows, _design(one["design"]), _advice(one["next"]))


def _source_row(source: Source, one: Mapping[str, Any]) -> SourceRow | None:
    title, meaning = map(str, SOURCES[source])
    variance, why = one["variance"].get(str(source)), one["missing"].get(str(source))
    if variance is not None:
        share = one["share"].get(str(source))
        return SourceRow(title, meaning, numbers.plain(variance, 3), "" if share is None else numbers.share(share), "")
    return SourceRow(title, meaning, "", "", str(NEEDS[Missing(why)])) if why else None


def _design(design: Mapping[str, Any]) -> str:
    facts = {
        "answers": design["answers"],
        "reviewers": design["reviewers"],
        "ratings": numbers.plain(design["ratings_per_answer"], 1),
        "judged": design["judged"],
        "repeats": numbers.plain(design["judge_repeats"], 1),
    }
    return (
        gettext(
            "From %(answers)d answers rated %(ratings)s times each by %(reviewers)d reviewers, and %(judged)d answers "
            "judged %(repeats)s times each; unweighted."
        )
        % facts
    )


def _advice(following: Mapping[str, Any]) -> str:
    first = following["spend_on"]
    if first is None:
        return ""
    return str(ADVICE[Spend(first)]) % {"share": numbers.share(following["share"][first])}


PERCENT = {"exact", "within_one"}
HIDDEN = {"yes_no_only", "classes_have_no_order", "needs_binning"}  # what does not exist on a scale needs no line
MOST_COLUMNS = 8  # with more scorers the table is turned, one line for each
Figures = Mapping[str, Any]


class Value(NamedTuple):
    """A statistic of one scorer: its text and interval, or the reason why there is none."""

    text: str
    interval: str
    reason: str


class StatisticRow(NamedTuple):
    """A statistic with one value per column of the table; ``first`` ones are shown without asking."""

    title: str
    meaning: str
    values: tuple[Value, ...]
    first: bool


class Column(NamedTuple):
    """A scorer: a judge, the best constant guess, or the experts among themselves. ``n`` counts the answers compared,
    ``detail`` says more about it; ``values`` are its figures of the first rows, for the turned table."""

    title: str
    detail: str
    n: int
    notes: tuple[str, ...]
    values: tuple[Value, ...]


class CeilingRow(NamedTuple):
    """One judge and statistic: the left-out experts' figure and the judge's, both against the mean of the others;
    ``test`` is the outcome of the alternative-annotator test in words, on the first row of a judge."""

    judge: str
    statistic: str
    values: tuple[Value, Value]
    test: str


class TrustRow(NamedTuple):
    """The verdict on one metric, with the judge's figure and the experts' own."""

    found: MetricTrust
    judge: Value
    experts: Value


class MetricAgreement(NamedTuple):
    """One metric: columns and rows (``turned`` where there are too many columns), what the experts themselves reach,
    and plots for each judge."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[StatisticRow, ...]
    turned: bool
    ceiling: tuple[CeilingRow, ...]
    plots: tuple[JudgePlots, ...]


@dataclass(frozen=True, slots=True)
class AgreementPage:
    """All metrics of a run that experts have rated; ``says`` and ``rows`` are the verdict on its own judge, empty where
    it has none. ``waiting``: intervals are still to be fetched. ``anchoring`` tells
    what became of first ratings after the judge was shown, by metric."""

    run: Run
    says: str
    rows: tuple[TrustRow, ...]
    metrics: tuple[MetricAgreement, ...]
    examples: bool
    waiting: bool
    variation: tuple[VariationCard, ...]
    anchoring: Sequence[Figures]


def agreement_page(run: Run, found: Figures, *, examples: bool, waiting: bool) -> AgreementPage:
    """The page of a run's agreement figures in the form of the contract, told apart by category."""
    metrics = tuple(_metric(*one) for one in _by_metric(found))
    variation = variation_cards(found.get("variance", {}))
    rows = tuple(sorted(_trust_rows(found), key=lambda row: row.found.rank))
    says = judge_sentences([row.found for row in rows])
    return AgreementPage(
        run, says, rows, metrics, examples, waiting, variation, list(found.get("anchoring", {}).values())
    )


def _trust_rows(found: Figures) -> Iterator[TrustRow]:
    """The verdict on each metric that the run's own judge scored, else the first judge, with both figures."""
    for name, experts in found["experts"].items():
        own = sorted((of[name] for of in found["judges"].values() if name in of), key=lambda of: not of["primary"])
        if own:
            trust = metric_trust(name, Bilingual(**experts["title"]), own[0])
            yield TrustRow(trust, _trust_value(trust), _value(trust.figures.statistic, experts))


def _trust_value(trust: MetricTrust) -> Value:
    """The agreement that decides the verdict."""
    found = trust.figures
    if found.value is None:
        return Value("–", "", explain_reason(found.reason) if found.reason else "")
    return Value(numbers.plain(found.value), numbers.interval(found.low, found.high), "")


def scorer_title(author: str, *, baseline: bool) -> str:
    """Who is compared; the baseline always by that word."""
    if baseline:
        return gettext("offline baseline")
    return gettext("rule") if author == "rules" else author


def _by_metric(found: Figures) -> Iterator[tuple[str, Figures, list[tuple[str, Figures]]]]:
    """Each metric's title, the experts' figures, and those of every judge by its title, the primary one first."""
    for name, experts in found["experts"].items():
        judges = [(author, of[name]) for author, of in found["judges"].items() if name in of]
        ranked = sorted(judges, key=lambda one: (not one[1]["primary"], one[0]))
        titled = [(scorer_title(author, baseline=of["baseline"]), of) for author, of in ranked]
        yield experts["title"]["ko" if get_language() == "ko" else "en"], experts, titled


def _metric(title: str, experts: Figures, titled: list[tuple[str, Figures]]) -> MetricAgreement:
    sides: list[tuple[str, str, Figures]] = [(judge, of["rubric"], of) for judge, of in titled]
    if guess := next((of["constant_guess"] for _, of in titled if of["constant_guess"]), None):
        scale = Scale.parse(experts["scale"])
        always = gettext("always “%(value)s”") % {"value": numbers.on_scale(guess["value"], scale)}
        sides.append((gettext("best constant guess"), always, guess))
    sides.append((gettext("experts among themselves"), "", experts))
    rows = [row for name in STATISTICS if (row := _row(name, [of for _, _, of in sides]))]
    first = [row for row in rows if row.first]
    columns = tuple(
        Column(side, detail, of["n"], tuple(_notes(of)), tuple(row.values[at] for row in first))
        for at, (side, detail, of) in enumerate(sides)
    )
    plots = tuple(judge_plots(who, of, unfolded=at == 0) for at, (who, of) in enumerate(titled))
    return MetricAgreement(title, columns, tuple(rows), len(columns) > MOST_COLUMNS, tuple(_ceiling(titled)), plots)


def _notes(of: Figures) -> Iterator[str]:
    if of.get("sampling") == "weighted":
        yield gettext("weighted by the probability of being drawn")
    if of.get("sampling") == "unknown":
        yield gettext("unweighted: it is not known how the answers were chosen")
    if of.get("left_out"):
        yield gettext("%(count)d answers of unknown sampling left out") % {"count": of["left_out"]}
    if count := of.get("built_on"):
        yield gettext("without %(count)d answers on whose ratings the judge prompt was worked out") % {"count": count}
    if count := of.get("sealed"):
        yield gettext("without %(count)d locked answers, whose ratings are sealed") % {"count": count}
    if of.get("warnings"):
        yield gettext("fewer than 20 independent questions: the intervals are rough")


def _row(name: str, sides: list[Figures]) -> StatisticRow | None:
    if all(side.get(name) is None and side.get("undefined", {}).get(name, "") in HIDDEN | {""} for side in sides):
        return None
    title, meaning = STATISTICS[name]
    return StatisticRow(str(title), str(meaning), tuple(_value(name, side) for side in sides), name in FIRST)


def _value(name: str, side: Figures) -> Value:
    value = side.get(name)
    if value is None:
        reason = side.get("undefined", {}).get(name, "")
        return Value("–", "", explain_reason(reason) if reason and reason not in HIDDEN else "")
    low, high = side.get("intervals", {}).get(name, (None, None))
    if name in PERCENT:
        ends = "" if low is None or high is None else f"{numbers.share(low)}–{numbers.share(high)}"
        return Value(numbers.share(value), ends, "")
    text = numbers.signed(value) if name == "bias" else numbers.plain(value)
    return Value(text, numbers.interval(low, high), "")


def _ceiling(judges: Sequence[tuple[str, Figures]]) -> Iterator[CeilingRow]:
    """The rows of every judge whose answers several experts rated."""
    for title, of in judges:
        beside = of["ceiling"]
        if beside is None:
            continue
        expert, judge = beside["expert"], beside["judge"]
        names = [headline_statistic(Scale.parse(of["scale"])), "mae", "exact"]
        defined = [name for name in names if None not in (expert[name], judge.get(name))]
        for at, name in enumerate(defined):
            test = _test(of["alternative_annotator"]) if at == 0 else ""
            yield CeilingRow(title, name, (_value(name, expert), _value(name, judge)), test)


def _test(found: Figures | None) -> str:
    if found is None:
        return ""
    if found["passed"] is None:
        return gettext("not tested: it needs three experts with 30 answers each")
    shown = {"share": numbers.share(found["winning_rate"])}
    if found["passed"]:
        return gettext("passed: it could stand in for %(share)s of the experts") % shown
    return gettext("not passed: shown for %(share)s of the experts") % shown


def agreement_pictures(run: Run, found: Figures | None = None) -> SafeString:
    """The section as HTML: the first statistics with their intervals, and the plots of every judge; empty where nobody
    has rated an answer of the run. ``found`` are the run's agreement figures by category, where they are at hand."""
    found = kept_agreement(run, by=By.CATEGORY) if found is None else found
    metrics = tuple(_metric(*one) for one in _by_metric(found))
    if not metrics:
        return SafeString("")
    return render_to_string("review/agreement/report_pictures.html", {"metrics": metrics, **over_time(trends_of(run))})
