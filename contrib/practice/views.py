"""Practice: ten examples with feedback. Everybody who is logged in has their own way through them, which is kept beside
the ratings, never among them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from contrib.practice.items import FAMILY, METRICS, Levels, PracticeItem, Tally, Told, practice_items, tally, told
from contrib.practice.models import PracticeProgress
from evaluation.accounts.access import person, signed_in_post
from evaluation.judging.catalogue import judge_metric
from evaluation.judging.rubric import shipped_rubric
from evaluation.models import User
from review.charts.axis import ScaleLine, scale_line
from review.ratings.card import CardMetric, KeyAction, LevelText, Passage
from review.ratings.forms import CANNOT_JUDGE
from review.ratings.pages.card import Keys, keys_of
from review.ratings.pages.item import MetricField, metric_field

NOT_HERE = (KeyAction.FLAG, KeyAction.ESCALATE, KeyAction.COMMENT, KeyAction.SUGGEST, KeyAction.UNDO)
LEVELS: dict[str, int | None] = {CANNOT_JUDGE: None} | {str(level): level for level in range(1, 6)}


def practice_of(user: User) -> PracticeProgress:
    """The person's way so far."""
    return PracticeProgress.objects.filter(user=user).first() or PracticeProgress(user=user)


def rated(practice: PracticeProgress) -> int:
    """How many of the examples have been rated this time."""
    return sum(item.id in practice.given for item in practice_items())


def next_after(practice: PracticeProgress, place: int) -> int | None:
    """The place (from 1) of the next example without a rating, searched onwards and around; ``None``: all rated."""
    items = practice_items()
    ahead = [(place + step) % len(items) for step in range(len(items))]
    return next((at + 1 for at in ahead if items[at].id not in practice.given), None)


@transaction.atomic
def practise(user: User, item: PracticeItem, levels: Levels) -> None:
    """Keep the levels of an example. What was rated already stays as it is: the feedback has been seen."""
    row, _made = PracticeProgress.objects.select_for_update().get_or_create(user=user)
    if item.id in row.given:
        return
    row.given = {**row.given, item.id: {name: levels[name] for name in METRICS}}
    row.rounds += rated(row) == len(practice_items())
    row.save(update_fields=["given", "rounds"])


class ToldView(NamedTuple):
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
    authors say of it: the criteria rated ``apart`` and ``alike``. ``following`` is where skipping leads, ``None`` to
    the list."""

    number: int
    total: int
    rated: int
    item: PracticeItem
    contexts: tuple[Passage, ...]
    keys: Keys
    following: int | None
    fields: tuple[MetricField, ...] = ()
    error: str = ""
    apart: tuple[ToldView, ...] = ()
    alike: tuple[ToldView, ...] = ()

    @property
    def answer(self) -> str:
        """The answer as the person reads it."""
        return self.item.answer.in_language(_language())


@login_required
@never_cache
@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Where the person stands with the examples: how many of the criteria of each were rated as expected."""
    practice, items = practice_of(person(request)), practice_items()
    given = practice.given
    shown = {
        "rated": rated(practice),
        "total": len(items),
        "following": next_after(practice, 0),
        "places": [
            (item.question, sum(one.same for one in told(item, given[item.id])) if item.id in given else None)
            for item in items
        ],
        "tallies": [_tallied(one) for one in tally(items, given) if one.given],
    }
    return render(request, "practice/start.html", shown)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def example(request: HttpRequest, number: int) -> HttpResponse:
    """An example to rate, or, once it is rated, what its authors say of it. The screen comes again where a criterion is
    missing."""
    if not 1 <= number <= len(practice_items()):
        raise Http404
    me, item = person(request), practice_items()[number - 1]
    if request.method == "POST":
        said = {name: request.POST.get(f"value:{name}", "") for name in METRICS}
        levels = {name: LEVELS[text] for name, text in said.items() if text in LEVELS}
        if missing := [name for name in METRICS if name not in levels]:
            error = gettext("Rate every criterion, or say that you cannot judge it.")
            return _card(request, number, practice_of(me), levels, missing, error)
        practise(me, item, levels)
        return redirect("practice-example", number)
    practice = practice_of(me)
    if item.id not in practice.given:
        return _card(request, number, practice)
    views = [_told(one) for one in told(item, practice.given[item.id])]
    page = PracticePage(
        number=number,
        total=len(practice_items()),
        rated=rated(practice),
        item=item,
        contexts=_passages(item),
        keys=keys_of(me),
        following=next_after(practice, number),
        apart=tuple(one for one in views if not one.same),
        alike=tuple(one for one in views if one.same),
    )
    return render(request, "practice/feedback.html", {"page": page})


def _card(
    request: HttpRequest,
    number: int,
    practice: PracticeProgress,
    given: Levels | None = None,
    missing: Collection[str] = (),
    error: str = "",
) -> HttpResponse:
    """An example to be rated, with what a refused form held; the person's keys without those that mean nothing here."""
    item, keys = practice_items()[number - 1], keys_of(person(request))
    idle, following = {keys.labels[str(action)] for action in NOT_HERE}, next_after(practice, number)
    page = PracticePage(
        number=number,
        total=len(practice_items()),
        rated=rated(practice),
        item=item,
        contexts=_passages(item),
        keys=keys._replace(lines=tuple(line for line in keys.lines if line[0] not in idle)),
        following=None if following == number else following,
        fields=tuple(
            metric_field(_metric(name), _entered(name, given or {}), missing=name in missing) for name in METRICS
        ),
        error=error,
    )
    return render(request, "practice/card.html", {"page": page}, status=409 if error else 200)


@signed_in_post
def again(request: HttpRequest) -> HttpResponse:
    """Empty the examples and begin with the first."""
    PracticeProgress.objects.filter(user=person(request)).update(given={})
    return redirect("practice-example", 1)


def _language() -> str:
    return get_language() or "en"


def _passages(item: PracticeItem) -> tuple[Passage, ...]:
    language = _language()
    return tuple(
        Passage(number, one.source.in_language(language), one.text.in_language(language), "")
        for number, one in enumerate(item.passages, start=1)
    )


def _title(metric: str) -> str:
    return judge_metric(metric).title.in_language(_language())


def _metric(name: str) -> CardMetric:
    """The criterion as the real screen asks for it, from the shipped rubric."""
    language = "ko" if _language().startswith("ko") else "en"
    spec, asked = judge_metric(name), shipped_rubric(FAMILY, language).metric(name)
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
        language=language,
    )


def _entered(name: str, given: Levels) -> str:
    if name not in given:
        return ""
    level = given[name]
    return CANNOT_JUDGE if level is None else str(level)


def _told(one: Told) -> ToldView:
    level, scale = one.expected.level, judge_metric(one.metric).scale
    return ToldView(
        title=_title(one.metric),
        own=gettext("cannot judge") if one.own is None else str(one.own),
        expected=str(level),
        meaning=next(each.text for each in _metric(one.metric).levels if each.value == level),
        why=one.expected.why.in_language(_language()),
        same=one.same,
        line=None if one.own is None else scale_line(scale, expert=one.own, judge=level),
    )


LENIENT, STRICT, EVEN = _("more often higher"), _("more often lower"), _("neither way")


def _tallied(one: Tally) -> tuple[str, str, str, str]:
    """A criterion over all rated examples: its title, how many were the same and how many near, and which way."""
    same, near = (gettext("%(count)d of %(total)d") % {"count": n, "total": one.given} for n in (one.same, one.near))
    leaning = LENIENT if one.higher > one.lower else STRICT if one.lower > one.higher else EVEN
    return _title(one.metric), same, near, str(leaning)


urlpatterns = [
    path("practice/", start, name="practice"),
    path("practice/again/", again, name="practice-again"),
    path("practice/<int:number>/", example, name="practice-example"),
]
