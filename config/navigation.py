"""Page frame: navigation, language switch and user menu."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import get_language, gettext

from config.middleware import current_page
from evaluation.accounts.access import roles_anywhere
from evaluation.core.roles import STAFF_ROLES, Action, is_allowed

#: Languages by their native names, for readers who do not know the current language.
NATIVE_NAMES = {"en": "English", "ko": "한국어"}


@dataclass(frozen=True, slots=True)
class NavItem:
    """An entry of the navigation; ``current`` marks the section of the current page."""

    title: str
    href: str
    current: bool


class PageFrame:
    """Context of ``base.html``. ``other_language`` is the target of the language switch.

    Roles are looked up lazily, because the review screen has no navigation."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.language = "ko" if (get_language() or settings.LANGUAGE_CODE).startswith("ko") else "en"
        self.other_language = "en" if self.language == "ko" else "ko"
        self.other_language_name = NATIVE_NAMES[self.other_language]

    @cached_property
    def roles(self) -> frozenset[str]:
        return roles_anywhere(getattr(self.request, "user", AnonymousUser()))

    @property
    def current_path(self) -> str:
        """Path to which the language switch returns."""
        return current_page(self.request)

    @property
    def staff(self) -> bool:
        """Return whether the user may enter the back office."""
        return bool(self.roles & STAFF_ROLES)

    @property
    def evaluates(self) -> bool:
        """Return whether the user may start runs in some project."""
        return is_allowed(self.roles, Action.EVALUATE)

    @property
    def leads(self) -> bool:
        """Return whether the user leads some project."""
        return is_allowed(self.roles, Action.MANAGE_REVIEW)

    @cached_property
    def nav_items(self) -> tuple[NavItem, ...]:
        return _nav_items(self.request, self.roles)


def frame(request: HttpRequest) -> dict[str, object]:
    """Add the page frame to the template context."""
    return {"frame": PageFrame(request)}


def _nav_items(request: HttpRequest, roles: frozenset[str]) -> tuple[NavItem, ...]:
    if not roles:
        return ()
    match = request.resolver_match
    url_name = (match.url_name or "") if match else ""
    may_view = is_allowed(roles, Action.VIEW)
    sections = [
        (gettext("Home"), "home", ("home",), True),
        (gettext("Runs"), "run-list", ("run", "answer", "evaluation"), may_view),
        (gettext("Review"), "queue-list", ("queue", "review", "my-ratings", "keys", "pair", "truth"), True),
        (gettext("Disputes"), "adjudication", ("adjudication", "ruling"), is_allowed(roles, Action.ADJUDICATE)),
        (gettext("Question sets"), "question-set-list", ("question-set", "generation"), may_view),
        (gettext("Calibration"), "calibration-list", ("calibration",), is_allowed(roles, Action.EVALUATE)),
        (gettext("Judges"), "judge-list", ("judge",), is_allowed(roles, Action.EVALUATE)),
    ]
    return tuple(
        NavItem(title, reverse(name), url_name.startswith(starts))
        for title, name, starts, visible in sections
        if visible
    )
