"""How answers were chosen for review, in words. Only for people who manage queues or read reports, never on a card."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from review.statistics.sampling.member import Strategy

TITLES: dict[str, str | Promise] = {
    Strategy.ALL: _("every answer"),
    Strategy.UNIFORM: _("by chance alone"),
    Strategy.STRATIFIED: _("spread over judge scores and categories"),
    Strategy.FAILS_PLUS_SHARE: _("all that failed and a share of the others"),
    Strategy.UNCERTAINTY: _("where the judge is unsure"),
    Strategy.HAND_PICKED: _("picked by hand"),
}


def strategy_title(name: str) -> str:
    """The strategy in words."""
    return str(TITLES.get(name, name))
