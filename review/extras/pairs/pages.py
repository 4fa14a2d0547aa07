"""What the pages of comparisons side by side show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.forms import Form
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from evaluation.models import Run
from evaluation.runs.progress import Spending
from evaluation.wording import numbers
from evaluation.wording.markdown import language_of, render
from evaluation.wording.messages import explain_reason
from review.extras.pairs.figures import PairFigures, Preferred
from review.extras.pairs.making import Card
from review.extras.pairs.pairwise import METRIC
from review.models import Pair, PairSet, Preference
from review.web.pages.judges import cost_of_calls

PREFERRED = {
    -2.0: _("A much better"),
    -1.0: _("A better"),
    0.0: _("No difference"),
    1.0: _("B better"),
    2.0: _("B much better"),
}


@dataclass(frozen=True, slots=True)
class Voice:
    """What one source said of a pair; ``metric`` is empty where there is one alone."""

    name: str
    judge: bool
    metric: str
    value: str
    reason: str
    language: str


@dataclass(frozen=True, slots=True)
class PairVoices:
    """A pair with everything said of it, people first. ``answers``: side, text and language of both."""

    question: str
    language: str
    answers: tuple[tuple[str, str, str], ...]
    voices: tuple[Voice, ...]


def pair_voices(pairs: Sequence[Pair], said: Sequence[Preference]) -> tuple[PairVoices, ...]:
    """The pairs in their order with the preferences of them that count."""
    by_pair: dict[int, list[Preference]] = {}
    for row in sorted(said, key=lambda row: (row.by_judge, row.metric, row.pk)):
        by_pair.setdefault(row.pair_id, []).append(row)
    several = len({row.metric for row in said}) > 1
    return tuple(
        PairVoices(
            question=pair.question_text,
            language=language_of(pair.question_text),
            answers=tuple(
                (side, words, language_of(words)) for side, words in (("A", pair.text_a), ("B", pair.text_b))
            ),
            voices=tuple(_voice(row, several=several) for row in by_pair.get(pair.pk, ())),
        )
        for pair in pairs
    )


def _voice(row: Preference, *, several: bool) -> Voice:
    reason = row.reason if row.value is not None else ""
    return Voice(
        name=row.rater.known_as if row.rater else row.author,
        judge=row.by_judge,
        metric=row.metric if several else "",
        value=_value(row),
        reason=reason,
        language=language_of(reason),
    )


def _value(row: Preference) -> str:
    if row.value is None:
        return explain_reason(row.failure) or gettext("no value")
    return str(PREFERRED[row.value]) if row.value in PREFERRED else numbers.signed(row.value)


@dataclass(frozen=True, slots=True)
class PairRow:
    """A comparison in the list; ``mine`` where the reader rates in it."""

    pair_set: PairSet
    size: int
    rated: int
    mine: bool

    @property
    def left(self) -> bool:
        """Whether the reader has something left to rate."""
        return self.mine and self.pair_set.closed_at is None and self.rated < self.size


@dataclass(frozen=True, slots=True)
class PairListPage:
    """The list; ``leads`` tells how to make one."""

    rows: tuple[PairRow, ...]
    leads: bool


@dataclass(frozen=True, slots=True)
class NewPairsPage:
    """The form for comparing a run with another one."""

    run: Run
    form: Form


@dataclass(frozen=True, slots=True)
class Side:
    """An answer on its side; ``html`` is sanitised."""

    name: str
    title: str
    language: str
    html: SafeString


@dataclass(frozen=True, slots=True)
class RatePage:
    """A pair to rate, ``card`` being none when all are rated; ``last`` is the one rated before. It names no system."""

    pair_set: PairSet
    card: Card | None
    last: int | None
    problems: tuple[str, ...] = ()

    @property
    def sides(self) -> tuple[Side, ...]:
        """Both answers as they are shown."""
        if self.card is None:
            return ()
        texts = (("left", gettext("Left"), self.card.left), ("right", gettext("Right"), self.card.right))
        return tuple(Side(name, title, language_of(text), render(text)) for name, title, text in texts)

    @property
    def language(self) -> str:
        """The language of the question."""
        return language_of(self.card.pair.question_text) if self.card else ""

    @property
    def choices(self) -> tuple[tuple[int, str, str], ...]:
        """Value, key and text of the five preferences, from left to right."""
        return (
            (-2, "1", gettext("Left much better")),
            (-1, "2", gettext("Left better")),
            (0, "3", gettext("No difference")),
            (1, "4", gettext("Right better")),
            (2, "5", gettext("Right much better")),
        )


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What one source prefers: shares of A, ties and B in percent for the bar; of a judge its agreement with the
    experts and what its calls cost."""

    name: str
    judge: bool
    said: Preferred
    a: int
    ties: int
    b: int
    agreement: str = ""
    orders: str = ""
    cost: str = ""

    @property
    def b_from(self) -> int:
        """Where the share of B begins in the bar; rounding may leave a gap."""
        return 100 - self.b


@dataclass(frozen=True, slots=True)
class MetricTable:
    """The sources of one metric, experts first."""

    name: str
    rows: tuple[SourceRow, ...]
    raters: str
    among: str


@dataclass(frozen=True, slots=True)
class PairSetPage:
    """What came of a comparison. ``verdict`` says it in a sentence; ``withheld`` why it is not told yet; ``people`` are
    reviewers with the number of pairs they have compared."""

    pair_set: PairSet
    system_a: str
    system_b: str
    size: int
    member: bool
    verdict: str
    tables: tuple[MetricTable, ...]
    withheld: str
    people: tuple[tuple[str, int], ...]
    pairs: tuple[PairVoices, ...]
    back: str
    on: str


def pair_set_page(
    found: PairSet,
    figures: Mapping[str, PairFigures],
    spent: Mapping[str, Spending],
    people: tuple[tuple[str, int], ...],
    *,
    member: bool,
    withheld: str = "",
    pairs: tuple[PairVoices, ...] = (),
    back: str = "",
    on: str = "",
) -> PairSetPage:
    """The page of a comparison for its leads; ``spent`` is by judge, ``pairs`` are those of this page of them."""
    systems = list(found.pairs.order_by().values_list("system_a", "system_b").distinct()[:2])
    one = systems[0] if len(systems) == 1 else ("", "")
    tables = tuple(_table(each, spent) for each in figures.values())
    first = next(iter(figures.values()), None)
    return PairSetPage(
        pair_set=found,
        system_a=one[0],
        system_b=one[1],
        size=found.pairs.count(),
        member=member,
        verdict=_verdict(first.experts, one[0] or gettext("A"), one[1] or gettext("B")) if first else "",
        tables=tables,
        withheld=withheld,
        people=people,
        pairs=pairs,
        back=back,
        on=on,
    )


def _verdict(experts: Preferred, a: str, b: str) -> str:
    if not experts.n:
        return ""
    if experts.low is not None and experts.high is not None and (experts.low > 0 or experts.high < 0):
        better = b if experts.low > 0 else a
        return gettext("The experts prefer %(system)s on questions like these.") % {"system": better}
    return gettext("Whom the experts prefer cannot be told yet: the interval holds no difference.")


def _table(figures: PairFigures, spent: Mapping[str, Spending]) -> MetricTable:
    rows = [_row(gettext("Experts"), figures.experts)] if figures.experts.n else []
    rows += [_row(name, said, **_of_judge(name, figures, spent.get(name))) for name, said in figures.judges.items()]
    alpha = (figures.among_experts or {}).get("krippendorff_alpha_interval")
    several = len(figures.raters)
    return MetricTable(
        name=gettext("Preference") if figures.metric == METRIC else figures.metric,
        rows=tuple(rows),
        raters=ngettext("%(count)d person", "%(count)d people", several) % {"count": several},
        among=_among(alpha),
    )


def _among(alpha: float | None) -> str:
    if alpha is None:
        return ""
    return gettext("agreement among them: alpha %(alpha)s") % {"alpha": numbers.plain(alpha)}


def _row(name: str, said: Preferred, **of_judge: Any) -> SourceRow:
    total = max(said.n, 1)
    a, ties, b = (round(100 * count / total) for count in (said.a, said.ties, said.b))
    return SourceRow(name, judge=bool(of_judge), said=said, a=a, ties=ties, b=b, **of_judge)


def _of_judge(name: str, figures: PairFigures, spent: Spending | None) -> dict[str, str]:
    """What a row says of a judge beside its preferences."""
    agreement, orders = "", ""
    found, share = figures.agreement[name], figures.disagreeing_orders[name]
    if found.get("spearman") is not None:
        told = {"r": numbers.plain(found["spearman"]), "n": found["n"]}
        agreement = gettext("rank correlation %(r)s over %(n)d pairs") % told
    if share is not None:
        orders = gettext("changes sides with the order in %(share)s of the pairs") % {"share": numbers.share(share)}
    return {"agreement": agreement, "orders": orders, "cost": cost_of_calls(spent) if spent else ""}
