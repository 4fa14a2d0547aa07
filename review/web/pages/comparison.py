"""The page that compares runs (what differs in their versions, each beside the first, all in order), and the one with
two answers to a question side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.scales import Scale
from evaluation.models import Run
from evaluation.wording import numbers
from evaluation.wording.markdown import language_of
from review.charts.differences import Difference, Differences, differences
from review.comparisons.answers import AnswerPair
from review.comparisons.choosing import Side
from review.comparisons.difference import MetricDifference, QuestionChange, RunDifference
from review.comparisons.order import Order
from review.comparisons.verdict_sentences import corrected_sentence, judge_only_sentence
from review.comparisons.versions import differing_versions
from review.comparisons.whole import Comparison
from review.evidence.answers import RunAnswer
from review.reports.figure import Figure
from review.statistics.paired_tests.paired import PairedDifference
from review.statistics.paired_tests.ranking import Ranked
from review.statistics.paired_tests.tests import McNemar
from review.web.pages.comparison_systems import SystemsCard, systems_card

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
SURE = 0.05
MOST_TURNS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of the table; ``p`` is adjusted over the metrics. ``flags`` say what to mind."""

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
        return self.p is not None and self.p < SURE


@dataclass(frozen=True, slots=True)
class PairCard:
    """One run beside the baseline. ``verdict`` says in a sentence what the overall difference shows, ``corrected`` what
    the corrected scores say, empty where nobody rated. ``weight`` is that of the common parts, empty where they are
    all. ``worse`` and ``better`` are questions with the address of both answers side by side."""

    found: RunDifference
    title: str
    verdict: str
    corrected: str
    chart: Differences
    rows: tuple[Row, ...]
    weight: str
    worse: tuple[tuple[QuestionChange, str], ...]
    better: tuple[tuple[QuestionChange, str], ...]


@dataclass(frozen=True, slots=True)
class OrderCard:
    """The runs in order with their names, how sure it is, and how far it hangs on the weights."""

    order: Order
    places: tuple[tuple[Ranked, str], ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Everything that ``review/compare.html`` shows; without a second run only the choice. ``choices`` are the runs
    that could be compared, ``flags`` the kinds of versions in which the runs differ, with each run's."""

    choices: Sequence[Run]
    chosen: Collection[int]
    flags: tuple[tuple[str, tuple[str, ...]], ...]
    names: tuple[tuple[int, str], ...]
    pairs: tuple[PairCard, ...]
    order: OrderCard | None
    systems: SystemsCard


@dataclass(frozen=True, slots=True)
class CompareAnswersPage:
    """The answers of two runs to one question, each pair with the language of its texts; ``first`` is one of them."""

    ours: Run
    baseline: Run
    first: RunAnswer
    pairs: tuple[tuple[AnswerPair, str], ...]


def compare_page(found: Comparison, others: Sequence[Run]) -> ComparePage:
    """The page of a comparison; ``others`` are the runs that could be compared."""
    names = _names(found.sides)
    reports = [side.report for side in found.sides]
    return ComparePage(
        choices=others,
        chosen={side.run_id for side in found.sides},
        flags=tuple((str(KINDS[kind]), tuple(versions)) for kind, versions in differing_versions(reports).items()),
        names=names,
        pairs=tuple(_pair_card(one, dict(names)) for one in found.differences),
        order=_order_card(found.order, dict(names)) if found.order else None,
        systems=systems_card(reports, dict(names)),
    )


def compare_answers_page(ours: Run, baseline: Run, pairs: Sequence[AnswerPair]) -> CompareAnswersPage:
    """The page of at least one pair of answers."""
    told = tuple((one, language_of("".join(stretch.text for stretch in one.stretches))) for one in pairs)
    return CompareAnswersPage(ours, baseline, pairs[0].ours, told)


def _names(compared: Sequence[Side]) -> tuple[tuple[int, str], ...]:
    """The runs as lists call them; with their numbers where several were given one name."""
    names = [side.report.header.name for side in compared]
    return tuple(
        (side.run_id, f"{name} (#{side.run_id})" if names.count(name) > 1 else name)
        for side, name in zip(compared, names, strict=True)
    )


def _pair_card(one: RunDifference, run_names: Mapping[int, str]) -> PairCard:
    names = {"run": run_names[one.run_id], "baseline": run_names[one.baseline_id]}
    p = one.overall.p_value if one.overall else None
    overall = Row(gettext("Overall score"), None, one.overall, p, one.passes, one.corrected)
    return PairCard(
        found=one,
        title=gettext("%(run)s minus %(baseline)s") % names,
        verdict=judge_only_sentence(one, names),
        corrected=corrected_sentence(one, names),
        chart=_chart(one),
        rows=(overall, *(_metric_row(metric) for metric in one.metrics)),
        weight="" if one.weight > 1 - 1e-9 else numbers.plain(one.weight),
        worse=tuple((change, _href(change, one)) for change in one.worse),
        better=tuple((change, _href(change, one)) for change in one.better),
    )


def _metric_row(one: MetricDifference) -> Row:
    flags = [gettext("another %(kind)s") % {"kind": KINDS[kind]} for kind in one.differs]
    if one.lower_is_better:
        flags.insert(0, gettext("less is better"))
    p = one.p_holm if one.paired else None
    title = one.title.in_language(get_language() or "en")
    return Row(title, one.scale, one.paired, p, one.passes, one.corrected, ", ".join(flags))


def _href(change: QuestionChange, one: RunDifference) -> str:
    query = urlencode({"runs": f"{one.baseline_id},{one.run_id}", "question": change.question_id}, safe=",")
    return f"{reverse('run-compare-answers')}?{query}"


def _chart(one: RunDifference) -> Differences:
    language = get_language() or "en"
    rows = [
        _drawn(gettext("Overall score"), one.overall, 1.0, "judge", gettext("judge only")),
        *_drawn_corrected(one.corrected),
        *(
            _drawn(metric.title.in_language(language), metric.paired, metric.scale.width, "plain-mark", "")
            for metric in one.metrics
            if metric.scale.kind != "seconds"
        ),
    ]
    return differences(rows)


def _drawn_corrected(figure: Figure) -> list[Difference]:
    if figure.value is None:
        return []
    text, interval = numbers.signed(figure.value, 3), numbers.interval(figure.low, figure.high, 3)
    title, note = gettext("Overall score"), gettext("corrected")
    return [Difference(title, figure.value, figure.low, figure.high, text, interval, shape="corrected", note=note)]


def _drawn(title: str, paired: PairedDifference | None, width: float, shape: str, note: str) -> Difference:
    if paired is None:
        return Difference(title, None, withheld=gettext("no common question"), note=note)
    low, high = (None if end is None else end / width for end in (paired.low, paired.high))
    text, interval = numbers.signed(paired.value / width, 3), numbers.interval(low, high, 3)
    return Difference(title, paired.value / width, low, high, text, interval, shape=shape, note=note)


def _order_card(order: Order, names: Mapping[int, str]) -> OrderCard:
    places = tuple((one, names[int(one.run)]) for one in order.ranking.order)
    return OrderCard(order, places, tuple(_weights(order, names)))


def _weights(order: Order, names: Mapping[int, str]) -> list[str]:
    found = order.sensitivity
    if found is None:
        return []
    sentence = gettext("With weights from half to twice those of the profile the order stays in %(share)s of cases.")
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
        remarks.append(gettext("No change of a single weight turns neighbours round."))
    return remarks
