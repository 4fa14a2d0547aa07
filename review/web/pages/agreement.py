"""Agreement in detail: for each metric every statistic of every judge, beside the experts and a constant guess; and
what experts reach who are compared with their colleagues as the judge is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import get_language, gettext

from evaluation.core.scales import Scale
from evaluation.models import Run
from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from review.comparisons.trend import headline_statistic
from review.web.pages.agreement_plots import JudgePlots, judge_plots
from review.web.pages.statistic_names import FIRST, STATISTICS
from review.web.pages.variation import VariationCard, variation_cards

PERCENT = {"exact", "within_one"}
HIDDEN = {"yes_no_only", "classes_have_no_order", "needs_binning"}  # what does not exist on a scale needs no line
MOST_COLUMNS = 8  # with more scorers the table is turned, one line for each
Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Value:
    """A statistic of one scorer: its text and interval, or the reason why there is none."""

    text: str
    interval: str
    reason: str


@dataclass(frozen=True, slots=True)
class StatisticRow:
    """A statistic with one value per column of the table; ``first`` ones are shown without asking."""

    title: str
    meaning: str
    values: tuple[Value, ...]
    first: bool


@dataclass(frozen=True, slots=True)
class Column:
    """A scorer: a judge, the best constant guess, or the experts among themselves. ``n`` counts the answers compared,
    ``detail`` says more about it; ``values`` are its figures of the first rows, for the turned table."""

    title: str
    detail: str
    n: int
    notes: tuple[str, ...]
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class CeilingRow:
    """One judge and statistic: the left-out experts' figure and the judge's, both against the mean of the others;
    ``test`` is the outcome of the alternative-annotator test in words, on the first row of a judge."""

    judge: str
    statistic: str
    values: tuple[Value, Value]
    test: str


@dataclass(frozen=True, slots=True)
class MetricAgreement:
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
    """All metrics of a run that experts have rated. ``waiting``: intervals are still to be fetched. ``anchoring`` tells
    what became of first ratings after the judge was shown, by metric."""

    run: Run
    metrics: tuple[MetricAgreement, ...]
    examples: bool
    waiting: bool
    variation: tuple[VariationCard, ...]
    anchoring: Sequence[Figures]


def agreement_page(run: Run, found: Figures, *, examples: bool, waiting: bool) -> AgreementPage:
    """The page of a run's agreement figures in the form of the contract, told apart by category."""
    metrics = tuple(
        _metric(experts, [(author, of[name]) for author, of in found["judges"].items() if name in of])
        for name, experts in found["experts"].items()
    )
    variation = variation_cards(found.get("variance", {}))
    return AgreementPage(run, metrics, examples, waiting, variation, list(found.get("anchoring", {}).values()))


def scorer_title(author: str, *, baseline: bool) -> str:
    """Who is compared; the baseline always by that word."""
    if baseline:
        return gettext("offline baseline")
    return gettext("rule") if author == "rules" else author


def _metric(experts: Figures, judges: list[tuple[str, Figures]]) -> MetricAgreement:
    ranked = sorted(judges, key=lambda one: (not one[1]["primary"], one[0]))
    titled = [(scorer_title(author, baseline=of["baseline"]), of) for author, of in ranked]
    sides: list[tuple[str, str, Figures]] = [(title, of["rubric"], of) for title, of in titled]
    if guess := next((of["constant_guess"] for _, of in titled if of["constant_guess"]), None):
        scale = Scale.parse(experts["scale"])
        always = gettext("always “%(value)s”") % {"value": numbers.on_scale(guess["value"], scale)}
        sides.append((gettext("best constant guess"), always, guess))
    sides.append((gettext("experts among themselves"), "", experts))
    rows = [row for name in STATISTICS if (row := _row(name, [of for _, _, of in sides]))]
    first = [row for row in rows if row.first]
    columns = tuple(
        Column(title, detail, of["n"], tuple(_notes(of)), tuple(row.values[at] for row in first))
        for at, (title, detail, of) in enumerate(sides)
    )
    title = experts["title"]["ko" if get_language() == "ko" else "en"]
    plots = tuple(judge_plots(who, of, unfolded=at == 0) for at, (who, of) in enumerate(titled))
    return MetricAgreement(title, columns, tuple(rows), len(columns) > MOST_COLUMNS, tuple(_ceiling(titled)), plots)


def _notes(of: Figures) -> Iterator[str]:
    if of.get("sampling") == "weighted":
        yield gettext("weighted by the probability of being drawn")
    if of.get("sampling") == "unknown":
        yield gettext("unweighted: it is not known how the answers were chosen")
    if of.get("left_out"):
        yield gettext("%(count)d answers of unknown sampling left out") % {"count": of["left_out"]}
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
