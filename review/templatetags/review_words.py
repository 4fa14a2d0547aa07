"""Words for what reviewers and leads store."""

from __future__ import annotations

from django import template

from review.evidence.rating_input import FlagKind
from review.models import Override, Rating
from review.ratings.card import Claim
from review.web.pages import item
from review.web.pages.item import value_text
from review.web.pages.review_card import FLAGS

register = template.Library()


@register.filter
def flag_title(kind: str) -> str:
    """What is wrong with an item."""
    return str(FLAGS[FlagKind(kind)])


@register.filter
def verdict_title(verdict: str) -> str:
    """What was said of a part."""
    return item.verdict_title(verdict)


@register.filter
def claim_look(claim: Claim) -> str:
    """The class of the style sheet for a claim."""
    return item.claim_look(claim)


@register.filter
def stored_value(one: Rating | Override) -> str:
    """A rating or decision as its metric's scale is read; a dash where there is no value."""
    return value_text(one, one.metric.read_scale())
