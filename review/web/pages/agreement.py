"""Agreement in detail: for each metric every statistic of every judge, beside the experts and a constant guess."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import get_language, gettext

from evaluation.core.scales import Scale
from evaluation.models import Run
from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from review.web.pages.agreement_plots import JudgePlots, judge_plots
from review.web.pages.ceiling_table import CeilingRow, ceiling_rows
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
class AnchoringRow:
    """What became of a metric's first ratings after the judge was shown: counts, mean values and distances."""

    title: str
    n: int
    kept: int
    towards: int
    away: int
    initial: str
    final: str
    judge: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AgreementPage:
    """All metrics of a run that experts have rated. ``waiting``: intervals are still to be fetched."""

    run_id: int
    name: str
    metrics: tuple[MetricAgreement, ...]
    examples: bool
    waiting: bool
    variation: tuple[VariationCard, ...]
    anchoring: tuple[AnchoringRow, ...]


def agreement_page(run: Run, found: Figures, *, examples: bool, waiting: bool) -> AgreementPage:
    """The page of a run's agreement figures in the form of the contract, told apart by category."""
    metrics = tuple(
        _metric(experts, [(author, of[name]) for author, of in found["judges"].items() if name in of])
        for name, experts in found["experts"].items()
    )
    variation = variation_cards(found.get("variance", {}))
    moved = tuple(_anchoring(one) for one in found.get("anchoring", {}).values())
    return AgreementPage(run.pk, str(run), metrics, examples, waiting, variation, moved)


def _anchoring(one: Figures) -> AnchoringRow:
    title = one["title"]["ko" if get_language() == "ko" else "en"]
    means = (numbers.plain(one[name]) for name in ("initial", "final", "judge", "before", "after"))
    return AnchoringRow(title, one["n"], one["kept"], one["towards"], one["away"], *means)


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
    return MetricAgreement(title, columns, tuple(rows), len(columns) > MOST_COLUMNS, tuple(ceiling_rows(titled)), plots)


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
