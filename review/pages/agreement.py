"""Agreement in detail: for each metric every statistic of every judge, beside the experts among themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import get_language, gettext

from evaluation.messages import explain_reason
from evaluation.runs.models import Run
from review.agreement.experts import ExpertAgreement
from review.agreement.pair import PairAgreement
from review.measures import Agreement, ExpertsMeasure, JudgeMeasure
from review.pages import numbers
from review.pages.statistic_names import FIRST, STATISTICS

PERCENT = {"exact", "within_one"}
HIDDEN = {"yes_no_only", "classes_have_no_order"}  # statistics that do not exist on a scale need no line


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
class Confusion:
    """How often experts (rows) and judge (columns) gave which level; a cell is its text and whether both agree."""

    title: str
    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A scorer: a judge or the experts among themselves. ``n`` counts the answers compared."""

    title: str
    n: int
    weighted: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """One metric: columns, rows and a confusion matrix for each judge."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[StatisticRow, ...]
    confusions: tuple[Confusion, ...]


@dataclass(frozen=True, slots=True)
class AgreementPage:
    """All metrics of a run that experts have rated."""

    run_id: int
    name: str
    metrics: tuple[MetricAgreement, ...]
    examples: bool


def agreement_page(run: Run, agreement: Agreement) -> AgreementPage:
    """The page of a run's agreement figures."""
    metrics = []
    for experts in agreement.experts:
        judges = [one for one in agreement.judges if one.metric == experts.metric]
        metrics.append(_metric(experts, sorted(judges, key=lambda one: (not one.primary, one.author))))
    return AgreementPage(run.pk, str(run), tuple(metrics), agreement.examples)


def scorer_title(one: JudgeMeasure) -> str:
    """Who is compared; the baseline always by that word."""
    if one.baseline:
        return gettext("offline baseline")
    return gettext("rule") if one.author == "rules" else one.author


def _metric(experts: ExpertsMeasure, judges: Sequence[JudgeMeasure]) -> MetricAgreement:
    sides: list[PairAgreement | ExpertAgreement] = [*(one.agreement for one in judges), experts.agreement]
    columns = [_column(scorer_title(one), one.agreement, one.sampling, one.left_out) for one in judges]
    columns.append(_column(gettext("experts among themselves"), experts.agreement, experts.sampling, experts.left_out))
    rows = [row for name in STATISTICS if (row := _row(name, sides))]
    return MetricAgreement(
        title=experts.title.in_language(get_language() or "en"),
        columns=tuple(columns),
        rows=tuple(rows),
        confusions=tuple(found for one in judges if (found := _confusion(one))),
    )


def _column(title: str, agreement: PairAgreement | ExpertAgreement, sampling: str, left_out: int) -> Column:
    notes = []
    if sampling == "weighted":
        notes.append(gettext("weighted by the probability of being drawn"))
    if sampling == "unknown":
        notes.append(gettext("unweighted: it is not known how the answers were chosen"))
    if left_out:
        notes.append(gettext("%(count)d answers of unknown sampling left out") % {"count": left_out})
    if agreement.warnings:
        notes.append(gettext("fewer than 20 independent questions: the intervals are rough"))
    return Column(title, agreement.n, sampling == "weighted", tuple(notes))


def _row(name: str, sides: Sequence[PairAgreement | ExpertAgreement]) -> StatisticRow | None:
    found = [side.statistics.get(name) for side in sides]
    if all(one is None or one.reason in HIDDEN for one in found):
        return None
    title, meaning = STATISTICS[name]
    values = tuple(_value(name, side) for side in sides)
    return StatisticRow(str(title), str(meaning), values, name in FIRST)


def _value(name: str, side: PairAgreement | ExpertAgreement) -> Value:
    found = side.statistics.get(name)
    if found is None:
        return Value("–", "", "")
    if found.value is None:
        return Value("–", "", explain_reason(found.reason))
    low, high = side.intervals.get(name, (None, None))
    if name in PERCENT:
        ends = "" if low is None or high is None else f"{numbers.share(low)}–{numbers.share(high)}"
        return Value(numbers.share(found.value), ends, "")
    text = numbers.signed(found.value) if name == "bias" else numbers.plain(found.value)
    return Value(text, numbers.interval(low, high), "")


def _confusion(one: JudgeMeasure) -> Confusion | None:
    matrix = one.agreement.confusion
    if matrix is None:
        return None
    labels = tuple(_label(label) for label in one.agreement.labels)
    decimals = 1 if one.sampling == "weighted" else 0
    rows = tuple(
        (labels[i], tuple((numbers.plain(cell, decimals), i == j) for j, cell in enumerate(row)))
        for i, row in enumerate(matrix)
    )
    return Confusion(scorer_title(one), labels, rows)


def _label(label: object) -> str:
    return f"{label:g}" if isinstance(label, int | float) else str(label)
