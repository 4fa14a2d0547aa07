"""The logged-in person of a request, for views behind ``login_required``.

The person's own keys of the review screen.
"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from evaluation.core.errors import Refused
from evaluation.models import User
from evaluation.wording.messages import explain_refusal
from review.ratings.keymap import DEFAULTS, checked_keys
from review.web.pages.keys import keys_page


def person(request: HttpRequest) -> User:
    """The user of a request that only logged-in people make.

    :raises PermissionDenied: for anybody else.
    """
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """Choose the keys from a closed list, go back to the usual ones, or switch single keys off."""
    me = person(request)
    if request.method != "POST":
        return render(request, "review/keys.html", {"page": keys_page(me)})
    wanted = {} if "usual" in request.POST else _chosen(request.POST)
    try:
        me.keymap = checked_keys(wanted)
    except Refused as refused:
        page = keys_page(me, entered=wanted, error=explain_refusal(refused))
        return render(request, "review/keys.html", {"page": page}, status=409)
    me.keys_off = "off" in request.POST
    me.save(update_fields=["keymap", "keys_off"])
    messages.success(request, gettext("Your keys are kept."))
    return redirect("review-keys")


@login_required
@require_POST
def switch_keys(request: HttpRequest) -> HttpResponse:
    """Switch single keys off or on again, from the help of the screen."""
    me = person(request)
    me.keys_off = request.POST.get("off") == "1"
    me.save(update_fields=["keys_off"])
    return HttpResponse(status=204)


def _chosen(data: QueryDict) -> dict[str, str]:
    """The chosen key of every action that the form holds."""
    found = {str(action): data.get(f"key:{action}", "") for action in DEFAULTS}
    return {action: code for action, code in found.items() if code}
