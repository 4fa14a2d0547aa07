"""Agreement page: statistics of every judge, of the experts and of a constant guess, ceilings, variance and plots."""

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
from evaluation.messages.explanations import explain_reason
from evaluation.models import Run
from review.agreement.plots import STATISTICS, JudgePlots, first_statistics, judge_plots, trend_context
from review.agreement.run_agreement import Breakdown, cached_agreement
from review.comparisons.trend import load_trends
from review.reports.verdict import MetricTrust, judge_sentences, metric_trust
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.variance import DesignGap, VarianceSource
from review.statistics.precision import SpendOption

VARIANCE_SOURCES: Mapping[VarianceSource, tuple[str | Promise, str | Promise]] = {
    VarianceSource.ANSWERS: (_("answers"), _("true differences between answers")),
    VarianceSource.REVIEWERS: (_("reviewers"), _("how lenient or strict each reviewer is")),
    VarianceSource.INTERACTION: (_("reviewer and answer"), _("how much reviewers disagree on single answers")),
    VarianceSource.RESIDUAL: (_("residual"), _("how a reviewer's ratings vary from time to time")),
    VarianceSource.JUDGE: (_("judge"), _("the judge's consistent error on an answer")),
    VarianceSource.NOISE: (_("judge noise"), _("how much the judge's repeats vary")),
}
DESIGN_GAPS: Mapping[DesignGap, str | Promise] = {
    DesignGap.NEEDS_OVERLAP: _("unknown: ask two reviewers to rate some of the same answers"),
    DesignGap.NEEDS_TWO_REVIEWERS: _("unknown: only one reviewer has rated"),
    DesignGap.NEEDS_HIDDEN_REPEATS: _("can't be separated: show reviewers some answers again"),
    DesignGap.NEEDS_JUDGE_REPEATS: _("unknown: have the judge score each answer more than once (--repeat)"),
    DesignGap.NEEDS_RATINGS: _("unknown: too few rated answers"),
}
SPENDING_ADVICE: Mapping[SpendOption, str | Promise] = {
    SpendOption.QUESTIONS: _(
        "Best next step: more questions. %(share)s of the uncertainty comes from differences between answers."
    ),
    SpendOption.REVIEWERS: _(
        "Best next step: more reviewers. %(share)s of the uncertainty comes from how strict they are."
    ),
    SpendOption.RATINGS: _(
        "Best next step: more ratings. %(share)s of the uncertainty comes from judge errors on single "
        "answers and from single ratings."
    ),
    SpendOption.REPEATS: _("Best next step: more judge repeats. %(share)s of the uncertainty is judge noise."),
}


class SourceRow(NamedTuple):
    """Source of variance. ``missing`` replaces the figures if it cannot be estimated."""

    title: str
    meaning: str
    variance: str
    share: str
    missing: str


class VariationCard(NamedTuple):
    """Variance sources of one metric; ``advice`` is empty if nothing is known or varies."""

    title: str
    rows: tuple[SourceRow, ...]
    design: str
    advice: str


def variation_cards(variance: Mapping[str, Any]) -> tuple[VariationCard, ...]:
    """Cards from the ``variance`` section of the agreement figures, by metric."""
    return tuple(_variation_card(metric_variance) for metric_variance in variance.values())


def _variation_card(metric_variance: Mapping[str, Any]) -> VariationCard:
    title = metric_variance["title"]["ko" if (get_language() or "en").startswith("ko") else "en"]
    rows = tuple(row for source in VarianceSource if (row := _source_row(source, metric_variance)))
    return VariationCard(title, rows, _design(metric_variance["design"]), _advice(metric_variance["next"]))


def _source_row(source: VarianceSource, metric_variance: Mapping[str, Any]) -> SourceRow | None:
    title, meaning = map(str, VARIANCE_SOURCES[source])
    variance, gap = metric_variance["variance"].get(str(source)), metric_variance["missing"].get(str(source))
    if variance is not None:
        share = metric_variance["share"].get(str(source))
        return SourceRow(
            title, meaning, numbers.format_number(variance, 3), "" if share is None else numbers.format_share(share), ""
        )
    return SourceRow(title, meaning, "", "", str(DESIGN_GAPS[DesignGap(gap)])) if gap else None


def _design(design: Mapping[str, Any]) -> str:
    facts = {
        "answers": design["answers"],
        "reviewers": design["reviewers"],
        "ratings": numbers.format_number(design["ratings_per_answer"], 1),
        "judged": design["judged"],
        "repeats": numbers.format_number(design["judge_repeats"], 1),
    }
    return (
        gettext(
            "From %(answers)d answers rated %(ratings)s times each by %(reviewers)d reviewers, and "
            "%(judged)d answers judged %(repeats)s times each. Unweighted."
        )
        % facts
    )


def _advice(next_step: Mapping[str, Any]) -> str:
    first = next_step["spend_on"]
    if first is None:
        return ""
    return str(SPENDING_ADVICE[SpendOption(first)]) % {"share": numbers.format_share(next_step["share"][first])}


PERCENT_STATISTICS = {"exact", "within_one"}
# Statistics that do not exist on a scale get no row.
HIDDEN_REASONS = {"yes_no_only", "classes_have_no_order", "needs_binning"}
# With more scorers the table is transposed, with one row for each.
MAX_COLUMNS = 8
Figures = Mapping[str, Any]


class StatisticValue(NamedTuple):
    """Statistic of one scorer: its text and interval, or the reason why there is none."""

    text: str
    interval: str
    reason: str


class StatisticRow(NamedTuple):
    """Statistic with one value per column of the table; ``first`` rows are always visible."""

    title: str
    meaning: str
    values: tuple[StatisticValue, ...]
    first: bool


class ScorerColumn(NamedTuple):
    """Scorer: a judge, the best constant guess, or the experts among themselves.

    ``n`` counts the compared answers, and ``detail`` describes the scorer. ``values`` are its figures of the first
    rows, for the transposed table."""

    title: str
    detail: str
    n: int
    notes: tuple[str, ...]
    values: tuple[StatisticValue, ...]


class CeilingRow(NamedTuple):
    """Judge and statistic: the left-out experts' figure and the judge's, both against the mean of the others.

    ``test`` is the result of the alternative-annotator test in words, on the first row of a judge."""

    judge: str
    statistic: str
    values: tuple[StatisticValue, StatisticValue]
    test: str


class TrustRow(NamedTuple):
    """Verdict on one metric, with the judge's figure and the experts' own."""

    verdict: MetricTrust
    judge: StatisticValue
    experts: StatisticValue


class MetricAgreement(NamedTuple):
    """One metric: table (``is_transposed`` with too many columns), ceiling of the experts, and plots for each judge."""

    title: str
    columns: tuple[ScorerColumn, ...]
    rows: tuple[StatisticRow, ...]
    is_transposed: bool
    ceiling: tuple[CeilingRow, ...]
    plots: tuple[JudgePlots, ...]


@dataclass(frozen=True, slots=True)
class AgreementPage:
    """Metrics of a run that experts have rated.

    ``summary`` and ``rows`` are the verdict on its own judge, empty without one. ``waiting``: intervals are loaded
    later. ``anchoring`` shows, by metric, how first ratings changed after the reveal of the judge."""

    run: Run
    summary: str
    rows: tuple[TrustRow, ...]
    metrics: tuple[MetricAgreement, ...]
    examples: bool
    waiting: bool
    variation: tuple[VariationCard, ...]
    anchoring: Sequence[Figures]


def agreement_page(run: Run, figures: Figures, *, examples: bool, waiting: bool) -> AgreementPage:
    """Build the page from a run's agreement figures in their JSON form, by category."""
    metrics = tuple(_metric_agreement(*metric_figures) for metric_figures in _by_metric(figures))
    variation = variation_cards(figures.get("variance", {}))
    rows = tuple(sorted(_trust_rows(figures), key=lambda row: row.verdict.rank))
    summary = judge_sentences([row.verdict for row in rows])
    return AgreementPage(
        run, summary, rows, metrics, examples, waiting, variation, list(figures.get("anchoring", {}).values())
    )


def _trust_rows(figures: Figures) -> Iterator[TrustRow]:
    """Verdict on each metric of the run's own judge, or else of the first judge, with both figures."""
    for name, experts in figures["experts"].items():
        judge_figures = sorted(
            (metric_figures[name] for metric_figures in figures["judges"].values() if name in metric_figures),
            key=lambda metric_figures: not metric_figures["primary"],
        )
        if judge_figures:
            trust = metric_trust(name, Bilingual(**experts["title"]), judge_figures[0])
            yield TrustRow(trust, _trust_value(trust), _statistic_value(trust.figures.statistic, experts))


def _trust_value(trust: MetricTrust) -> StatisticValue:
    """Statistic that decides the verdict."""
    verdict = trust.figures
    if verdict.value is None:
        return StatisticValue("–", "", explain_reason(verdict.reason) if verdict.reason else "")
    return StatisticValue(numbers.format_number(verdict.value), numbers.format_interval(verdict.low, verdict.high), "")


def _scorer_title(author: str, *, baseline: bool) -> str:
    """Title of a scorer; the baseline always has the same one."""
    if baseline:
        return gettext("Offline baseline")
    return gettext("Rule") if author == "rules" else author


def _by_metric(figures: Figures) -> Iterator[tuple[str, Figures, list[tuple[str, Figures]]]]:
    """Title of each metric, the experts' figures, and those of every judge by title, the primary one first."""
    for name, experts in figures["experts"].items():
        judges = [
            (author, metric_figures[name])
            for author, metric_figures in figures["judges"].items()
            if name in metric_figures
        ]
        ranked_judges = sorted(
            judges, key=lambda author_and_figures: (not author_and_figures[1]["primary"], author_and_figures[0])
        )
        titled = [
            (_scorer_title(author, baseline=metric_figures["baseline"]), metric_figures)
            for author, metric_figures in ranked_judges
        ]
        yield experts["title"]["ko" if get_language() == "ko" else "en"], experts, titled


def _metric_agreement(title: str, experts: Figures, titled: list[tuple[str, Figures]]) -> MetricAgreement:
    sides: list[tuple[str, str, Figures]] = [
        (judge, scorer_figures["rubric"], scorer_figures) for judge, scorer_figures in titled
    ]
    if guess := next(
        (scorer_figures["constant_guess"] for _, scorer_figures in titled if scorer_figures["constant_guess"]), None
    ):
        scale = Scale.parse(experts["scale"])
        always = gettext("always “%(value)s”") % {"value": numbers.on_scale(guess["value"], scale)}
        sides.append((gettext("Always the most common score"), always, guess))
    sides.append((gettext("Experts with each other"), "", experts))
    first = first_statistics(Scale.parse(experts["scale"]))
    rows = [
        row
        for name in STATISTICS
        if (row := _statistic_row(name, [figures for _, _, figures in sides], first=name in first))
    ]
    first_rows = [row for row in rows if row.first]
    columns = tuple(
        ScorerColumn(
            side,
            detail,
            scorer_figures["n"],
            tuple(_notes(scorer_figures)),
            tuple(row.values[index] for row in first_rows),
        )
        for index, (side, detail, scorer_figures) in enumerate(sides)
    )
    plots = tuple(
        judge_plots(judge_title, scorer_figures, is_open=index == 0)
        for index, (judge_title, scorer_figures) in enumerate(titled)
    )
    return MetricAgreement(title, columns, tuple(rows), len(columns) > MAX_COLUMNS, tuple(_ceiling_rows(titled)), plots)


def _notes(scorer_figures: Figures) -> Iterator[str]:
    if scorer_figures.get("sampling") == "weighted":
        yield gettext("weighted by sampling probability")
    if scorer_figures.get("sampling") == "unknown":
        yield gettext("unweighted: sampling method unknown")
    if scorer_figures.get("left_out"):
        yield gettext("%(count)d answers left out (sampling unknown)") % {"count": scorer_figures["left_out"]}
    if count := scorer_figures.get("built_on"):
        yield gettext("without %(count)d answers used to develop the judge prompt") % {"count": count}
    if count := scorer_figures.get("sealed"):
        yield gettext("without %(count)d locked answers (sealed ratings)") % {"count": count}
    if scorer_figures.get("warnings"):
        yield gettext("fewer than 20 independent questions: intervals are approximate")


def _statistic_row(name: str, sides: list[Figures], *, first: bool) -> StatisticRow | None:
    if all(
        side.get(name) is None and side.get("undefined", {}).get(name, "") in HIDDEN_REASONS | {""} for side in sides
    ):
        return None
    title, meaning = STATISTICS[name]
    return StatisticRow(str(title), str(meaning), tuple(_statistic_value(name, side) for side in sides), first)


def _statistic_value(name: str, side: Figures) -> StatisticValue:
    value = side.get(name)
    if value is None:
        reason = side.get("undefined", {}).get(name, "")
        return StatisticValue("–", "", explain_reason(reason) if reason and reason not in HIDDEN_REASONS else "")
    low, high = side.get("intervals", {}).get(name, (None, None))
    if name in PERCENT_STATISTICS:
        ends = "" if low is None or high is None else f"{numbers.format_share(low)}–{numbers.format_share(high)}"
        return StatisticValue(numbers.format_share(value), ends, "")
    text = numbers.format_signed(value) if name == "bias" else numbers.format_number(value)
    return StatisticValue(text, numbers.format_interval(low, high), "")


def _ceiling_rows(judges: Sequence[tuple[str, Figures]]) -> Iterator[CeilingRow]:
    """Rows of every judge whose answers several experts rated."""
    for title, judge_figures in judges:
        ceiling = judge_figures["ceiling"]
        if ceiling is None:
            continue
        expert, judge = ceiling["expert"], ceiling["judge"]
        names = [headline_statistic(Scale.parse(judge_figures["scale"])), "mae", "exact"]
        defined = [name for name in names if None not in (expert[name], judge.get(name))]
        for index, name in enumerate(defined):
            test = _alternative_annotator_text(judge_figures["alternative_annotator"]) if index == 0 else ""
            yield CeilingRow(title, name, (_statistic_value(name, expert), _statistic_value(name, judge)), test)


def _alternative_annotator_text(test: Figures | None) -> str:
    if test is None:
        return ""
    if test["passed"] is None:
        return gettext("not tested: needs three experts with 30 rated answers each")
    shares = {"share": numbers.format_share(test["winning_rate"])}
    if test["passed"]:
        return gettext("passed: could replace %(share)s of the experts") % shares
    return gettext("not passed: could replace only %(share)s of the experts") % shares


def render_agreement_plots(run: Run, figures: Figures | None = None) -> SafeString:
    """Render the section of a report: the first statistics with intervals, and the plots of every judge.

    Empty if nobody has rated an answer of the run. ``figures`` are the run's agreement figures by category, if known.
    """
    figures = cached_agreement(run, by=Breakdown.CATEGORY) if figures is None else figures
    metrics = tuple(_metric_agreement(*metric_figures) for metric_figures in _by_metric(figures))
    if not metrics:
        return SafeString("")
    return render_to_string(
        "review/agreement/report_pictures.html", {"metrics": metrics, **trend_context(load_trends(run))}
    )
