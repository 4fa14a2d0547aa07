"""The frame around every page: navigation, language switch and the person's menu, as one typed object."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import get_language, gettext

from evaluation.accounts.models import User
from evaluation.accounts.roles import STAFF_ROLES, Action, allowed
from evaluation.accounts.standing import roles_anywhere

#: The languages under their own names: whoever looks for theirs may not read the present one.
OWN_NAMES = {"en": "English", "ko": "한국어"}


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation. ``sections`` are the starts of the names of the addresses that belong to it."""

    title: str
    href: str
    current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """What ``base.html`` shows around a page. ``other_language`` is what the switch changes to."""

    language: str
    other_language: str
    other_language_name: str
    places: tuple[Place, ...]
    staff: bool


def frame(request: HttpRequest) -> dict[str, object]:
    """Context processor; the object is built when a template first looks at it, so that fragments pay nothing."""
    return {"frame": SimpleLazyObject(lambda: build(request))}


def build(request: HttpRequest) -> Frame:
    """The frame for the person and address of the request."""
    user: User | AnonymousUser = getattr(request, "user", AnonymousUser())
    roles = roles_anywhere(user)
    language = "ko" if (get_language() or settings.LANGUAGE_CODE).startswith("ko") else "en"
    other = "en" if language == "ko" else "ko"
    staff = bool(roles & STAFF_ROLES)
    return Frame(language, other, OWN_NAMES[other], _places(request, roles), staff)


def _places(request: HttpRequest, roles: frozenset[str]) -> tuple[Place, ...]:
    if not roles:
        return ()
    match = request.resolver_match
    here = (match.url_name or "") if match else ""
    reads = allowed(roles, Action.VIEW)
    wanted = [
        (gettext("Home"), "home", ("home",), True),
        (gettext("Runs"), "run-list", ("run", "answer"), reads),
        (gettext("Review"), "queue-list", ("queue", "review", "my-ratings", "keys", "pair"), True),
        (gettext("Disputes"), "adjudication", ("adjudication", "ruling"), allowed(roles, Action.ADJUDICATE)),
        (gettext("Question sets"), "question-set-list", ("question-set",), reads),
        (gettext("Judges"), "judge-list", ("judge",), allowed(roles, Action.EVALUATE)),
    ]
    return tuple(Place(title, reverse(name), here.startswith(starts)) for title, name, starts, shown in wanted if shown)
