"""Practice: ten examples with feedback. Everybody who is logged in has their own way through them."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from evaluation.accounts.signed_in import person, signed_in_post
from review.extras.practice.items import METRICS, PracticeItem, practice_items
from review.extras.practice.pages import card_page, feedback_page, start_page
from review.extras.practice.progress import practice_of, practise, practise_again
from review.web.forms.rating import CANNOT_JUDGE
from review.web.pages.review_card import keys_of

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
