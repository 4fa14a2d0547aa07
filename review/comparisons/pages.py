"""View models of the comparison page: differing versions, differences, ranking, and tables by system."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import TextChoices
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.metric_specs import Direction
from evaluation.core.scales import Scale
from evaluation.messages import numbers
from evaluation.messages.markdown import language_of
from evaluation.models import Run
from review.calibration.drift import JudgeShift
from review.charts.forest import Difference, Differences, differences
from review.comparisons.answers import AnswerPair, answer_pairs
from review.comparisons.comparison import ComparisonSummary
from review.comparisons.difference import MetricDifference, RunDifference, RunOrder, ScoreChange
from review.comparisons.values import differing_versions
from review.comparisons.verdict import corrected_verdict, family_sentence, lead_sentence, next_sentence, other_sentence
from review.evidence.answers import RunAnswer
from review.releases.pages import ReleaseCard, release_card
from review.reports.category_cards import profile_card
from review.reports.figure import Figure, Withheld
from review.reports.profile_section import ClassShare, ClassTable, Spread
from review.reports.report import Report
from review.reports.retrieval import unrated_in_words
from review.statistics.paired_tests.family import ERROR_RATE
from review.statistics.paired_tests.paired import McNemar, PairedDifference
from review.statistics.paired_tests.ranking import RankedRun


class ClassCell(NamedTuple):
    """Number of answers with a label; ``share`` is of all answers, ``None`` within one category."""

    answers: int
    share: ClassShare | None = None


class ClassLine(NamedTuple):
    """A system's answers in a category; the category is empty for all answers."""

    category: str
    system: str
    cells: tuple[ClassCell, ...]


class ClassesBySystem(NamedTuple):
    """A class metric of all systems, by category."""

    title: str
    labels: tuple[str, ...]
    lines: tuple[ClassLine, ...]


class SystemsCard(NamedTuple):
    """Tables by system; ``empty`` if no profile has classes or a spread."""

    classes: tuple[ClassesBySystem, ...]
    spread: tuple[tuple[str, Spread], ...]
    empty: bool


def systems_card(reports: Sequence[Report], run_names: Mapping[int, str]) -> SystemsCard:
    """Build the tables by system. Run names distinguish several runs of one system."""
    systems = [report.header.system for report in reports]
    names = [
        run_names[report.header.run_id] if systems.count(system) > 1 else system
        for report, system in zip(reports, systems, strict=True)
    ]
    cards = list(zip(names, [profile_card(report) for report in reports], strict=True))
    tables: dict[str, list[tuple[str, ClassTable]]] = {}
    for name, card in cards:
        for title, table in card.classes:
            tables.setdefault(title, []).append((name, table))
    classes = tuple(_class_table(title, class_tables) for title, class_tables in tables.items())
    spread = _sorted_spread([(name, row) for name, card in cards for row in card.spread])
    return SystemsCard(classes, spread, empty=not (classes or spread))


def _class_table(title: str, tables: Sequence[tuple[str, ClassTable]]) -> ClassesBySystem:
    labels = tuple(dict.fromkeys(label for _name, table in tables for label in table.labels))
    lines = [ClassLine("", name, _class_cells(table, labels)) for name, table in tables]
    for category in dict.fromkeys(category for _name, table in tables for category in table.categories):
        for name, table in tables:
            # A system without answers in the category has no line.
            if category in table.categories:
                counts = table.categories[category]
                lines.append(ClassLine(category, name, tuple(ClassCell(counts.get(label, 0)) for label in labels)))
    return ClassesBySystem(title, labels, tuple(lines))


def _class_cells(table: ClassTable, labels: Sequence[str]) -> tuple[ClassCell, ...]:
    cells = {share.label: ClassCell(share.count, share) for share in table.total}
    return tuple(cells.get(label, ClassCell(0)) for label in labels)


def _sorted_spread(rows: Sequence[tuple[str, Spread]]) -> tuple[tuple[str, Spread], ...]:
    """Sort rows by category, in order of first appearance."""
    order = list(dict.fromkeys(row.category for _name, row in rows))
    return tuple(sorted(rows, key=lambda pair: order.index(pair[1].category)))


VERSION_KINDS: dict[str, str | Promise] = {
    "question_set": _("question set"),
    "profile": _("profile"),
    "judge": _("judge"),
    "served_model": _("served model"),
    "rubric": _("rubric"),
    "method": _("scoring method"),
    "k": _("number of passages (k)"),
    "evaluation_type": _("evaluation type"),
    "metrics": _("metrics"),
}
MAX_TURNS = 3


class DifferenceRow(NamedTuple):
    """A row of the difference table; ``p`` is adjusted over all tests, ``None`` for untested metrics."""

    title: str
    scale: Scale | None
    paired: PairedDifference | None
    p: float | None
    passes: McNemar | None
    corrected: Figure
    flags: str = ""

    @property
    def is_significant(self) -> bool:
        return self.p is not None and self.p <= ERROR_RATE


class Show(TextChoices):
    """Questions of a comparison, by how their score changed."""

    ALL = "all", _("All")
    WORSE = "worse", _("Worse")
    BETTER = "better", _("Better")
    CHANGED = "changed", _("Different answers")

    def matches(self, change: ScoreChange) -> bool:
        if self is Show.WORSE:
            return change.change < 0
        if self is Show.BETTER:
            return change.change > 0
        return self is Show.ALL or change.text_differs


class ChangeCount(NamedTuple):
    """Number of questions that a filter shows."""

    show: Show
    questions: int


def change_counts(run_difference: RunDifference) -> tuple[ChangeCount, ...]:
    return tuple(ChangeCount(show, sum(map(show.matches, run_difference.changes))) for show in Show)


class AnswersRow(NamedTuple):
    """A question with its scores and the answers of both runs."""

    change: ScoreChange
    pairs: Sequence[AnswerPair]
    language: str

    @property
    def question(self) -> RunAnswer:
        return self.pairs[0].current


class AnswersCard(NamedTuple):
    """Answers of two runs side by side: the chosen filter, one page of questions, and the numbers of the pages
    around."""

    show: Show
    rows: Sequence[AnswersRow]
    previous_page: int
    next_page: int


QUESTIONS_PER_PAGE = 8


def answers_card(
    run_difference: RunDifference, current: Run, baseline: Run, show: Show, page_number: int
) -> AnswersCard:
    """Build one page of answers side by side, the largest change first."""
    changes = sorted(
        filter(show.matches, run_difference.changes), key=lambda change: (-abs(change.change), change.question_id)
    )
    start = (page_number - 1) * QUESTIONS_PER_PAGE
    shown = changes[start : start + QUESTIONS_PER_PAGE]
    pairs = answer_pairs(current, baseline, [change.question_id for change in shown], with_metrics=False)
    rows = [
        AnswersRow(change, question_pairs, language_of("".join(text.text for text in question_pairs[0].stretches)))
        for change in shown
        if (question_pairs := pairs.get(change.question_id))
    ]
    has_more = len(changes) > start + QUESTIONS_PER_PAGE
    return AnswersCard(show, rows, page_number - 1, page_number + 1 if has_more else 0)


class PairCard(NamedTuple):
    """A run against the baseline.

    ``lead`` is the most trustworthy verdict, ``secondary`` the judge-only one and why it does not lead, ``next_step``
    the advice. ``shows_secondary``: there is no verdict by experts that the judge could contradict. ``weight`` is that
    of the common parts, empty if all parts are common. ``shifts`` state the judge's part of metric changes. ``counts``
    are questions by kind of change. ``release`` describes changed answers of runs over the same questions."""

    run_difference: RunDifference
    title: str
    lead: str
    secondary: str
    next_step: str
    chart: Differences
    rows: tuple[DifferenceRow, ...]
    weight: str
    shifts: tuple[str, ...]
    shows_secondary: bool
    counts: tuple[ChangeCount, ...]
    release: ReleaseCard | None


class OrderCard(NamedTuple):
    """Ranked runs with their names, and remarks on the sensitivity to weights."""

    order: RunOrder
    places: tuple[tuple[RankedRun, str], ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Context of ``review/comparisons/compare.html``; with a single run only the form.

    ``choices`` are comparable runs; ``flags`` the kinds of versions that differ, with each run's version. ``family``
    describes the tests; ``unrated`` says what retrieval metrics leave out."""

    choices: Sequence[Run]
    chosen: Collection[int]
    flags: tuple[tuple[str, tuple[str, ...]], ...]
    names: tuple[tuple[int, str], ...]
    pairs: tuple[PairCard, ...]
    family: str
    order: OrderCard | None
    systems: SystemsCard
    unrated: tuple[str, ...]


def compare_page(comparison: ComparisonSummary, choices: Sequence[Run]) -> ComparePage:
    """Build the page of a comparison; ``choices`` are comparable runs."""
    reports = comparison.reports
    names = _unique_names(reports)
    return ComparePage(
        choices=choices,
        chosen={report.header.run_id for report in reports},
        flags=tuple(
            (str(VERSION_KINDS[kind]), tuple(versions)) for kind, versions in differing_versions(reports).items()
        ),
        names=names,
        pairs=tuple(_pair_card(run_difference, dict(names)) for run_difference in comparison.differences),
        family=family_sentence(comparison.family) if comparison.differences else "",
        order=_order_card(comparison.order, dict(names)) if comparison.order else None,
        systems=systems_card(reports, dict(names)),
        unrated=tuple(
            dict.fromkeys(unrated_in_words(run_report.retrieval) for run_report in reports if run_report.retrieval)
        ),
    )


def _unique_names(reports: Sequence[Report]) -> tuple[tuple[int, str], ...]:
    """Return the names of runs by id, with the id if a name occurs several times."""
    names = [report.header.name for report in reports]
    return tuple(
        (report.header.run_id, f"{name} (#{report.header.run_id})" if names.count(name) > 1 else name)
        for report, name in zip(reports, names, strict=True)
    )


def _pair_card(run_difference: RunDifference, run_names: Mapping[int, str]) -> PairCard:
    names = {"run": run_names[run_difference.run_id], "baseline": run_names[run_difference.baseline_id]}
    overall = DifferenceRow(
        gettext("Overall score"),
        None,
        run_difference.overall,
        run_difference.p_family,
        run_difference.passes,
        run_difference.corrected,
    )
    return PairCard(
        run_difference=run_difference,
        title=gettext("%(run)s compared with %(baseline)s") % names,
        lead=lead_sentence(run_difference, names),
        secondary=other_sentence(run_difference, names),
        next_step=next_sentence(run_difference, names),
        chart=_chart(run_difference),
        rows=(overall, *(_metric_row(metric) for metric in run_difference.metrics)),
        weight="" if run_difference.weight > 1 - 1e-9 else numbers.format_number(run_difference.weight),
        shifts=tuple(_shift_sentence(metric) for metric in run_difference.metrics if metric.system_shift),
        shows_secondary=corrected_verdict(run_difference).reason == Withheld.NOT_REVIEWED,
        counts=change_counts(run_difference),
        release=release_card(run_difference.release) if run_difference.release else None,
    )


def _shift_sentence(metric: MetricDifference) -> str:
    if metric.judge_shift is None or metric.system_shift is None or metric.paired is None:
        return ""
    text = gettext(
        "%(metric)s changed by %(whole)s: %(judge)s from judge drift (measured on %(count)d anchors "
        "judged for both runs) and %(system)s from the system."
    )
    return text % {
        "metric": metric.title.in_language(get_language() or "en"),
        "whole": numbers.format_signed(metric.paired.value),
        "judge": _shift_text(metric.judge_shift),
        "count": metric.judge_shift.answers,
        "system": _shift_text(metric.system_shift),
    }


def _shift_text(shift: JudgeShift) -> str:
    ends = numbers.format_interval(shift.low, shift.high)
    return f"{numbers.format_signed(shift.change)} ({ends})" if ends else numbers.format_signed(shift.change)


_DIRECTION_FLAGS = {
    Direction.LOWER: _("lower is better"),
    Direction.NONE: _("neither higher nor lower is better; better and worse mean higher and lower"),
}


def _metric_row(metric: MetricDifference) -> DifferenceRow:
    flags = [gettext("different %(kind)s") % {"kind": VERSION_KINDS[kind]} for kind in metric.differs]
    if metric.direction in _DIRECTION_FLAGS:
        flags.insert(0, str(_DIRECTION_FLAGS[metric.direction]))
    if metric.labels_missing:
        flags.insert(0, gettext("unlabelled passages count as misses"))
    title = metric.title.in_language(get_language() or "en")
    return DifferenceRow(
        title, metric.scale, metric.paired, metric.p_family, metric.passes, metric.corrected, ", ".join(flags)
    )


def _chart(run_difference: RunDifference) -> Differences:
    language = get_language() or "en"
    rows = [
        *_corrected_bar(gettext("Overall score"), run_difference.corrected),
        _difference_bar(gettext("Overall score"), run_difference.overall, 1.0, "judge", gettext("judge only")),
        *(
            row
            for metric in run_difference.metrics
            if metric.scale.kind != "seconds"
            for row in _metric_bars(metric, language)
        ),
    ]
    return differences(rows)


def _metric_bars(metric: MetricDifference, language: str) -> list[Difference]:
    title = metric.title.in_language(language)
    note = gettext("labels only") if metric.labels_missing else ""
    corrected = _corrected_bar(title, metric.corrected) if metric.labels_missing else []
    return [*corrected, _difference_bar(title, metric.paired, metric.scale.width, "plain-mark", note)]


def _corrected_bar(title: str, figure: Figure) -> list[Difference]:
    if figure.value is None:
        return []
    text, interval = numbers.format_signed(figure.value, 3), numbers.format_interval(figure.low, figure.high, 3)
    note = gettext("corrected")
    return [Difference(title, figure.value, figure.low, figure.high, text, interval, shape="corrected", note=note)]


def _difference_bar(title: str, paired: PairedDifference | None, width: float, shape: str, note: str) -> Difference:
    if paired is None:
        return Difference(title, None, withheld=gettext("no common questions"), note=note)
    low, high = (None if end is None else end / width for end in (paired.low, paired.high))
    text, interval = numbers.format_signed(paired.value / width, 3), numbers.format_interval(low, high, 3)
    return Difference(title, paired.value / width, low, high, text, interval, shape=shape, note=note)


def _order_card(order: RunOrder, names: Mapping[int, str]) -> OrderCard:
    places = tuple((ranked, names[int(ranked.run)]) for ranked in order.ranked)
    return OrderCard(order, places, tuple(_weight_remarks(order, names)))


def _weight_remarks(order: RunOrder, names: Mapping[int, str]) -> list[str]:
    sensitivity = order.sensitivity
    if sensitivity is None:
        return []
    sentence = gettext("The ranking holds in %(share)s of cases when each weight is halved to doubled.")
    remarks = [sentence % {"share": numbers.format_share(sensitivity.holds)}]
    for turn in sensitivity.turns[:MAX_TURNS]:
        facts = {
            "ahead": names[int(turn.ahead)],
            "behind": names[int(turn.behind)],
            "part": turn.part,
            "weight": numbers.format_number(turn.weight),
            "at": numbers.format_number(turn.at),
        }
        sentence = gettext("%(behind)s would overtake %(ahead)s if %(part)s weighed %(at)s instead of %(weight)s.")
        remarks.append(sentence % facts)
    if not sensitivity.turns:
        remarks.append(gettext("Changing any one weight would not swap neighbouring runs."))
    return remarks
