"""Pages of practice: ten examples with feedback. Each logged-in user has own progress, which is stored apart from
ratings."""

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

from contrib.practice.items import (
    FAMILY,
    METRICS,
    Levels,
    PracticeFeedback,
    PracticeItem,
    Tally,
    practice_feedback,
    practice_items,
    tally_ratings,
)
from contrib.practice.models import PracticeProgress
from evaluation.accounts.access import signed_in_post, signed_in_user
from evaluation.judging.catalogue import judge_metric
from evaluation.judging.rubric import shipped_rubric
from evaluation.models import User
from review.charts.axis import ScaleLine, scale_line
from review.ratings.card import CardMetric, KeyAction, LevelText, Passage
from review.ratings.forms import CANNOT_JUDGE
from review.ratings.pages.card import Keys, user_keys
from review.ratings.pages.item import MetricField, metric_field

UNUSED_ACTIONS = (KeyAction.FLAG, KeyAction.ESCALATE, KeyAction.COMMENT, KeyAction.SUGGEST, KeyAction.UNDO)
LEVELS: dict[str, int | None] = {CANNOT_JUDGE: None} | {str(level): level for level in range(1, 6)}


def practice_progress(user: User) -> PracticeProgress:
    return PracticeProgress.objects.filter(user=user).first() or PracticeProgress(user=user)


def count_rated(practice: PracticeProgress) -> int:
    """Number of examples rated in the current pass."""
    return sum(item.id in practice.given for item in practice_items())


def next_unrated(practice: PracticeProgress, position: int) -> int | None:
    """Number (from 1) of the next unrated example after ``position``, wrapping around; ``None`` if all are rated."""
    items = practice_items()
    indexes = [(position + step) % len(items) for step in range(len(items))]
    return next((index + 1 for index in indexes if items[index].id not in practice.given), None)


@transaction.atomic
def practise(user: User, item: PracticeItem, levels: Levels) -> None:
    """Store the levels of an example. Rated examples never change, because their feedback was shown."""
    row, _created = PracticeProgress.objects.select_for_update().get_or_create(user=user)
    if item.id in row.given:
        return
    row.given = {**row.given, item.id: {name: levels[name] for name in METRICS}}
    row.rounds += count_rated(row) == len(practice_items())
    row.save(update_fields=["given", "rounds"])


class FeedbackView(NamedTuple):
    """Feedback on a criterion in words: both levels, the meaning of the expected one, and its reason."""

    title: str
    own_level: str
    expected: str
    meaning: str
    reason: str
    is_same: bool
    line: ScaleLine | None


@dataclass(frozen=True, slots=True)
class PracticePage:
    """An example with ``fields`` to rate it, or, after the rating, the feedback: ``differences`` and ``matches``.
    ``next_number`` is the example after skipping, ``None`` for the list."""

    number: int
    total: int
    rated_count: int
    item: PracticeItem
    contexts: tuple[Passage, ...]
    keys: Keys
    next_number: int | None
    fields: tuple[MetricField, ...] = ()
    error: str = ""
    differences: tuple[FeedbackView, ...] = ()
    matches: tuple[FeedbackView, ...] = ()

    @property
    def answer(self) -> str:
        return self.item.answer.in_language(_language())


@login_required
@never_cache
@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Show the progress, and by example how many criteria were rated as expected."""
    practice, items = practice_progress(signed_in_user(request)), practice_items()
    levels_by_item = practice.given
    context = {
        "rated": count_rated(practice),
        "total": len(items),
        "following": next_unrated(practice, 0),
        "places": [
            (
                item.question,
                sum(feedback.is_same for feedback in practice_feedback(item, levels_by_item[item.id]))
                if item.id in levels_by_item
                else None,
            )
            for item in items
        ],
        "tallies": [
            _tally_row(metric_tally) for metric_tally in tally_ratings(items, levels_by_item) if metric_tally.total
        ],
    }
    return render(request, "practice/start.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def example(request: HttpRequest, number: int) -> HttpResponse:
    """Show an example to rate, or its feedback once it is rated. A form without every criterion is shown again."""
    if not 1 <= number <= len(practice_items()):
        raise Http404
    user, item = signed_in_user(request), practice_items()[number - 1]
    if request.method == "POST":
        posted_values = {name: request.POST.get(f"value:{name}", "") for name in METRICS}
        levels = {name: LEVELS[text] for name, text in posted_values.items() if text in LEVELS}
        if missing := [name for name in METRICS if name not in levels]:
            error = gettext("Rate every criterion, or mark it as “cannot judge”.")
            return _example_page(request, number, practice_progress(user), levels, missing, error)
        practise(user, item, levels)
        return redirect("practice-example", number)
    practice = practice_progress(user)
    if item.id not in practice.given:
        return _example_page(request, number, practice)
    views = [_feedback_view(feedback) for feedback in practice_feedback(item, practice.given[item.id])]
    page = PracticePage(
        number=number,
        total=len(practice_items()),
        rated_count=count_rated(practice),
        item=item,
        contexts=_passages(item),
        keys=user_keys(user),
        next_number=next_unrated(practice, number),
        differences=tuple(view for view in views if not view.is_same),
        matches=tuple(view for view in views if view.is_same),
    )
    return render(request, "practice/feedback.html", {"page": page})


def _example_page(
    request: HttpRequest,
    number: int,
    practice: PracticeProgress,
    levels: Levels | None = None,
    missing: Collection[str] = (),
    error: str = "",
) -> HttpResponse:
    """Render an example to rate, with the levels of a refused form, and without keys that do nothing here."""
    item, keys = practice_items()[number - 1], user_keys(signed_in_user(request))
    unused_labels, next_number = {keys.labels[str(action)] for action in UNUSED_ACTIONS}, next_unrated(practice, number)
    page = PracticePage(
        number=number,
        total=len(practice_items()),
        rated_count=count_rated(practice),
        item=item,
        contexts=_passages(item),
        keys=keys._replace(lines=tuple(line for line in keys.lines if line[0] not in unused_labels)),
        next_number=None if next_number == number else next_number,
        fields=tuple(
            metric_field(_metric(name), _field_text(name, levels or {}), missing=name in missing) for name in METRICS
        ),
        error=error,
    )
    return render(request, "practice/card.html", {"page": page}, status=409 if error else 200)


@signed_in_post
def restart(request: HttpRequest) -> HttpResponse:
    """Clear the progress and start with the first example."""
    PracticeProgress.objects.filter(user=signed_in_user(request)).update(given={})
    return redirect("practice-example", 1)


def _language() -> str:
    return get_language() or "en"


def _passages(item: PracticeItem) -> tuple[Passage, ...]:
    language = _language()
    return tuple(
        Passage(number, passage.source.in_language(language), passage.text.in_language(language), "")
        for number, passage in enumerate(item.passages, start=1)
    )


def _title(metric: str) -> str:
    return judge_metric(metric).title.in_language(_language())


def _metric(name: str) -> CardMetric:
    """The criterion as on the review screen, from the shipped rubric."""
    language = "ko" if _language().startswith("ko") else "en"
    spec, rubric_metric = judge_metric(name), shipped_rubric(FAMILY, language).metric(name)
    return CardMetric(
        name=name,
        title=_title(name),
        review_form=spec.review_form.value,
        kind=spec.scale.kind.value,
        low=spec.scale.low,
        high=spec.scale.high,
        labels=(),
        question=rubric_metric.question.strip(),
        levels=tuple(LevelText(level.value, level.text) for level in rubric_metric.levels),
        language=language,
    )


def _field_text(name: str, levels: Levels) -> str:
    if name not in levels:
        return ""
    level = levels[name]
    return CANNOT_JUDGE if level is None else str(level)


def _feedback_view(feedback: PracticeFeedback) -> FeedbackView:
    level, scale = feedback.expected_rating.level, judge_metric(feedback.metric).scale
    return FeedbackView(
        title=_title(feedback.metric),
        own_level=gettext("cannot judge") if feedback.own_level is None else str(feedback.own_level),
        expected=str(level),
        meaning=next(level_text.text for level_text in _metric(feedback.metric).levels if level_text.value == level),
        reason=feedback.expected_rating.why.in_language(_language()),
        is_same=feedback.is_same,
        line=None if feedback.own_level is None else scale_line(scale, expert=feedback.own_level, judge=level),
    )


LENIENT, STRICT, EVEN = _("more often higher"), _("more often lower"), _("no tendency")


def _tally_row(metric_tally: Tally) -> tuple[str, str, str, str]:
    """Title of a criterion, counts of equal and near ratings, and the direction of the differences."""
    same, within_one = (
        gettext("%(count)d of %(total)d") % {"count": n, "total": metric_tally.total}
        for n in (metric_tally.same, metric_tally.within_one)
    )
    leaning = (
        LENIENT
        if metric_tally.higher > metric_tally.lower
        else STRICT
        if metric_tally.lower > metric_tally.higher
        else EVEN
    )
    return _title(metric_tally.metric), same, within_one, str(leaning)


urlpatterns = [
    path("practice/", start, name="practice"),
    path("practice/restart/", restart, name="practice-restart"),
    path("practice/<int:number>/", example, name="practice-example"),
]
