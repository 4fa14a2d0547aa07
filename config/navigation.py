"""The frame around every page: navigation, language switch and the person's menu, as one typed object."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import get_language, gettext

from config.middleware import page_of
from evaluation.accounts.access import roles_anywhere
from evaluation.core.roles import STAFF_ROLES, Action, allowed

#: The languages under their own names: whoever looks for theirs may not read the present one.
OWN_NAMES = {"en": "English", "ko": "한국어"}


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation. ``sections`` are the starts of the names of the addresses that belong to it."""

    title: str
    href: str
    current: bool


class Frame:
    """What ``base.html`` shows around a page. ``other_language`` is what the switch changes to. What depends on the
    person's roles is looked up when a page shows it: the review screen has no navigation."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.language = "ko" if (get_language() or settings.LANGUAGE_CODE).startswith("ko") else "en"
        self.other_language = "en" if self.language == "ko" else "ko"
        self.other_language_name = OWN_NAMES[self.other_language]

    @cached_property
    def roles(self) -> frozenset[str]:
        """The person's roles in any project."""
        return roles_anywhere(getattr(self.request, "user", AnonymousUser()))

    @property
    def here(self) -> str:
        """Where the language switch leads back to."""
        return page_of(self.request)

    @property
    def staff(self) -> bool:
        """Whether the person has a door to the back office."""
        return bool(self.roles & STAFF_ROLES)

    @property
    def evaluates(self) -> bool:
        """Whether the person may start runs in some project."""
        return allowed(self.roles, Action.EVALUATE)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The navigation."""
        return _places(self.request, self.roles)


def frame(request: HttpRequest) -> dict[str, object]:
    """Context processor."""
    return {"frame": Frame(request)}


def _places(request: HttpRequest, roles: frozenset[str]) -> tuple[Place, ...]:
    if not roles:
        return ()
    match = request.resolver_match
    here = (match.url_name or "") if match else ""
    reads = allowed(roles, Action.VIEW)
    wanted = [
        (gettext("Home"), "home", ("home",), True),
        (gettext("Runs"), "run-list", ("run", "answer", "evaluation"), reads),
        (gettext("Review"), "queue-list", ("queue", "review", "my-ratings", "keys", "pair", "truth"), True),
        (gettext("Disputes"), "adjudication", ("adjudication", "ruling"), allowed(roles, Action.ADJUDICATE)),
        (gettext("Question sets"), "question-set-list", ("question-set", "generation"), reads),
        (gettext("Calibration"), "calibration-list", ("calibration",), allowed(roles, Action.EVALUATE)),
        (gettext("Judges"), "judge-list", ("judge",), allowed(roles, Action.EVALUATE)),
    ]
    return tuple(Place(title, reverse(name), here.startswith(starts)) for title, name, starts, shown in wanted if shown)
