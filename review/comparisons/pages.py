"""The page that compares runs (what differs in their versions, each beside the first, all in order, source 001's tables
by system), and the one with two answers to a question side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.scales import Scale
from evaluation.messages import numbers
from evaluation.models import Run
from review.calibration.drift import Moved
from review.charts.forest import Difference, Differences, differences
from review.comparisons.difference import MetricDifference, Order, QuestionChange, RunDifference
from review.comparisons.values import differing_versions
from review.comparisons.verdict import family_sentence, lead_sentence, next_sentence, other_sentence
from review.comparisons.whole import Compared
from review.reports.category_cards import profile_card
from review.reports.figure import Figure
from review.reports.profile_section import ClassShare, ClassTable, Spread
from review.reports.report import Report
from review.reports.retrieval import unrated_in_words
from review.statistics.paired_tests.family import ERROR
from review.statistics.paired_tests.paired import McNemar, PairedDifference
from review.statistics.paired_tests.ranking import Ranked


class ClassCell(NamedTuple):
    """How many answers have a label; ``share`` of all answers, ``None`` within one category."""

    answers: int
    share: ClassShare | None = None


class ClassLine(NamedTuple):
    """A system's answers in a category, which is empty for all of them."""

    category: str
    system: str
    cells: tuple[ClassCell, ...]


class ClassesBySystem(NamedTuple):
    """A class metric of all systems, category by category."""

    title: str
    labels: tuple[str, ...]
    lines: tuple[ClassLine, ...]


class SystemsCard(NamedTuple):
    """The tables; ``spread`` are systems with their row, ``empty`` where no profile has classes or scores."""

    classes: tuple[ClassesBySystem, ...]
    spread: tuple[tuple[str, Spread], ...]
    empty: bool


def systems_card(reports: Sequence[Report], run_names: Mapping[int, str]) -> SystemsCard:
    """The card of the runs' reports. Runs of one system are told apart by their names."""
    systems = [report.header.system for report in reports]
    named = [
        run_names[report.header.run_id] if systems.count(system) > 1 else system
        for report, system in zip(reports, systems, strict=True)
    ]
    cards = list(zip(named, [profile_card(report) for report in reports], strict=True))
    tables: dict[str, list[tuple[str, ClassTable]]] = {}
    for name, card in cards:
        for title, table in card.classes:
            tables.setdefault(title, []).append((name, table))
    classes = tuple(_classes(title, found) for title, found in tables.items())
    spread = _spread([(name, row) for name, card in cards for row in card.spread])
    return SystemsCard(classes, spread, empty=not (classes or spread))


def _classes(title: str, tables: Sequence[tuple[str, ClassTable]]) -> ClassesBySystem:
    labels = tuple(dict.fromkeys(label for _name, table in tables for label in table.labels))
    lines = [ClassLine("", name, _shares(table, labels)) for name, table in tables]
    for category in dict.fromkeys(category for _name, table in tables for category in table.categories):
        for name, table in tables:
            if category in table.categories:  # nothing where the system answered no question of it
                counts = table.categories[category]
                lines.append(ClassLine(category, name, tuple(ClassCell(counts.get(label, 0)) for label in labels)))
    return ClassesBySystem(title, labels, tuple(lines))


def _shares(table: ClassTable, labels: Sequence[str]) -> tuple[ClassCell, ...]:
    told = {one.label: ClassCell(one.count, one) for one in table.total}
    return tuple(told.get(label, ClassCell(0)) for label in labels)


def _spread(rows: Sequence[tuple[str, Spread]]) -> tuple[tuple[str, Spread], ...]:
    """Category by category, in the order in which they come first."""
    order = list(dict.fromkeys(row.category for _name, row in rows))
    return tuple(sorted(rows, key=lambda one: order.index(one[1].category)))


KINDS: dict[str, str | Promise] = {
    "question_set": _("question set"),
    "profile": _("profile"),
    "judge": _("judge"),
    "served_model": _("model that answered"),
    "rubric": _("rubric"),
    "method": _("how judged values come about"),
    "k": _("number of passages (k)"),
    "evaluation_type": _("kind of evaluation"),
    "metrics": _("metrics"),
}
MOST_TURNS = 3


class Row(NamedTuple):
    """A figure of the table; ``p`` is adjusted over all tests, ``None`` for metrics without one. ``flags`` say what to
    mind."""

    title: str
    scale: Scale | None
    paired: PairedDifference | None
    p: float | None
    passes: McNemar | None
    corrected: Figure
    flags: str = ""

    @property
    def sure(self) -> bool:
        """Whether chance alone is an unlikely reason."""
        return self.p is not None and self.p <= ERROR


class PairCard(NamedTuple):
    """One run beside the baseline. ``lead`` is the verdict that can be trusted, ``other`` what the judge says alone and
    the reason why it does not lead, empty where no judge is in it, ``next`` what to do. ``weight`` is that of the
    common parts, empty where they are all. ``moved`` says of metrics what of their change is the judge's. ``worse`` and
    ``better`` are questions with the address of both answers side by side."""

    found: RunDifference
    title: str
    lead: str
    other: str
    next: str
    chart: Differences
    rows: tuple[Row, ...]
    weight: str
    moved: tuple[str, ...]
    worse: tuple[tuple[QuestionChange, str], ...]
    better: tuple[tuple[QuestionChange, str], ...]


class OrderCard(NamedTuple):
    """The runs in order with their names, how sure it is, and how far it hangs on the weights."""

    order: Order
    places: tuple[tuple[Ranked, str], ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Everything that ``review/comparisons/compare.html`` shows; without a second run only the choice. ``choices``
    are the runs that could be compared, ``flags`` the kinds of versions in which the runs differ, with each run's.
    ``family`` says over how many overall scores the error is held, ``unrated`` what retrieval metrics leave out."""

    choices: Sequence[Run]
    chosen: Collection[int]
    flags: tuple[tuple[str, tuple[str, ...]], ...]
    names: tuple[tuple[int, str], ...]
    pairs: tuple[PairCard, ...]
    family: str
    order: OrderCard | None
    systems: SystemsCard
    unrated: tuple[str, ...]


def compare_page(found: Compared, others: Sequence[Run]) -> ComparePage:
    """The page of a comparison; ``others`` are the runs that could be compared."""
    reports = found.reports
    names = _names(reports)
    return ComparePage(
        choices=others,
        chosen={report.header.run_id for report in reports},
        flags=tuple((str(KINDS[kind]), tuple(versions)) for kind, versions in differing_versions(reports).items()),
        names=names,
        pairs=tuple(_pair_card(one, dict(names)) for one in found.differences),
        family=family_sentence(found.family) if found.differences else "",
        order=_order_card(found.order, dict(names)) if found.order else None,
        systems=systems_card(reports, dict(names)),
        unrated=tuple(dict.fromkeys(unrated_in_words(one.retrieval) for one in reports if one.retrieval)),
    )


def _names(reports: Sequence[Report]) -> tuple[tuple[int, str], ...]:
    """The runs as lists call them; with their numbers where several were given one name."""
    names = [report.header.name for report in reports]
    return tuple(
        (report.header.run_id, f"{name} (#{report.header.run_id})" if names.count(name) > 1 else name)
        for report, name in zip(reports, names, strict=True)
    )


def _pair_card(one: RunDifference, run_names: Mapping[int, str]) -> PairCard:
    names = {"run": run_names[one.run_id], "baseline": run_names[one.baseline_id]}
    overall = Row(gettext("Overall score"), None, one.overall, one.p_family, one.passes, one.corrected)
    return PairCard(
        found=one,
        title=gettext("%(run)s minus %(baseline)s") % names,
        lead=lead_sentence(one, names),
        other=other_sentence(one, names),
        next=next_sentence(one, names),
        chart=_chart(one),
        rows=(overall, *(_metric_row(metric) for metric in one.metrics)),
        weight="" if one.weight > 1 - 1e-9 else numbers.plain(one.weight),
        moved=tuple(_moved(metric) for metric in one.metrics if metric.system_moved),
        worse=tuple((change, _href(change, one)) for change in one.worse),
        better=tuple((change, _href(change, one)) for change in one.better),
    )


def _moved(one: MetricDifference) -> str:
    if one.judge_moved is None or one.system_moved is None or one.paired is None:
        return ""
    text = gettext(
        "%(metric)s changed by %(whole)s. By %(judge)s the judge moved, as %(count)d anchors tell that were judged for "
        "both runs; %(system)s is left for the system."
    )
    return text % {
        "metric": one.title.in_language(get_language() or "en"),
        "whole": numbers.signed(one.paired.value),
        "judge": _with_interval(one.judge_moved),
        "count": one.judge_moved.answers,
        "system": _with_interval(one.system_moved),
    }


def _with_interval(one: Moved) -> str:
    ends = numbers.interval(one.low, one.high)
    return f"{numbers.signed(one.change)} ({ends})" if ends else numbers.signed(one.change)


def _metric_row(one: MetricDifference) -> Row:
    flags = [gettext("another %(kind)s") % {"kind": KINDS[kind]} for kind in one.differs]
    if one.lower_is_better:
        flags.insert(0, gettext("less is better"))
    if one.labels_missing:
        flags.insert(0, gettext("passages without a label count as misses"))
    title = one.title.in_language(get_language() or "en")
    return Row(title, one.scale, one.paired, one.p_family, one.passes, one.corrected, ", ".join(flags))


def _href(change: QuestionChange, one: RunDifference) -> str:
    query = urlencode({"runs": f"{one.baseline_id},{one.run_id}", "question": change.question_id}, safe=",")
    return f"{reverse('run-compare-answers')}?{query}"


def _chart(one: RunDifference) -> Differences:
    language = get_language() or "en"
    rows = [
        *_drawn_corrected(gettext("Overall score"), one.corrected),
        _drawn(gettext("Overall score"), one.overall, 1.0, "judge", gettext("judge only")),
        *(row for metric in one.metrics if metric.scale.kind != "seconds" for row in _drawn_metric(metric, language)),
    ]
    return differences(rows)


def _drawn_metric(one: MetricDifference, language: str) -> list[Difference]:
    title = one.title.in_language(language)
    note = gettext("labels alone") if one.labels_missing else ""
    corrected = _drawn_corrected(title, one.corrected) if one.labels_missing else []
    return [*corrected, _drawn(title, one.paired, one.scale.width, "plain-mark", note)]


def _drawn_corrected(title: str, figure: Figure) -> list[Difference]:
    if figure.value is None:
        return []
    text, interval = numbers.signed(figure.value, 3), numbers.interval(figure.low, figure.high, 3)
    note = gettext("corrected")
    return [Difference(title, figure.value, figure.low, figure.high, text, interval, shape="corrected", note=note)]


def _drawn(title: str, paired: PairedDifference | None, width: float, shape: str, note: str) -> Difference:
    if paired is None:
        return Difference(title, None, withheld=gettext("no common question"), note=note)
    low, high = (None if end is None else end / width for end in (paired.low, paired.high))
    text, interval = numbers.signed(paired.value / width, 3), numbers.interval(low, high, 3)
    return Difference(title, paired.value / width, low, high, text, interval, shape=shape, note=note)


def _order_card(order: Order, names: Mapping[int, str]) -> OrderCard:
    places = tuple((one, names[int(one.run)]) for one in order.ranked)
    return OrderCard(order, places, tuple(_weights(order, names)))


def _weights(order: Order, names: Mapping[int, str]) -> list[str]:
    found = order.sensitivity
    if found is None:
        return []
    sentence = gettext("The ranking holds in %(share)s of cases when each weight is halved to doubled.")
    remarks = [sentence % {"share": numbers.share(found.holds)}]
    for turn in found.turns[:MOST_TURNS]:
        facts = {
            "ahead": names[int(turn.ahead)],
            "behind": names[int(turn.behind)],
            "part": turn.part,
            "weight": numbers.plain(turn.weight),
            "at": numbers.plain(turn.at),
        }
        sentence = gettext("%(behind)s would overtake %(ahead)s if %(part)s weighed %(at)s instead of %(weight)s.")
        remarks.append(sentence % facts)
    if not found.turns:
        remarks.append(gettext("Changing any one weight would not swap neighbouring runs."))
    return remarks
