"""One run beside the baseline: the verdict in words, a plot, the tests in a table, and the questions that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.wording import numbers
from evaluation.wording.categories import category_name
from evaluation.wording.markdown import language_of
from review.charts.differences import Difference, Differences, differences
from review.comparisons.difference import MetricDifference, QuestionChange, RunDifference
from review.comparisons.verdict_sentences import corrected_sentence, judge_only_sentence
from review.reports.figure import Figure
from review.reports.figure_notes import why_withheld
from review.statistics.paired_tests.paired import PairedDifference
from review.statistics.paired_tests.tests import McNemar

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


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of the table: texts, empty where there is nothing to say."""

    title: str
    scale: str
    difference: str
    interval: str
    p: str
    wins: int
    losses: int
    ties: int
    detectable: str
    passes: str
    corrected: str
    corrected_interval: str
    corrected_reason: str
    flags: str
    sure: bool


@dataclass(frozen=True, slots=True)
class ChangeLink:
    """A question that changed, with a link to both answers side by side."""

    question: str
    language: str
    category: str
    change: str
    href: str


@dataclass(frozen=True, slots=True)
class PairCard:
    """One run beside the baseline. ``verdict`` says in a sentence what the overall difference shows, ``corrected`` what
    the corrected scores say, empty where nobody rated."""

    title: str
    verdict: str
    corrected: str
    chart: Differences
    rows: tuple[Row, ...]
    n: int
    left_out: int
    weight: str
    worse: tuple[ChangeLink, ...]
    better: tuple[ChangeLink, ...]


def pair_card(one: RunDifference, run_names: Mapping[int, str]) -> PairCard:
    """The card of one comparison."""
    names = {"run": run_names[one.run_id], "baseline": run_names[one.baseline_id]}
    overall = _row(gettext("Overall score"), "", one.overall, None, one.passes, one.corrected, (), plus=True)
    return PairCard(
        title=gettext("%(run)s minus %(baseline)s") % names,
        verdict=judge_only_sentence(one, names),
        corrected=corrected_sentence(one, names),
        chart=_chart(one),
        rows=(overall, *(_metric_row(metric) for metric in one.metrics)),
        n=one.overall.n if one.overall else 0,
        left_out=one.overall.only_ours + one.overall.only_baseline if one.overall else 0,
        weight="" if one.weight > 1 - 1e-9 else numbers.plain(one.weight),
        worse=tuple(_change(change, one) for change in one.worse),
        better=tuple(_change(change, one) for change in one.better),
    )


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


def _metric_row(one: MetricDifference) -> Row:
    title = one.title.in_language(get_language() or "en")
    flags = [gettext("another %(kind)s") % {"kind": KINDS[kind]} for kind in one.differs]
    if one.lower_is_better:
        flags.insert(0, gettext("less is better"))
    return _row(title, numbers.scale_name(one.scale), one.paired, one.p_holm, one.passes, one.corrected, flags)


def _row(
    title: str,
    scale: str,
    paired: PairedDifference | None,
    p_holm: float | None,
    passes: McNemar | None,
    corrected: Figure,
    flags: Sequence[str],
    *,
    plus: bool = False,
) -> Row:
    p = (paired.p_value if plus else p_holm) if paired else None
    return Row(
        title=title,
        scale=scale,
        difference=numbers.signed(paired.value, 3) if paired else "",
        interval=numbers.interval(paired.low, paired.high, 3) if paired else "",
        p=_p(p),
        wins=paired.wins if paired else 0,
        losses=paired.losses if paired else 0,
        ties=paired.ties if paired else 0,
        detectable=numbers.plain(paired.detectable, 3) if paired and paired.detectable is not None else "",
        passes=f"+{passes.gained} / {numbers.plain(-passes.lost, 0)}, {_p(passes.p_value)}" if passes else "",
        corrected=numbers.signed(corrected.value, 3) if corrected.value is not None else "",
        corrected_interval=numbers.interval(corrected.low, corrected.high, 3),
        corrected_reason="" if corrected.value is not None else why_withheld(corrected),
        flags=", ".join(flags),
        sure=p is not None and p < SURE,
    )


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _change(change: QuestionChange, one: RunDifference) -> ChangeLink:
    query = urlencode({"runs": f"{one.baseline_id},{one.run_id}", "question": change.question_id}, safe=",")
    return ChangeLink(
        question=change.question,
        language=language_of(change.question),
        category=category_name(change.category),
        change=numbers.signed(change.change),
        href=f"{reverse('run-compare-answers')}?{query}",
    )
