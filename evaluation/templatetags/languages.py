"""The language of a text that stands on a page in another one, for the ``lang`` of its element."""

from __future__ import annotations

from django import template

from evaluation.wording import markdown

register = template.Library()


@register.filter
def language_of(text: str) -> str:
    """``ko`` or ``en``: what a screen reader should read the text in."""
    return markdown.language_of(text)
