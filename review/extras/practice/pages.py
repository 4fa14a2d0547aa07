"""The pages of practice: where a person stands, an example to rate, and what its authors would have given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.registry import Bilingual
from evaluation.judging.catalogue import judge_metric
from evaluation.judging.rubric import shipped_rubric
from evaluation.wording.messages import category_name
from review.charts.scale_line import ScaleLine, scale_line
from review.extras.practice.items import FAMILY, METRICS, Levels, PracticeItem, Told, practice_items, tally, told
from review.extras.practice.progress import Practice
from review.ratings.card import CardMetric, KeyAction, LevelText
from review.web.forms.rating import CANNOT_JUDGE
from review.web.pages.choices import MetricField, metric_field
from review.web.pages.passages import PassageView
from review.web.pages.review_card import Keys, Text, text

NOT_HERE = (KeyAction.FLAG, KeyAction.ESCALATE, KeyAction.COMMENT, KeyAction.SUGGEST, KeyAction.UNDO)
NOTHING_GIVEN: Levels = {}


@dataclass(frozen=True, slots=True)
class Place:
    """An example in the list: its place, its question, and how many of its criteria were rated as expected; ``None``
    where it has not been rated."""

    number: int
    question: str
    rated: bool
    same: int


@dataclass(frozen=True, slots=True)
class TallyRow:
    """A criterion over all rated examples, as texts."""

    title: str
    same: str
    near: str
    leaning: str


@dataclass(frozen=True, slots=True)
class PracticeStart:
    """Where the person stands. ``following`` is the place of the next example, ``None`` when all are rated."""

    practice: Practice
    places: tuple[Place, ...]
    language: str
    total: int
    following: int | None
    tallies: tuple[TallyRow, ...]


@dataclass(frozen=True, slots=True)
class ToldView:
    """A criterion with both levels, what the expected level means, and why it is this one."""

    title: str
    own: str
    expected: str
    meaning: str
    why: str
    same: bool
    line: ScaleLine | None


@dataclass(frozen=True, slots=True)
class PracticePage:
    """An example on the screen of a reviewer, with ``fields`` to rate it by; or, after the person rated it, what the
    authors say of it: the criteria rated ``apart`` and ``alike``, and ``advice``. ``following`` is where skipping
    leads, ``None`` to the list."""

    number: int
    total: int
    rated: int
    category: str
    question: Text
    answer: Text
    references: tuple[Text, ...]
    contexts: tuple[PassageView, ...]
    keys: Keys
    following: int | None
    fields: tuple[MetricField, ...] = ()
    error: str = ""
    apart: tuple[ToldView, ...] = ()
    alike: tuple[ToldView, ...] = ()
    advice: str = ""


def start_page(practice: Practice) -> PracticeStart:
    """The list of examples with the person's way through them."""
    items = practice_items()
    return PracticeStart(
        practice=practice,
        places=tuple(_place(number, item, practice) for number, item in enumerate(items, start=1)),
        language=_language(),
        total=len(items),
        following=practice.next_after(0),
        tallies=tuple(
            TallyRow(
                _title(one.metric),
                _share(one.same, one.given),
                _share(one.near, one.given),
                _leaning(one.higher, one.lower),
            )
            for one in tally(items, practice.given)
            if one.given
        ),
    )


def card_page(
    number: int,
    practice: Practice,
    keys: Keys,
    *,
    given: Levels = NOTHING_GIVEN,
    missing: Collection[str] = (),
    error: str = "",
) -> PracticePage:
    """An example to be rated, with what a refused form held."""
    following = practice.next_after(number)
    return replace(
        _page(number, practice, _keys_here(keys)),
        fields=tuple(metric_field(_metric(name), _entered(name, given), missing=name in missing) for name in METRICS),
        following=None if following == number else following,
        error=error,
    )


def feedback_page(number: int, practice: Practice, keys: Keys) -> PracticePage:
    """The person's ratings of an example beside the expected ones, those that differ first."""
    item = practice_items()[number - 1]
    views = [_told(one) for one in told(item, practice.given[item.id])]
    return replace(
        _page(number, practice, keys),
        apart=tuple(one for one in views if not one.same),
        alike=tuple(one for one in views if one.same),
        advice=item.advice.in_language(_language()) if item.advice else "",
    )


def _page(number: int, practice: Practice, keys: Keys) -> PracticePage:
    item = practice_items()[number - 1]
    return PracticePage(
        number=number,
        total=len(practice_items()),
        rated=practice.rated,
        category=category_name(item.category),
        question=_text(item.question),
        answer=_text(item.answer),
        references=(_text(item.expected),),
        contexts=_passages(item),
        keys=keys,
        following=practice.next_after(number),
    )


def _language() -> str:
    return "ko" if (get_language() or "en").startswith("ko") else "en"


def _text(both: Bilingual) -> Text:
    """The text in the reader's language, which is what it is in: a number among Korean words is not English."""
    return replace(text(both.in_language(_language())), language=_language())


def _passages(item: PracticeItem) -> tuple[PassageView, ...]:
    language = _language()
    return tuple(
        PassageView(number, one.source.in_language(language), one.text.in_language(language), language, "", ())
        for number, one in enumerate(item.passages, start=1)
    )


def _title(metric: str) -> str:
    return judge_metric(metric).title.in_language(_language())


def _metric(name: str) -> CardMetric:
    """The criterion as the real screen asks for it, from the shipped rubric."""
    spec, asked = judge_metric(name), shipped_rubric(FAMILY, _language()).metric(name)
    return CardMetric(
        name=name,
        title=_title(name),
        review_form=spec.review_form.value,
        kind=spec.scale.kind.value,
        low=spec.scale.low,
        high=spec.scale.high,
        labels=(),
        question=asked.question.strip(),
        levels=tuple(LevelText(level.value, level.text) for level in asked.levels),
        language=_language(),
    )


def _entered(name: str, given: Levels) -> str:
    if name not in given:
        return ""
    level = given[name]
    return CANNOT_JUDGE if level is None else str(level)


def _keys_here(keys: Keys) -> Keys:
    """The person's keys without those that mean nothing in practice."""
    idle = {keys.labels[str(action)] for action in NOT_HERE}
    return replace(keys, lines=tuple(line for line in keys.lines if line[0] not in idle))


def _told(one: Told) -> ToldView:
    meanings: Mapping[float, str] = {level.value: level.text for level in _metric(one.metric).levels}
    return ToldView(
        title=_title(one.metric),
        own=gettext("cannot judge") if one.own is None else str(one.own),
        expected=str(one.expected.level),
        meaning=meanings[one.expected.level],
        why=one.expected.why.in_language(_language()),
        same=one.same,
        line=None
        if one.own is None
        else scale_line(judge_metric(one.metric).scale, expert=one.own, judge=one.expected.level),
    )


def _place(number: int, item: PracticeItem, practice: Practice) -> Place:
    rated = item.id in practice.given
    same = sum(one.same for one in told(item, practice.given[item.id])) if rated else 0
    return Place(number, item.question.in_language(_language()), rated, same)


def _share(count: int, total: int) -> str:
    return gettext("%(count)d of %(total)d") % {"count": count, "total": total}


LENIENT, STRICT, EVEN = _("more often higher"), _("more often lower"), _("neither way")


def _leaning(higher: int, lower: int) -> str:
    return str(LENIENT if higher > lower else STRICT if lower > higher else EVEN)
