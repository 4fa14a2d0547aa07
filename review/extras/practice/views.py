"""Practice: ten examples with feedback. Everybody who is logged in has their own way through them, which is kept beside
the ratings, never among them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from evaluation.accounts.access import person, signed_in_post
from evaluation.core.registry import Bilingual
from evaluation.judging.catalogue import judge_metric
from evaluation.judging.rubric import shipped_rubric
from evaluation.models import User
from evaluation.wording.messages import category_name
from review.charts.axis import ScaleLine, scale_line
from review.extras.practice.items import FAMILY, METRICS, Levels, PracticeItem, Told, practice_items, tally, told
from review.models import PracticeProgress
from review.ratings.card import CardMetric, KeyAction, LevelText
from review.web.forms.rating import CANNOT_JUDGE
from review.web.pages.item import MetricField, PassageView, metric_field
from review.web.pages.review_card import Keys, Text, keys_of, text


@dataclass(frozen=True, slots=True)
class Practice:
    """What a person has rated so far, by example, and how often they went through all of them."""

    given: Mapping[str, Levels]
    rounds: int

    @property
    def rated(self) -> int:
        """How many of the examples have been rated this time."""
        return sum(item.id in self.given for item in practice_items())

    @property
    def finished(self) -> bool:
        """Whether every example has been rated this time."""
        return self.rated == len(practice_items())

    def next_after(self, place: int) -> int | None:
        """The place (from 1) of the next example without a rating, searched onwards and around; ``None``: all rated."""
        items = practice_items()
        ahead = [(place + step) % len(items) for step in range(len(items))]
        return next((at + 1 for at in ahead if items[at].id not in self.given), None)


def practice_of(user: User) -> Practice:
    """The person's way so far."""
    row = PracticeProgress.objects.filter(user=user).first()
    return Practice(row.given, row.rounds) if row else Practice({}, 0)


@transaction.atomic
def practise(user: User, item: PracticeItem, levels: Levels) -> None:
    """Keep the levels of an example. What was rated already stays as it is: the feedback has been seen."""
    row, _ = PracticeProgress.objects.select_for_update().get_or_create(user=user)
    if item.id in row.given:
        return
    row.given = {**row.given, item.id: {name: levels[name] for name in METRICS}}
    row.rounds += Practice(row.given, 0).finished
    row.save(update_fields=["given", "rounds"])


def practise_again(user: User) -> None:
    """Empty the examples, to go through them once more."""
    PracticeProgress.objects.filter(user=user).update(given={})


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


LEVELS = {str(level): level for level in range(1, 6)}


def read_levels(data: QueryDict) -> dict[str, int | None]:
    """The level of each criterion that was answered, ``None`` for one that cannot be judged; what is no level is left
    out."""
    found: dict[str, int | None] = {}
    for name in METRICS:
        text = data.get(f"value:{name}", "")
        if text == CANNOT_JUDGE:
            found[name] = None
        elif text in LEVELS:
            found[name] = LEVELS[text]
    return found


@login_required
@never_cache
@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Where the person stands with the examples."""
    return render(request, "review/extras/practice/start.html", {"page": start_page(practice_of(person(request)))})


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def example(request: HttpRequest, number: int) -> HttpResponse:
    """An example to rate, or, once it is rated, what its authors say of it."""
    me, item = person(request), _item(number)
    if request.method == "POST":
        return _rate(request, number, item)
    practice = practice_of(me)
    if item.id in practice.given:
        return render(
            request, "review/extras/practice/feedback.html", {"page": feedback_page(number, practice, keys_of(me))}
        )
    return render(request, "review/extras/practice/card.html", {"page": card_page(number, practice, keys_of(me))})


@signed_in_post
def again(request: HttpRequest) -> HttpResponse:
    """Empty the examples and begin with the first."""
    practise_again(person(request))
    return redirect("practice-example", 1)


def _rate(request: HttpRequest, number: int, item: PracticeItem) -> HttpResponse:
    """Keep the levels and show the feedback; the screen again where a criterion is missing."""
    me, levels = person(request), read_levels(request.POST)
    missing = [name for name in METRICS if name not in levels]
    if not missing:
        practise(me, item, levels)
        return redirect("practice-example", number)
    error = gettext("Rate every criterion, or say that you cannot judge it.")
    page = card_page(number, practice_of(me), keys_of(me), given=levels, missing=missing, error=error)
    return render(request, "review/extras/practice/card.html", {"page": page}, status=409)


def _item(number: int) -> PracticeItem:
    items = practice_items()
    if not 1 <= number <= len(items):
        raise Http404
    return items[number - 1]
